"""Does a model that is trained with uniform or random attention do as well?"""

from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.evaluation.probes import Answer, AttentionUse, Finding, Probe, ProbeResult
from heedful.evaluation.probes.inquiry import Inquiry, difference_of, is_above, is_below, mean_quantity
from heedful.evaluation.probes.retraining import (
    SHORT,
    Retraining,
    Start,
    between_seeds,
    correct,
    training_texts,
    word_attention,
)
from heedful.models.attention_edits import uniform
from heedful.statistics.intervals import seed_intervals
from heedful.statistics.quantity import Quantity

_MARGIN = 0.03
"""A loss of accuracy below this counts as none."""


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
        self._work.check()

    @property
    def _work(self) -> Retraining:
        return Retraining(self.start, self.n_epochs, self.n_seeds, self.learning_rate)

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        texts = training_texts(inquiry)
        each, seeds = _trained(self.name, inquiry, self._work)
        right = {name: rows.mean(axis=0) for name, rows in each.items()}
        accuracy = {name: mean_quantity(values) for name, values in right.items()}
        published = {
            "learned": "IMDb 0.902, SST 0.831, AG News 0.964 (F1)",
            "uniform": "IMDb 0.879, SST 0.822, AG News 0.960 (F1)",
        }
        n = f"trained on {len(texts.documents):,} texts"
        findings = [
            Finding(
                f"Accuracy with {name} attention, {n}",
                value,
                accuracy["learned"],
                "learned",
                published.get(name, ""),
                key=name,
            )
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
        answer, why = _judged(gaps["uniform"], gaps["frozen"], short)
        return ProbeResult(tuple(findings), answer, f"{why}: {numbers}.")


def _judged(uniform_loses: Quantity, frozen_loses: Quantity, short: bool) -> tuple[Answer, str]:
    """The answer, from the accuracies lost, and whether learned attention does not reach that of the model itself."""
    if short:
        return "unknown", "Trained too little for the model's own accuracy, raise n_train, n_epochs or learning_rate"
    if is_above(uniform_loses) and is_above(frozen_loses):
        return "yes", "The task needs attention"
    if is_above(uniform_loses) and is_below(frozen_loses, _MARGIN):
        return "partly", "The task needs attention, but weights that are not learned do as well"
    if is_below(uniform_loses, _MARGIN):
        return "no", "The task does not need attention"
    return "unknown", "The texts do not show whether the task needs it"


def _trained(
    probe: str, inquiry: Inquiry, work: Retraining
) -> tuple[dict[str, Float[np.ndarray, "seed text"]], Float[np.ndarray, "text"]]:
    """Which test texts every trained model gets right, and the divergence of learned attention between seeds.

    Every training is a step of its own, so that a stopped run resumes after the last one that was finished.
    """
    right: dict[str, list[Any]] = {"learned": [], "uniform": [], "frozen": []}
    attention = []
    for seed in range(work.n_seeds):
        for number, name in enumerate(right, start=1):
            row = inquiry.step(f"{probe}-{seed}-{name}", partial(_training, inquiry, work, seed, name))
            right[name].append(row["right"])
            if name == "learned":
                attention.append([np.array(one, dtype=np.float64) for one in row["attention"]])
            inquiry.watch((seed + number / len(right)) / work.n_seeds)
    return {name: np.array(rows, dtype=np.float64) for name, rows in right.items()}, between_seeds(attention)


def _training(inquiry: Inquiry, work: Retraining, seed: int, name: str) -> dict[str, Any]:
    """One training, ready for JSON."""
    texts, edit = training_texts(inquiry), uniform if name == "uniform" else None
    model = work.trained(inquiry, seed, edit=edit, frozen_attention=name == "frozen")
    row: dict[str, Any] = {"right": correct(model, texts, edit).tolist()}
    if name == "learned":
        row["attention"] = [one.tolist() for one in word_attention(model, inquiry.documents)]
    return row


def _over_trainings(right: dict[str, Float[np.ndarray, "seed text"]]) -> list[Finding]:
    """The accuracies with intervals over trainings, whatever the texts."""
    each = np.stack([rows.mean(axis=1) for rows in right.values()])
    low, high = seed_intervals(each, (0.0, 1.0))
    own = [Quantity(*row) for row in zip(each.mean(axis=1).tolist(), low.tolist(), high.tolist(), strict=True)]
    return [
        Finding(
            f"Accuracy with {name} attention, interval over {each.shape[1]} trainings",
            value,
            own[0],
            "learned",
            key=f"{name} over seeds",
        )
        for name, value in zip(right, own, strict=True)
    ]
