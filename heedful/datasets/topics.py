"""Documents of latent Dirichlet allocation (Blei, Ng & Jordan, 2003), on which the best prediction is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.datasets import Dataset, Example, Split
from heedful.errors import BadInput

_WORDS = {
    "sports": "goal coach league striker season medal referee stadium sprint trophy",
    "cooking": "oven flour butter pepper recipe simmer garlic dough saucepan vinegar",
    "music": "melody guitar chorus drummer concert violin rhythm album choir piano",
    "law": "judge verdict lawyer statute appeal jury witness plaintiff clause contract",
    "weather": "storm drizzle thunder humid forecast frost breeze cloudy hail sunshine",
    "medicine": "doctor fever vaccine surgeon symptom clinic dosage nurse therapy diagnosis",
    "finance": "profit merger investor dividend loan interest shares broker inflation audit",
    "space": "planet rocket orbit comet telescope galaxy astronaut crater eclipse satellite",
    "gardening": "seedling compost pruning hedge tulip trowel lawn orchard soil greenhouse",
    "travel": "luggage airport passport hotel itinerary ferry tourist compass hostel voyage",
}
_SIZES = {"train": 4_000, "validation": 1_000, "test": 1_000}


@final
@dataclass(frozen=True)
class Topics(Dataset):
    """Words of ten topics, and the topic of one left out: 4,000 / 1,000 / 1,000 drawn texts.

    Latent Dirichlet allocation with topics that share no word, as in Li, Li & Risteski (2023), arXiv:2303.04245: the
    shares of the topics in a text are Dirichlet(`concentration`), each of its `length` words, and the left-out one, has
    a topic by these shares, and is one of the topic's ten words, all equally likely. To predict the topic of the
    left-out word is to predict the word, as in masked language modelling, up to a choice among ten.
    """

    name: ClassVar[str] = "topics"
    classes: ClassVar[tuple[str, ...]] = tuple(_WORDS)

    length: int = 60
    concentration: float = 0.1
    text_seed: int = 0

    def __post_init__(self) -> None:
        if self.length < 1 or not 0 < self.concentration < float("inf") or self.text_seed < 0:
            raise BadInput("Topics needs length ≥ 1, concentration > 0 and text_seed ≥ 0.")

    def examples(self, split: Split) -> Sequence[Example]:
        n, n_topics = _SIZES[split], len(self.classes)
        rng = np.random.default_rng((self.text_seed, list(_SIZES).index(split)))
        shares = rng.dirichlet(np.full(n_topics, self.concentration), n)
        # The topic at which the cumulative share passes a uniform number; rounding may leave the last sum below 1.
        drawn = rng.random((n, self.length + 1, 1)) > shares.cumsum(axis=1)[:, None, :-1]
        topics = drawn.sum(axis=2)
        words = np.array(self.words)[topics, rng.integers(len(self.words[0]), size=topics.shape)]
        return [
            Example(" ".join(row[:-1]), int(label)) for row, label in zip(words.tolist(), topics[:, -1], strict=True)
        ]

    def best(self, texts: Sequence[str]) -> Float[np.ndarray, "text topic"]:
        """The probability of each topic of the left-out word given a text, (n_k + α) / (n + K α).

        Nothing predicts better. n_k of the n words of the text are of topic k of K, and α is the concentration.
        """
        topic_of = {word: topic for topic, row in enumerate(self.words) for word in row}
        counts = np.zeros((len(texts), len(self.classes)))
        for row, text in zip(counts, texts, strict=True):
            np.add.at(row, [topic_of[word] for word in text.split()], 1)
        raised = counts + self.concentration
        return raised / raised.sum(axis=1, keepdims=True)

    @cached_property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The words of each topic."""
        return tuple(tuple(row.split()) for row in _WORDS.values())
