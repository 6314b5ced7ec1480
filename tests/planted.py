"""Texts where it is known which words decide, and rankings that know it or not."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heedful.datasets import Dataset, Example
from heedful.models.network import Config
from heedful.models.training import Recipe
from heedful.models.vocabulary import build_vocabulary
from studies.roar.plan import RoarPlan, RoarSetup
from studies.roar.retraining import read_reviews
from studies.roar.study import SPLITS

BAD, GOOD = ("awful", "dull"), ("great", "bright")
FILLERS = ("film", "plot", "story", "the", "a", "was", "and", "it", "of", "in", "cast", "scene", "ending", "music")
CONFIG = Config(n_heads=2, T_max=11, d_e=8, d_att=4, d_out=4)
RECIPE = Recipe(learning_rate=5e-2, n_epochs=6, batch_size=50)


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
REVIEWS = {split: read_reviews(EXAMPLES[split], VOCABULARY, CONFIG.T_max) for split in SPLITS}
LABELS = {split: part.labels for split, part in REVIEWS.items()}
SETUP = RoarSetup(REVIEWS, CONFIG, len(VOCABULARY), RECIPE)


def chosen_ranks(split, strength):
    """Ranks by a number of every word, equal ones by lot."""
    rng = np.random.default_rng(7)
    rows = [[strength(word) for word in example.text.split()] for example in EXAMPLES[split]]
    order = np.argsort(-(np.array(rows) + 0.5 * rng.random((len(rows), 10))), axis=1)
    return np.argsort(order, axis=1).astype(np.uint16)


RANKS = {("oracle", split): chosen_ranks(split, lambda word: float(word in BAD + GOOD)) for split in SPLITS}
RANKS |= {("random", split): chosen_ranks(split, lambda word: 0.0) for split in SPLITS}
PLAN = RoarPlan(("oracle",), percents=(20, 80))


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""
