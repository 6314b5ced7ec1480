"""Questions about short stories: where is a person now?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from heedful.datasets import Dataset, Example, Split
from heedful.document import Pair
from heedful.errors import BadInput

_PEOPLE = ("Mary", "John", "Sandra", "Daniel")
_MOVES = ("went to", "moved to", "travelled to", "walked to")
_SIZES = {"train": 10_000, "validation": 1_000, "test": 1_000}


@final
@dataclass(frozen=True)
class Questions(Dataset):
    """A story of people who move, and where one of them is: 10,000 / 1,000 / 1,000 drawn pairs.

    As the first task of bAbI (Weston et al., 2016, arXiv:1502.05698): a story has 2 to `most` sentences, each with one
    of four people, who goes to one of six places; the question is about a person of the story. The answer is the class,
    and the rationale is the one sentence that has it, the last about that person.
    """

    name: ClassVar[str] = "questions"
    classes: ClassVar[tuple[str, ...]] = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")

    most: int = 6
    text_seed: int = 0

    def __post_init__(self) -> None:
        if self.most < 2 or self.text_seed < 0:
            raise BadInput("Questions needs most ≥ 2 and text_seed ≥ 0.")

    def examples(self, split: Split) -> Sequence[Example]:
        rng = np.random.default_rng((self.text_seed, list(_SIZES).index(split)))
        return [self._drawn(rng) for _ in range(_SIZES[split])]

    def _drawn(self, rng: np.random.Generator) -> Example:
        n = int(rng.integers(2, self.most + 1))
        who, how, where = (rng.integers(len(words), size=n) for words in (_PEOPLE, _MOVES, self.classes))
        asked = who[rng.integers(n)]
        sentences = [
            f"{_PEOPLE[w]} {_MOVES[h]} the {self.classes[p]}." for w, h, p in zip(who, how, where, strict=True)
        ]
        last = int(np.flatnonzero(who == asked)[-1])
        start = sum(len(sentence) + 1 for sentence in sentences[:last])
        text = Pair(" ".join(sentences), f"Where is {_PEOPLE[asked]}?")
        return Example(text, int(where[last]), ((start, start + len(sentences[last])),))
