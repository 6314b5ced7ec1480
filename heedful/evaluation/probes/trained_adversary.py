"""Can a model be trained that decides alike with other attention?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import Document
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Inquiry
from heedful.evaluation.probes.last_attention import as_distribution
from heedful.evaluation.probes.retraining import Start, divergences, retrained, training_texts, word_attention
from heedful.models.fitting.batch import BatchLoss, FitBatch
from heedful.models.fitting.fit import FitRecipe
from heedful.models.recording import Recordable, portions
from heedful.statistics.divergence import jensen_shannon, total_variation
from heedful.statistics.quantity import is_above, is_below, mean_quantity

_KEPT, _COPIED, _LESS, _UNEVEN = 0.95, 0.9, 0.05, 0.02
"""The share of decisions that counts as alike, what λ = 0 must keep, how much less an adversary may keep, and the
divergence of a shuffle below which attention is nearly uniform."""
_STRENGTHS = (0.0, 1e-3, 1e-2, 1e-1)
"""λ of the adversary; with 0 there is none."""


@final
@dataclass(frozen=True)
class TrainedAdversary(Probe):
    """A model trained to give the outputs of this one with attention as different as possible.

    Its loss is TVD(outputs) − λ · KL(its attention ‖ the model's), averaged over texts and heads, for λ of 0.001, 0.01
    and 0.1; the one with the greatest divergence that keeps 95 % of the decisions on the training texts is tested. The
    attention is other if its divergence is above half of that of a shuffle, and decides alike with 95 % of the
    decisions on the probed texts, or as many as λ = 0 keeps. Where λ = 0 keeps less than 90 %, the training is too
    short; where a shuffle hardly differs, there is no other attention. Each is trained for `n_epochs` at
    `learning_rate`, from `start`: the model's own weights with new ones for what acts through attention alone, or from
    scratch.
    A yes does not count for a verdict: that a search finds nothing is no proof.
    """

    name: ClassVar[str] = "trained-adversary"
    question: ClassVar[str] = "Can a model be trained that decides alike with other attention?"
    source: ClassVar[str] = "Wiegreffe & Pinter, 2019, arXiv:1908.04626, Section 4"
    use: ClassVar[AttentionUse] = "the only explanation"
    trains: ClassVar[bool] = True
    retrains: ClassVar[bool] = True
    yes_counts: ClassVar[bool] = False
    shows: ClassVar[str] = (
        "Whether other attention is possible for a model that reads all texts with one set of weights, which an "
        "adversary that is made text by text does not show."
    )
    does_not_show: ClassVar[str] = (
        "That the attention of the first model is wrong: the second is another model, and each may explain itself. "
        "An adversary that is not found may exist: training is a heuristic search."
    )

    start: Start = "own"
    n_epochs: int = 3
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        FitRecipe(self.n_epochs, learning_rate=self.learning_rate)

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        training_texts(inquiry)
        rows = self._trained(inquiry)
        names = "divergence", "change", "kept", "shuffled"
        columns = {name: np.array(rows[name], dtype=np.float64) for name in names}
        divergence, shuffled = (mean_quantity(columns[name], (0.0, log(2))) for name in ("divergence", "shuffled"))
        kept, copied = mean_quantity(columns["kept"]), mean_quantity(np.array(rows["copied"], dtype=np.float64))
        what = f"Divergence of the adversary's attention, λ = {rows['strength']:g}"
        findings = (
            Finding(what, divergence, shuffled, "shuffled"),
            Finding("Change of the output, total variation", mean_quantity(columns["change"])),
            Finding("Share of decisions that are the same", kept, copied, "λ = 0"),
        )
        numbers = (
            f"divergence {divergence.value:.2f}, of a shuffle {shuffled.value:.2f}; {kept.value:.0%} decided alike"
        )
        gap = mean_quantity(columns["divergence"] - columns["shuffled"] / 2, (-1.0, 1.0))
        short = copied.value < _COPIED and kept.value < _KEPT
        alike = kept.value >= min(_KEPT, copied.value)
        none = is_below(gap) or kept.value < copied.value - _LESS
        raised = "Trained too little, raise n_train, n_epochs or learning_rate: with λ = 0,"
        even = f"The attention is nearly uniform, so there is no other to find: {numbers}."
        return decide(
            findings,
            (shuffled.value < _UNEVEN, "unknown", even),
            (short, "unknown", f"{raised} {copied.value:.0%} decided alike; {numbers}."),
            (is_above(gap) and alike, "no", f"A model with other attention decides alike: {numbers}."),
            (none, "yes", f"No model that decides alike with other attention was found: {numbers}."),
            (True, "unknown", f"The texts do not decide whether other attention decides alike: {numbers}."),
        )

    def _trained(self, inquiry: Inquiry) -> dict[str, Any]:
        """The adversary that is tested. Every training is a step of its own, so that a stopped run resumes."""
        adversaries = []
        for number, strength in enumerate(_STRENGTHS, start=1):
            adversaries.append(inquiry.step(f"{self.name}-{strength:g}", partial(self._training, inquiry, strength)))
            inquiry.watch(number / len(_STRENGTHS))
        null, *others = adversaries
        return {**max(others, key=lambda rows: rows["worth"]), "copied": null["kept"]}

    def _training(self, inquiry: Inquiry, strength: float) -> dict[str, Any]:
        texts, model = training_texts(inquiry), inquiry.model
        own = outputs(model, texts.documents)
        loss = adversary_loss(model, texts.documents, own)(strength)
        adversary = retrained(inquiry, self.start, FitRecipe(self.n_epochs, learning_rate=self.learning_rate), loss)
        alike = float((outputs(adversary, texts.documents).argmax(axis=1) == own.argmax(axis=1)).mean())
        both = (word_attention(one, texts.documents) for one in (adversary, model))
        # Without decisions in common, other attention means nothing; then the mildest adversary is shown.
        worth = float(divergences(*both).mean()) if alike >= _KEPT else -strength
        return {"worth": worth, "strength": strength, **_compared(inquiry, adversary)}


def outputs(model: Recordable, documents: Sequence[Document]) -> Float[np.ndarray, "text outcome"]:
    """The distribution over classes of every text."""
    logits = np.concatenate([model.logits(some) for some in portions(model, documents)])
    return as_distribution(logits, model.returns)


def adversary_loss(model: Recordable, documents: Sequence[Document], own: Float[np.ndarray, "text outcome"]) -> Any:
    """The loss of an adversary of the model, as a function of λ."""
    rows = (row for some in portions(model, documents) for row in model.attention(some)[:, -1])
    attention = [*map(torch.from_numpy, rows)]
    target = torch.from_numpy(own)

    def of(strength: float) -> BatchLoss:
        def loss(batch: FitBatch) -> Tensor:
            p = torch.softmax(batch.logits, dim=-1)
            change = (p - target.to(p)[batch.rows]).abs().sum(dim=-1) / 2
            alpha = batch.attention
            base = torch.zeros_like(alpha)
            for row, place in enumerate(batch.rows.tolist()):
                width = min(alpha.shape[-1], attention[place].shape[-1])
                base[row, :, :width] = attention[place][:, :width].to(alpha)
            seen = (base > 0) & (alpha > 0)
            ratio = torch.where(seen, alpha.clamp(min=1e-12).log() - base.clamp(min=1e-12).log(), 0.0)
            return (change - strength * (alpha * ratio).sum(dim=-1).mean(dim=-1)).mean()

        return loss

    return of


def _compared(inquiry: Inquiry, model: Recordable) -> dict[str, list[float]]:
    """The adversary beside the model on the probed texts."""
    documents = inquiry.documents
    p, own = outputs(model, documents), outputs(inquiry.model, documents)
    base = word_attention(inquiry.model, documents)
    # Of a pair, a model may attend to the words of one text alone.
    seen = [row[:, (row > 0).any(axis=0)] for row in base]
    shuffled = [
        float(jensen_shannon(row[:, inquiry.rng(number).permutation(row.shape[1])], row).mean())
        for number, row in enumerate(seen)
    ]
    return {
        "divergence": divergences(word_attention(model, documents), base).tolist(),
        "change": total_variation(p, own).tolist(),
        "kept": (p.argmax(axis=1) == own.argmax(axis=1)).astype(float).tolist(),
        "shuffled": shuffled,
    }
