import numpy as np

from heedful.datasets import Example
from heedful.datasets.held_out import held_out

ROWS = [Example(f"text {n}", n % 2) for n in range(10)]


def test_what_is_held_out_and_what_is_left_are_the_whole():
    train, validation = (held_out(ROWS, split, 3, 4) for split in ("train", "validation"))
    assert (len(train), len(validation)) == (6, 4)
    assert sorted(e.text for e in (*train, *validation)) == [e.text for e in ROWS]


def test_the_seed_decides_and_the_global_state_does_not():
    np.random.seed(0)
    first = held_out(ROWS, "train", 3, 4)
    np.random.seed(1)
    assert held_out(ROWS, "train", 3, 4) == first != held_out(ROWS, "train", 4, 4)
