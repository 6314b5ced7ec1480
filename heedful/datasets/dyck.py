"""Strings of brackets, and which bracket closes the last one that is open."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from heedful.datasets import Dataset, Example, Split
from heedful.errors import BadInput

_CLOSED_BY = {"(": ")", "[": "]"}
_SIZES = {"train": 20_000, "validation": 2_000, "test": 2_000}


@final
@dataclass(frozen=True)
class DyckPrefixes(Dataset):
    """Beginnings of bracket strings, and which bracket may close next: 20,000 / 2,000 / 2,000 drawn texts.

    Dyck of two types of brackets with at most `nesting` open at a time, as in Wen et al. (2023), arXiv:2312.01429: with
    none or all of them open there is one choice, else opening and closing are equally likely, and both types are. There
    every next bracket is predicted; here the closing one after a text of 1 to `longest` brackets that leaves some open,
    which one bracket decides: the last that is open, the rationale. Texts may repeat, in other splits too.
    """

    name: ClassVar[str] = "dyck"
    classes: ClassVar[tuple[str, ...]] = ("round", "square")

    nesting: int = 4
    longest: int = 28
    text_seed: int = 0

    def __post_init__(self) -> None:
        if self.nesting < 1 or self.longest < 1 or self.text_seed < 0:
            raise BadInput("Dyck needs nesting ≥ 1, longest ≥ 1 and text_seed ≥ 0.")

    def examples(self, split: Split) -> Sequence[Example]:
        rng = np.random.default_rng((self.text_seed, list(_SIZES).index(split)))
        return [self._drawn(rng) for _ in range(_SIZES[split])]

    def _drawn(self, rng: np.random.Generator) -> Example:
        length, last = int(rng.integers(1, self.longest + 1)), 0
        text: list[str] = []
        places: list[int] = []
        for opens, is_round in zip(*(rng.random((2, length)) < 0.5), strict=True):
            if not places or (len(places) < self.nesting and opens):
                places.append(len(text))
                text.append("(" if is_round else "[")
            else:
                last = places.pop()
                text.append(_CLOSED_BY[text[last]])
        if places:
            last = places[-1]
        else:
            # None is left open, so the text ends before its last bracket.
            text.pop()
        return Example(" ".join(text), int(text[last] == "["), ((2 * last, 2 * last + 1),))
