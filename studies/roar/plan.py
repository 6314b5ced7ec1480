"""Which models there are to train, and training those that are missing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

from heedful.datasets import Split
from heedful.errors import BadInput
from heedful.models.network import Config
from heedful.models.training import Recipe
from studies.roar.ledger import NOTHING, Ledger, RoarRun
from studies.roar.rankings import Ranks
from studies.roar.retraining import (
    Accuracies,
    Ids,
    Imputation,
    Labels,
    Mode,
    Reviews,
    TrainingCase,
    replaced,
    retrain,
    word_frequencies,
)

CONTROL = "random"
Watcher = Callable[[int, int, int, int], None]
"""Told after every batch: the models done, of how many, and the steps done of those under way, of how many."""


@final
@dataclass(frozen=True)
class RoarPlan:
    """Methods, shares in per cent, and how many seeds to train from; the random control is always among the methods."""

    methods: tuple[str, ...] = (CONTROL, "attention-mean", "gradient-x-input", "lime-exact", "leave-one-out")
    modes: tuple[Mode, ...] = ("remove", "keep")
    percents: tuple[int, ...] = tuple(range(0, 101, 10))
    n_seeds: int = 1
    imputation: Imputation = "mean"

    def __post_init__(self) -> None:
        wrong = [percent for percent in self.percents if not 0 <= percent <= 100]
        if wrong or self.n_seeds < 1:
            raise BadInput(
                f"A plan needs shares from 0 to 100 % and at least 1 seed; {wrong or self.n_seeds} was given."
            )
        if CONTROL not in self.methods:
            object.__setattr__(self, "methods", (CONTROL, *self.methods))

    def runs(self) -> list[RoarRun]:
        """Every model, seed by seed, so that a run that is stopped has whole seeds."""
        return [
            run
            for seed in range(self.n_seeds)
            for run in (
                RoarRun(NOTHING, NOTHING, 0, seed),
                *(
                    RoarRun(method, mode, percent, seed)
                    for method in dict.fromkeys(self.methods)
                    for mode in dict.fromkeys(self.modes)
                    for percent in sorted(set(self.percents) - {0})
                ),
            )
        ]


@final
class RoarSetup(NamedTuple):
    """What all models have in common: the texts, the sizes, and how they are trained."""

    reviews: Mapping[Split, Reviews]
    config: Config
    n_words: int
    recipe: Recipe


def carry_out(
    plan: RoarPlan,
    setup: RoarSetup,
    ranks: Mapping[tuple[str, Split], Ranks],
    ledger: Ledger,
    at_once: int = 1,
    watch: Watcher = lambda *_: None,
) -> dict[RoarRun, Accuracies]:
    """Trains what the ledger does not hold, `at_once` models side by side, and gives all results of the plan."""
    runs = plan.runs()
    labels: dict[Split, Labels] = {split: part.labels for split, part in setup.reviews.items()}
    n_epochs = setup.recipe.n_epochs
    by_mean = plan.imputation == "mean"
    frequencies = word_frequencies(setup.reviews["train"], setup.n_words) if by_mean else None
    missing = [run for run in runs if run not in ledger.results]
    for start in range(0, len(missing), at_once):
        group, n_done = missing[start : start + at_once], len(runs) - len(missing) + start

        def tell(epoch: int, count: int, n_batches: int, n_done: int = n_done) -> None:
            watch(n_done, len(runs), epoch * n_batches + count, n_epochs * n_batches)

        cases = [_case(run, setup.reviews, ranks) for run in group]
        accuracies = retrain(setup.config, setup.n_words, setup.recipe, labels, cases, tell, frequencies)
        # Written together: after a kill whole groups are missing, and the same models are trained side by side again.
        ledger.add(zip(group, accuracies, strict=True))
    return {run: ledger.results[run] for run in runs}


def _case(run: RoarRun, reviews: Mapping[Split, Reviews], ranks: Mapping[tuple[str, Split], Ranks]) -> TrainingCase:
    ids: dict[Split, Ids] = {}
    for split, part in reviews.items():
        whole = run.method == NOTHING
        ids[split] = part.ids if whole else replaced(part, ranks[run.method, split], run.mode, run.percent)
    return TrainingCase(ids, run.seed)
