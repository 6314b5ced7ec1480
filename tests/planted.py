"""Texts where it is known which words decide, and models of them that are trained in no time."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heedful.datasets import Dataset, Example
from heedful.models.network import Config
from heedful.models.training import Recipe
from heedful.models.vocabulary import build_vocabulary

BAD, GOOD = ("awful", "dull"), ("great", "bright")
FILLERS = ("film", "plot", "story", "the", "a", "was", "and", "it", "of", "in", "cast", "scene", "ending", "music")
CONFIG = Config(n_heads=2, T_max=11, d_e=8, d_att=4, d_out=4)
RECIPE = Recipe(learning_rate=5e-2, n_epochs=6, batch_size=50)
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Planted(Dataset):
    """Ten words of which two decide, taken from four; the others say nothing."""

    name: ClassVar[str] = "planted"
    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")

    n: int = 300

    def examples(self, split):
        rng = np.random.default_rng(SPLITS.index(split))
        rows = []
        for label in rng.integers(0, 2, size=self.n).tolist():
            words = [*rng.choice(FILLERS, size=8), *rng.choice((BAD, GOOD)[label], size=2)]
            rows.append(Example(" ".join(rng.permutation(words)), label))
        return rows


EXAMPLES = {split: Planted().examples(split) for split in SPLITS}
VOCABULARY = build_vocabulary(example.text for split in ("train", "validation") for example in EXAMPLES[split])


class WordCounts:
    """Naive Bayes: the sum of the log ratios of a text's words; a seed draws the texts that it counts."""

    def __init__(self, texts, labels, seed):
        chosen = np.random.default_rng(seed).integers(0, len(texts), size=len(texts))
        counts = [Counter(), Counter()]
        for row in chosen.tolist():
            counts[labels[row]].update(texts[row].split())
        self.weights = {
            word: float(np.log((counts[1][word] + 1) / (counts[0][word] + 1))) for word in {*counts[0], *counts[1]}
        }

    def __call__(self, texts):
        scores = [sum(self.weights.get(word, 0.0) for word in text.split()) for text in texts]
        return [[-score / 2, score / 2] for score in scores]


def train_counts(texts, labels, seed):
    return WordCounts(texts, labels, seed)


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""
