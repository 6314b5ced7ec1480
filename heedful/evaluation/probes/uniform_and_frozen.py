"""Does a model that is trained with uniform or random attention do as well?"""

from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Inquiry
from heedful.evaluation.probes.published import UNIFORM, listed
from heedful.evaluation.probes.retraining import (
    SHORT,
    Start,
    between_seeds,
    correct,
    retrained,
    training_texts,
    word_attention,
)
from heedful.family import check_count
from heedful.models.attention_edits import uniform
from heedful.models.fitting.fit import FitRecipe
from heedful.statistics.quantity import difference_of, is_above, is_below, mean_quantity, over_seeds

_MARGIN = 0.03
"""A loss of accuracy below this counts as none."""
_PUBLISHED = {
    name: f"{listed({corpus: row[place] for corpus, row in UNIFORM.items()})} (F1)"
    for place, name in enumerate(("learned", "uniform"))
}


@final
@dataclass(frozen=True)
class UniformAndFrozen(Probe):
    """Accuracy of the model trained again with attention that is learned, uniform, or frozen at random weights.

    Also how much the attention of two trainings differs that differ only in their seed. Each training takes `n_epochs`
    at `learning_rate`. `start="own"` begins at the
    model's weights with new ones for what acts through attention alone; "scratch", as in the source, needs more texts
    and epochs. Intervals are over test texts, where a text's value is its mean over `n_seeds` trainings, and over
    trainings. Where learned attention is more than 3 points below the model itself, the training is too
    short to say anything.
    """

    name: ClassVar[str] = "uniform-and-frozen"
    question: ClassVar[str] = "Does the model do as well if it is trained with uniform or with random attention?"
    source: ClassVar[str] = "Wiegreffe & Pinter, 2019, arXiv:1908.04626, Sections 3.1 and 3.2"
    use: ClassVar[AttentionUse] = "saying that attention matters"
    trains: ClassVar[bool] = True
    retrains: ClassVar[bool] = True
    shows: ClassVar[str] = (
        "Whether the task needs attention at all. Where uniform attention is as accurate, nothing about the task can "
        "be learned from the weights."
    )
    does_not_show: ClassVar[str] = (
        "That this model does not use its attention: it was trained with it, and may rely on it although another model "
        "would not. A task that needs attention does not make the weights an explanation."
    )

    start: Start = "own"
    n_epochs: int = 3
    n_seeds: int = 3
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        check_count("n_seeds", self.n_seeds)
        self._recipe(0)

    def _recipe(self, seed: int) -> FitRecipe:
        return FitRecipe(self.n_epochs, learning_rate=self.learning_rate, seed=seed)

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        texts = training_texts(inquiry)
        each, seeds = self._trained(inquiry)
        right = {name: rows.mean(axis=0) for name, rows in each.items()}
        accuracy = {name: mean_quantity(values) for name, values in right.items()}
        n, base = f"attention, trained on {len(texts.documents):,} texts", accuracy["learned"]
        findings = [
            Finding(f"Accuracy with {name} {n}", value, base, "learned", _PUBLISHED.get(name, ""), name)
            for name, value in accuracy.items()
        ]
        if self.n_seeds > 1:
            apart = mean_quantity(seeds, (0.0, log(2)))
            findings += _over_trainings(each)
            findings.append(Finding("Divergence of the attention of two seeds, of at most 0.693", apart))
        gaps = {name: difference_of(right["learned"], right[name]) for name in ("uniform", "frozen")}
        findings += [
            Finding(f"Accuracy lost with {name} attention", gap, key=f"lost with {name}") for name, gap in gaps.items()
        ]
        short = difference_of(correct(inquiry.model, texts).astype(np.float64), right["learned"]).value > SHORT
        numbers = ", ".join(f"{value.value:.1%} {name}" for name, value in accuracy.items())
        needed, random_does = is_above(gaps["uniform"]), is_below(gaps["frozen"], _MARGIN)
        little = "Trained too little for the model's own accuracy, raise n_train, n_epochs or learning_rate"
        as_well = f"The task needs attention, but weights that are not learned do as well: {numbers}."
        return decide(
            findings,
            (short, "unknown", f"{little}: {numbers}."),
            (needed and is_above(gaps["frozen"]), "yes", f"The task needs attention: {numbers}."),
            (needed and random_does, "partly", as_well),
            (is_below(gaps["uniform"], _MARGIN), "no", f"The task does not need attention: {numbers}."),
            (True, "unknown", f"The texts do not show whether the task needs it: {numbers}."),
        )

    def _trained(self, inquiry: Inquiry) -> tuple[dict[str, Float[np.ndarray, "seed text"]], Float[np.ndarray, "text"]]:
        """Which test texts every trained model gets right, and the divergence of learned attention between seeds.

        Every training is a step of its own, so that a stopped run resumes after the last one that was finished.
        """
        right: dict[str, list[Any]] = {"learned": [], "uniform": [], "frozen": []}
        attention = []
        for seed in range(self.n_seeds):
            for number, name in enumerate(right, start=1):
                row = inquiry.step(f"{self.name}-{seed}-{name}", partial(self._training, inquiry, seed, name))
                right[name].append(row["right"])
                if name == "learned":
                    attention.append([np.array(one, dtype=np.float64) for one in row["attention"]])
                inquiry.watch((seed + number / len(right)) / self.n_seeds)
        return {name: np.array(rows, dtype=np.float64) for name, rows in right.items()}, between_seeds(attention)

    def _training(self, inquiry: Inquiry, seed: int, name: str) -> dict[str, Any]:
        """One training, ready for JSON."""
        texts, edit = training_texts(inquiry), uniform if name == "uniform" else None
        model = retrained(inquiry, self.start, self._recipe(seed), edit=edit, frozen_attention=name == "frozen")
        row: dict[str, Any] = {"right": correct(model, texts, edit).tolist()}
        if name == "learned":
            row["attention"] = [one.tolist() for one in word_attention(model, inquiry.documents)]
        return row


def _over_trainings(right: dict[str, Float[np.ndarray, "seed text"]]) -> list[Finding]:
    """The accuracies with intervals over trainings, whatever the texts."""
    accuracy = {name: over_seeds(rows.mean(axis=1), (0.0, 1.0)) for name, rows in right.items()}
    what = f"attention, interval over {len(right['learned'])} trainings"
    return [
        Finding(f"Accuracy with {name} {what}", value, accuracy["learned"], "learned", key=f"{name} over seeds")
        for name, value in accuracy.items()
    ]
