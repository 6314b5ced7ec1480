"""Do the attention weights help another model, which reads every word alone?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, Unsupported
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.bag_of_words import bags, fit_given, fit_learned, fitted_bag, token_numbers
from heedful.evaluation.probes.inquiry import Inquiry, TrainAndTest
from heedful.evaluation.probes.published import BAG, listed
from heedful.evaluation.probes.retraining import training_texts
from heedful.models.recording import Recordable, portions
from heedful.statistics.quantity import is_above, is_below, over_both

Weights = list[Float[np.ndarray, "_"]]
"""The attention to the tokens of the words of each text; it sums to 1."""
_MARGIN = 0.05
"""A gain of probability below this counts as none."""
_EQUAL = 1e-6
"""Fits whose probabilities differ by less had the same attention."""
_OWN, _UNIFORM, _SHUFFLED, _LEARNED = "this model's", "uniform", "shuffled", "its own, learned"
_PUBLISHED = {
    name: f"{start}{listed({corpus: row[name] for corpus, row in BAG.items()})} (F1)"
    for name, start in {_UNIFORM: "", _OWN: "of an LSTM: ", _LEARNED: ""}.items()
}


@final
@dataclass(frozen=True)
class PresetAttention(Probe):
    """How good a bag of words is that is trained with attention which is given, not learned.

        p = softmax(Σ_t α_t g(x_t) + b)

    is fitted with α uniform, this model's attention (the last layer's, at the position that is read out, the mean over
    heads, divided by its sum over words), the same weights shuffled among the words of each text, and attention that it
    learns itself. It reads the model's tokens; each of `n_seeds` fits leaves out another fifth of the training texts,
    which chooses the penalty. The answer rests on the probability of the label; a gain that is shown
    to be below 0.05, and not above 0, counts as none.
    Intervals add those over test texts and over fits, as root of the sum of squares.

    Differs from the source: g is a table, which is all that their layer for single words can compute, so the fit is
    convex but for the learned attention; they begin with trained word vectors, and have a trained adversary in place
    of the shuffle.
    """

    name: ClassVar[str] = "preset-attention"
    question: ClassVar[str] = "Do the attention weights help another model, which reads every word alone?"
    source: ClassVar[str] = "Wiegreffe & Pinter, 2019, arXiv:1908.04626, Section 3.3"
    use: ClassVar[AttentionUse] = "finding the words that decide"
    trains: ClassVar[bool] = True
    shows: ClassVar[str] = (
        "Whether the weights say which words matter for the labels, apart from the model that made them: if so, a "
        "model without context does better with them than with equal weights."
    )
    does_not_show: ClassVar[str] = (
        "That this model decides by these words: they are useful for the labels, and the model may decide otherwise. "
        "Nor, where the weights do not help, that they are wrong: they were made for states that mix words, which a "
        "bag of words does not have, and where uniform attention suffices there is nothing to gain. On texts that the "
        "model was trained on its attention may know the label; the test texts should be new to it."
    )

    n_seeds: int = 3

    def __post_init__(self) -> None:
        if self.n_seeds < 2:
            raise BadInput("The probe 'preset-attention' needs n_seeds ≥ 2.")

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        guided = _Guided(inquiry)
        runs = []
        for seed in range(self.n_seeds):
            runs.append(inquiry.step(f"{self.name}-{seed}", lambda seed=seed: guided.fitted(seed)))
            inquiry.watch((seed + 1) / self.n_seeds)
        p = {name: np.array([run[name][0] for run in runs]) for name in runs[0]}
        right = {name: np.array([run[name][1] for run in runs], dtype=np.float64) for name in runs[0]}
        accuracy = {name: over_both(rows, (0.0, 1.0)) for name, rows in right.items()}
        gain, above_null = (over_both(p[_OWN] - p[other], (-1.0, 1.0)) for other in (_UNIFORM, _SHUFFLED))
        more_right = over_both(right[_OWN] - right[_UNIFORM], (-1.0, 1.0))
        n, base = f"attention, trained on {len(guided.texts.documents):,} texts", accuracy[_UNIFORM]
        what = "Accuracy of a bag of words with"
        findings = [
            Finding(f"{what} {name} {n}", value, base, _UNIFORM, _PUBLISHED.get(name, ""), name)
            for name, value in accuracy.items()
        ]
        findings += [
            Finding("Probability of the label gained with this model's attention over uniform attention", gain),
            Finding("Probability of the label gained over the same weights shuffled", above_null),
            Finding("Accuracy gained with this model's attention over uniform attention", more_right, key="gain"),
        ]
        accuracies = ", ".join(f"{value.value:.1%} {name}" for name, value in accuracy.items())
        numbers = f"{gain.value:+.3f} in the probability of the label; accuracy {accuracies}"
        even, whose = np.abs(p[_OWN] - p[_UNIFORM]).max() < _EQUAL, "This model's attention"
        better = "better with this model's attention than with uniform attention"
        helps, partly = is_above(above_null), f"{whose} helps a bag of words more than its shuffle"
        # The weights must beat uniform attention, and shuffled weights, which are as uneven.
        return decide(
            findings,
            (even, "no", f"{whose} is uniform, so it says nothing to a bag of words: {numbers}."),
            (is_above(gain) and helps, "yes", f"A bag of words does {better}: {numbers}."),
            (is_below(gain, _MARGIN), "no", f"A bag of words does no {better}: {numbers}."),
            (helps, "partly", f"{partly}, not shown beyond uniform: {numbers}."),
            (True, "unknown", f"The texts do not show whether this model's attention helps a bag of words: {numbers}."),
        )


@final
@dataclass(frozen=True, eq=False)
class _Guided:
    """The fits of one inquiry."""

    inquiry: Inquiry

    @cached_property
    def texts(self) -> TrainAndTest:
        """The labelled texts."""
        texts = training_texts(self.inquiry)
        if texts.documents[0].picture is not None:
            raise Unsupported("This model reads images; a bag of words needs texts.")
        return texts

    @cached_property
    def _own(self) -> tuple[Weights, Weights]:
        """The model's attention in the texts to train on and to test on."""
        model = self.inquiry.model
        return attention_among_words(model, self.texts.documents), attention_among_words(
            model, self.texts.test_documents
        )

    def fitted(self, seed: int) -> dict[str, tuple[list[float], list[bool]]]:
        """The probability of the label of each test text, and whether it is the largest, by the attention."""
        texts, seed = self.texts, self.inquiry.seed + seed
        y, test_y = np.array(texts.labels), np.array(texts.test_labels)
        numbers = token_numbers(texts.documents)
        size = len(numbers) + 1, int(max(y.max(), test_y.max())) + 1
        even = tuple([np.full(len(row), 1 / len(row)) for row in part] for part in self._own)
        rng = np.random.default_rng(seed)
        shuffled = tuple([rng.permutation(row) for row in part] for part in self._own)
        results = {}
        for name, (given, given_in_tests), fit in (
            (_UNIFORM, even, fit_given),
            (_OWN, self._own, fit_given),
            (_SHUFFLED, shuffled, fit_given),
            (_LEARNED, even, fit_learned),
        ):
            bag = fitted_bag(bags(texts.documents, given, numbers), y, size, seed, fit)
            p = bag.probabilities(bags(texts.test_documents, given_in_tests, numbers))
            results[name] = p[np.arange(len(test_y)), test_y].tolist(), (p.argmax(axis=1) == test_y).tolist()
        return results


def attention_among_words(model: Recordable, documents: Sequence[Document]) -> Weights:
    """The last layer's attention at the position that is read out, the mean over heads, divided by its sum over words.

    Uniform in a text whose words get none.
    """
    rows = []
    for some in portions(model, documents):
        for document, heads in zip(some, model.attention(some)[:, -1], strict=True):
            row = heads.mean(axis=0)[: len(document.ids)][document.words != SPECIAL]
            rows.append(row / row.sum() if row.sum() > 0 else np.full(len(row), 1 / len(row)))
    return rows
