"""A validation split for data that was published without one."""

from typing import Literal

import numpy as np

from heedful.datasets import Example


def held_out(rows: list[Example], split: Literal["train", "validation"], seed: int, n_validation: int) -> list[Example]:
    """The training rows, or the `n_validation` rows held out for validation, drawn with the seed."""
    order = np.random.default_rng(seed).permutation(len(rows))
    chosen = order[:n_validation] if split == "validation" else order[n_validation:]
    return [rows[index] for index in chosen]
