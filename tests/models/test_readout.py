import pytest
import torch

from heedful.models.readout import counted_forwards, reading_of, readout_rows
from tests.families import TEXTS, build


@pytest.mark.parametrize(
    ("family", "reading"), [("bert", "first"), ("gpt2-classifier", "last"), ("gpt2", "last"), ("torch", "all")]
)
def test_the_reading_is_found_by_probing(family, reading):
    model = build(family)
    assert reading_of(model, model.encode(TEXTS[2])) == reading


def test_rows_of_a_reading_sum_to_one_over_a_texts_own_tokens():
    assert readout_rows("first", [2, 3]).tolist() == [[1, 0, 0], [1, 0, 0]]
    assert readout_rows("last", [2, 3]).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert readout_rows("all", [2, 4]).tolist() == [[0.5, 0.5, 0, 0], [0.25] * 4]


def test_every_forward_is_counted_while_it_lasts():
    network = torch.nn.Linear(2, 2)
    with counted_forwards(network) as passes:
        network(torch.ones(1, 2))
        network(torch.ones(5, 2))
    network(torch.ones(1, 2))
    assert len(passes) == 2
