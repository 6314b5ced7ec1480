"""Does a model that is trained with uniform or random attention do as well?"""

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, final

import numpy as np

from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult
from heedful.evaluation.probes.inquiry import Inquiry, difference_of, is_above, is_below, mean_quantity
from heedful.evaluation.probes.retraining import (
    Retraining,
    Start,
    between_seeds,
    correct,
    training_texts,
    word_attention,
)
from heedful.models.attention_edits import uniform

_MARGIN = 0.03
"""A loss of accuracy below this counts as none."""


@final
@dataclass(frozen=True)
class UniformAndFrozen(Probe):
    """Accuracy of the model trained again with attention that is learned, uniform, or frozen at random weights.

    Also how much the attention of two trainings differs that differ only in their seed. `start="own"` begins at the
    model's weights with new ones for what acts through attention alone; "scratch", as in the source, needs more texts
    and epochs. Intervals are over test texts; a text's value is its mean over `n_seeds` trainings. Where learned
    attention does not reach the accuracy of the model itself, the training is too short to say that it is not needed.
    """

    name: ClassVar[str] = "uniform-and-frozen"
    question: ClassVar[str] = "Does the model do as well if it is trained with uniform or with random attention?"
    source: ClassVar[str] = "Wiegreffe & Pinter, 2019, arXiv:1908.04626, Sections 3.1 and 3.2"
    use: ClassVar[AttentionUse] = "saying that attention matters"
    trains: ClassVar[bool] = True
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

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        texts = training_texts(inquiry)
        work = Retraining(self.start, self.n_epochs, self.n_seeds, self.learning_rate)
        rows = inquiry.step(self.name, lambda: self._trained(inquiry, work))
        right = {name: np.array(rows[name], dtype=np.float64) for name in ("own", "learned", "uniform", "frozen")}
        accuracy = {name: mean_quantity(right[name]) for name in ("learned", "uniform", "frozen")}
        published = {
            "learned": "IMDb 0.902, SST 0.831, AG News 0.964 (F1)",
            "uniform": "IMDb 0.879, SST 0.822, AG News 0.960 (F1)",
        }
        n = f"trained on {len(texts.documents):,} texts"
        findings = [
            Finding(
                f"Accuracy with {name} attention, {n}", value, accuracy["learned"], "learned", published.get(name, "")
            )
            for name, value in accuracy.items()
        ]
        if work.n_seeds > 1:
            seeds = mean_quantity(np.array(rows["seeds"], dtype=np.float64), (0.0, log(2)))
            findings.append(Finding("Divergence of the attention of two seeds, of at most 0.693", seeds))
        gaps = {name: difference_of(right["learned"], right[name]) for name in ("uniform", "frozen")}
        findings += [Finding(f"Accuracy lost with {name} attention", gap) for name, gap in gaps.items()]
        numbers = ", ".join(f"{accuracy[name].value:.1%} {name}" for name in accuracy)
        if is_above(gaps["uniform"]) and is_above(gaps["frozen"]):
            why = f"The task needs attention: {numbers}."
            return ProbeResult(tuple(findings), "yes", why)
        if is_above(difference_of(right["own"], right["learned"])):
            why = (
                f"Trained too little, raise n_epochs or learning_rate: {numbers}; the model: {right['own'].mean():.1%}."
            )
            return ProbeResult(tuple(findings), "unknown", why)
        if is_above(gaps["uniform"]) and is_below(gaps["frozen"], _MARGIN):
            why = f"The task needs attention, but weights that are not learned do as well: {numbers}."
            return ProbeResult(tuple(findings), "partly", why)
        if is_below(gaps["uniform"], _MARGIN):
            why = f"The task does not need attention: {numbers}."
            return ProbeResult(tuple(findings), "no", why)
        return ProbeResult(tuple(findings), "unknown", f"The texts do not show whether the task needs it: {numbers}.")

    def _trained(self, inquiry: Inquiry, work: Retraining) -> dict[str, Any]:
        texts = training_texts(inquiry)
        right: dict[str, list[Any]] = {"learned": [], "uniform": [], "frozen": []}
        attention = []
        for seed in range(work.n_seeds):
            learned = work.trained(inquiry, seed)
            right["learned"].append(correct(learned, texts))
            attention.append(word_attention(learned, inquiry.documents))
            inquiry.watch((seed + 1 / 3) / work.n_seeds)
            even = work.trained(inquiry, seed, edit=uniform)
            right["uniform"].append(correct(even, texts, uniform))
            inquiry.watch((seed + 2 / 3) / work.n_seeds)
            frozen = work.trained(inquiry, seed, frozen_attention=True)
            right["frozen"].append(correct(frozen, texts))
            inquiry.watch((seed + 1) / work.n_seeds)
        right["own"] = [correct(inquiry.model, texts)]
        means: dict[str, Any] = {name: np.mean(rows, axis=0).tolist() for name, rows in right.items()}
        return {**means, "seeds": between_seeds(attention).tolist() if work.n_seeds > 1 else []}
