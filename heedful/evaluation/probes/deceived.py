"""Can the model be trained to hide the words it uses from its attention?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Columns, Inquiry, TrainAndTest
from heedful.evaluation.probes.retraining import SHORT, Start, correct, retrained, training_texts, word_attention
from heedful.explainers import Explainer
from heedful.explainers.attention import AttentionMean
from heedful.explainers.gradient import GradientXInput
from heedful.explainers.leave_one_out import LeaveOneOut
from heedful.explainers.run import run_explainer
from heedful.models.fitting.batch import BatchLoss, FitBatch
from heedful.models.fitting.fit import FitRecipe
from heedful.models.question import MaskValues, Question, Wanted
from heedful.models.recording import Recordable
from heedful.statistics.quantity import difference_of, is_above, is_below, mean_quantity

_LOSS, _GONE = 0.02, 0.01
"""Hidden words have less than 1 % of the attention; a loss of accuracy below 2 points counts as none."""
_EXPLAINED, _HONEST = 50, "trained without penalty"
_EXPLAINERS: tuple[type[Explainer], ...] = (AttentionMean, GradientXInput, LeaveOneOut)


@final
@dataclass(frozen=True)
class Deceived(Probe):
    """The model trained again with a penalty on attention to some words, which it may still use.

    The loss is cross-entropy − `penalty` · ln(1 − mass), the attention mass on these words, averaged over texts and
    heads, over `n_epochs` at `learning_rate`, from `start` as in `heedful.evaluation.probes.retraining`. Reported is
    their share of the attention to words. `words` are separated by spaces; by default the `n_words` that get the most
    attention over the training texts. They are hidden below 1 %, and a loss below 2 points counts as none. Where no
    accuracy is lost but attention stays, or training without the penalty is more than 3 points below the model, the
    training is too short to say anything.
    Beside it, what attention, gradient × input and leave-one-out then give to these words in the first 50 texts.
    Differs from the source: one training, not five, so that intervals are over texts alone; three explainers.
    """

    name: ClassVar[str] = "deceived"
    question: ClassVar[str] = "Can the model be trained to hide the words it uses from its attention?"
    source: ClassVar[str] = "Pruthi et al., 2020, arXiv:1909.07913"
    use: ClassVar[AttentionUse] = "an explanation that cannot be faked"
    trains: ClassVar[bool] = True
    retrains: ClassVar[bool] = True
    shows: ClassVar[str] = (
        "Whether attention that is shown as evidence can be trusted when its author wants to hide something: accuracy "
        "kept while the attention to the words is gone."
    )
    does_not_show: ClassVar[str] = (
        "That this model hides anything; nobody trained it to. Accuracy may be kept because other words say the same: "
        "then nothing is hidden, and removal of the words changes little, which leave-one-out shows."
    )

    words: str = ""
    n_words: int = 20
    penalty: float = 1.0
    start: Start = "own"
    n_epochs: int = 3
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.n_words < 1 or not 0 < self.penalty < inf:
            raise BadInput("The probe 'deceived' needs n_words of at least 1 and a penalty above 0.")
        FitRecipe(self.n_epochs, learning_rate=self.learning_rate)

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        texts = training_texts(inquiry)
        words = frozenset(self.words.lower().split()) or most_attended(inquiry.model, texts.documents, self.n_words)
        columns = self._trained(inquiry, texts, words)
        mass = {name: mean_quantity(columns[f"{name} mass"]) for name in ("honest", "deceived")}
        accuracy = {name: mean_quantity(columns[f"{name} right"]) for name in ("honest", "deceived")}
        lost = difference_of(columns["honest right"], columns["deceived right"])
        short = difference_of(columns["own right"], columns["honest right"]).value > SHORT
        shown = " ".join(sorted(words)[:8]) + (" …" if len(words) > 8 else "")
        findings = [
            Finding(f"Attention to the words ({shown})", mass["deceived"], mass["honest"], _HONEST, key="mass"),
            Finding("Accuracy", accuracy["deceived"], accuracy["honest"], _HONEST),
            Finding("Accuracy lost", lost, key="lost"),
        ]
        for kind in _EXPLAINERS:
            honest, now = (mean_quantity(columns[f"{name} {kind.name}"]) for name in ("honest", "deceived"))
            findings.append(Finding(f"Share of the scores of {kind.name}", now, honest, _HONEST))
        shares = f"attention {mass['deceived'].value:.2%} instead of {mass['honest'].value:.1%}"
        numbers = f"{shares}, accuracy lost {100 * lost.value:+.1f} points"
        gone = mass["deceived"].value < _GONE
        own = f"{columns['own right'].mean():.1%} of the model, {accuracy['honest'].value:.1%} without a penalty"
        little, some = "Trained too little, raise n_train, n_epochs", is_above(lost)
        small = is_below(lost, 2 * _LOSS) and lost.value < _LOSS
        return decide(
            findings,
            (short, "unknown", f"{little} or learning_rate: accuracy {own}; {numbers}."),
            (not (gone or some), "unknown", f"{little}, learning_rate or penalty: {numbers}."),
            (some and lost.value >= _LOSS, "yes", f"This training did not hide the words without loss: {numbers}."),
            (small, "no", f"The model can hide these words from its attention: {numbers}."),
            (True, "unknown", f"The texts do not show what hiding the words costs: {numbers}."),
        )

    def _trained(self, inquiry: Inquiry, texts: TrainAndTest, words: frozenset[str]) -> Columns:
        """What both models do. Every training is a step of its own, so that a stopped run resumes."""
        penalties = {"honest": 0.0, "deceived": self.penalty}
        columns = {"own right": correct(inquiry.model, texts).astype(np.float64)}
        for number, (name, penalty) in enumerate(penalties.items(), start=1):
            rows = inquiry.step(f"{self.name}-{name}", partial(self._training, inquiry, texts, words, penalty))
            columns |= {f"{name} {what}": np.array(values, dtype=np.float64) for what, values in rows.items()}
            inquiry.watch(number / len(penalties))
        return columns

    def _training(
        self, inquiry: Inquiry, texts: TrainAndTest, words: frozenset[str], penalty: float
    ) -> dict[str, list[float]]:
        recipe = FitRecipe(self.n_epochs, learning_rate=self.learning_rate)
        model = retrained(inquiry, self.start, recipe, deception_loss(texts.documents, words, penalty))
        rows = {"right": correct(model, texts).astype(float).tolist()}
        rows["mass"] = masses(model, texts.test_documents, words)
        some = texts.test_documents[:_EXPLAINED]
        return rows | {kind.name: [_share(model, document, kind(), words) for document in some] for kind in _EXPLAINERS}


def is_one_of(document: Document, words: frozenset[str]) -> Bool[np.ndarray, "token"]:
    """Which tokens belong to one of the words, in any case."""
    chosen = np.array([key.lower() in words for key in document.word_keys], dtype=bool)
    return np.where(document.words == SPECIAL, False, chosen[document.words])


def most_attended(model: Recordable, documents: Sequence[Document], n: int) -> frozenset[str]:
    """The n words with the most attention over all documents, mean over heads."""
    totals: Counter[str] = Counter()
    for document, attention in zip(documents, word_attention(model, documents), strict=True):
        words = document.words[document.words != SPECIAL]
        for word, weight in zip(words.tolist(), attention.mean(axis=0).tolist(), strict=True):
            totals[document.word_keys[word].lower()] += weight
    return frozenset(word for word, _ in sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:n])


def masses(model: Recordable, documents: Sequence[Document], words: frozenset[str]) -> list[float]:
    """The share of each text's attention to words that these words get, mean over heads."""
    rows = word_attention(model, documents)
    return [
        float(row.mean(axis=0)[is_one_of(document, words)[document.words != SPECIAL]].sum())
        for document, row in zip(documents, rows, strict=True)
    ]


def deception_loss(documents: Sequence[Document], words: frozenset[str], penalty: float) -> BatchLoss:
    """Cross-entropy − λ ln(1 − mass on the words), over the documents of a training."""
    chosen = [is_one_of(document, words) for document in documents]

    def loss(batch: FitBatch) -> Tensor:
        alpha = batch.attention
        hidden = torch.zeros(alpha.shape[0], alpha.shape[-1], dtype=alpha.dtype)
        for row, place in enumerate(batch.rows.tolist()):
            hidden[row, : len(chosen[place])] = torch.from_numpy(chosen[place])
        mass = (alpha * hidden.to(alpha)[:, None]).sum(dim=-1)
        kept = (alpha.sum(dim=-1) - mass).clamp(min=1e-9)
        return functional.cross_entropy(batch.logits, batch.labels) - penalty * kept.log().mean()

    return loss


def _share(model: Recordable, document: Document, explainer: Explainer, words: frozenset[str]) -> float:
    """The share of an explainer's scores, by size, that the words get."""
    question = Question(model, (document,), Wanted(), mask_values=MaskValues())
    scores = np.abs(run_explainer(explainer, question)[0].scores)
    chosen = np.array([key.lower() in words for key in document.word_keys], dtype=bool)
    return float(scores[chosen].sum() / scores.sum()) if scores.sum() else 0.0
