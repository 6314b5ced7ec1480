"""Properties of a method over many texts: do scores show confidence, and are they alike where the model works alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.document import Document
from heedful.errors import BadInput, Unsupported
from heedful.evaluation.sample import draw
from heedful.explainers import configure
from heedful.explainers.explain import explain
from heedful.explanation import Explanation
from heedful.metrics import direction
from heedful.models import Model, check_model
from heedful.models.recording import Recordable, record
from heedful.statistics.correlation import spearman
from heedful.statistics.intervals import jackknife_interval, rank_correlation_interval
from heedful.statistics.quantity import Quantity, mean_over_texts
from heedful.target import Target

_FEWEST, _FOLDS, _MOST_CLASSES = 10, 5, 20


@final
@dataclass(frozen=True)
class Diagnostics:
    """Three diagnostic properties of one method on a sample of texts.

    Atanasova et al., 2020 (arXiv:2009.13295), Section 4. Differs from the source: least squares, an interval over
    texts, explanations compared by cosine and by word, and all pairs of texts in place of 2,000.

    `confidence_error` is the mean absolute error of the model's confidence as predicted from the scores, and
    `confidence_gain` how much smaller it is than that of the mean confidence of the other texts, which needs no scores:
    above 0 the scores indicate confidence. `dataset_consistency` and `rationale_consistency` are Spearman's ρ between
    differences of activations and differences of explanations: of pairs of texts, and of two models on each text.
    """

    method: str
    n_texts: int
    confidence_error: Quantity
    confidence_gain: Quantity
    dataset_consistency: Quantity
    rationale_consistency: Quantity | None = None
    notes: tuple[str, ...] = ()
    """Why a consistency is not a number."""


def diagnose(
    model: Model,
    dataset: Any,
    method: str = "lime",
    *,
    other: Model | None = None,
    n: int = 50,
    split: str = "test",
    seed: int = 0,
    **settings: Any,
) -> Diagnostics:
    """Whether a method's scores indicate confidence, and are alike where the model works alike.

    Confidence indication: for each text and every other class c, the saliency distance Σ_j (s_j of the predicted class
    − s_j of c); its maximum, minimum and mean predict the probability of the predicted class, by least squares fitted
    to the other four fifths of the texts, and clipped to [0, 1]. Data-set consistency: for every pair of texts the mean
    difference of activations, and that of explanations: 1 − the cosine of their scores, summed by word. Rationale
    consistency: both for each text between the model and `other`, one of the same architecture with other weights.
    Activations are the values in every attention layer, averaged over tokens; of a function its outputs. Texts of
    different lengths alone can cause a correlation: compare with the method `random`.
    """
    check_model(model)
    configure(method, settings)
    texts = draw(dataset, n, split, seed).texts
    if len(texts) < _FEWEST or not 2 <= len(model.classes) <= _MOST_CLASSES or model.returns == "scores":
        raise BadInput(f"diagnose needs {_FEWEST} texts and probabilities of 2 to {_MOST_CLASSES} classes.")
    classes, quiet = range(len(model.classes)), {"progress": None, **settings}
    by_class = [list(explain(model, list(texts), method, target=c, **quiet)) for c in classes]
    documents, logits = [e.document for e in by_class[0]], model.predict(texts)
    best = logits.argmax(axis=1)
    own = [by_class[c][i] for i, c in enumerate(best.tolist())]
    error, gain = _confidence(model, by_class, logits)
    inside = np.stack([_activations(model, document) for document in documents])
    rationale = None
    if other is not None:
        check_model(other)
        again = [explain(other, text, method, target=int(c), **settings) for text, c in zip(texts, best, strict=True)]
        rationale = _rationale(inside, other, own, again)
    pairs = _dataset(inside, own)
    return Diagnostics(method, len(texts), error, gain, pairs, rationale, tuple(_notes(pairs, rationale)))


def _notes(pairs: Quantity, rationale: Quantity | None) -> Iterator[str]:
    """Why a consistency is not a number: there is no correlation with differences that are all equal."""
    why = "their activations, or their explanations, differ equally everywhere, or not at all."
    if isnan(pairs.value):
        yield f"There is no data-set consistency: of all pairs of texts, {why}"
    if rationale is not None and isnan(rationale.value):
        yield f"There is no rationale consistency: between the two models, {why} Give a model with other weights."


def _confidence(
    model: Model, by_class: Sequence[Sequence[Explanation]], logits: Float[np.ndarray, "text class"]
) -> tuple[Quantity, Quantity]:
    """The error of the confidence as predicted from saliency distances, and how much smaller it is than without."""
    sums, best = np.array([[e.scores.sum() for e in row] for row in by_class]), logits.argmax(axis=1).tolist()
    targets = [Target(c, name, None, "probability", model.returns) for c, name in enumerate(model.classes)]
    p = np.array([targets[c].of(row[None])[0] for c, row in zip(best, logits, strict=True)])
    distances = [np.delete(sums[c, i] - sums[:, i], c) for i, c in enumerate(best)]
    x = np.array([[gap.max(), gap.min(), gap.mean(), 1.0] for gap in distances])
    errors, plain = _errors(x, p), _errors(x[:, 3:], p)
    return mean_over_texts(errors, (0.0, 1.0)), mean_over_texts(plain - errors, (-1.0, 1.0))


def _dataset(inside: Float[np.ndarray, "text _"], own: Sequence[Explanation]) -> Quantity:
    """ρ over pairs of texts between the differences of activations and those of explanations."""
    pairs, words = np.array(list(combinations(range(len(own)), 2))), [_by_word(e) for e in own]
    acts = np.abs(inside[pairs[:, 0]] - inside[pairs[:, 1]]).mean(axis=1)
    gaps = np.array([_gap(a, b) for a, b in combinations(words, 2)])
    rho, rests = spearman(acts, gaps), [(pairs != text).all(axis=1) for text in range(len(own))]
    without = np.array([spearman(acts[rest], gaps[rest]) for rest in rests])
    return Quantity(rho, *jackknife_interval(rho, without, (-1.0, 1.0)))


def _rationale(
    inside: Float[np.ndarray, "text _"], other: Model, own: Sequence[Explanation], again: Sequence[Explanation]
) -> Quantity:
    """ρ over texts between the differences of two models' activations and those of their explanations."""
    there = [_activations(other, e.document) for e in again]
    if any(a.shape != b.shape for a, b in zip(inside, there, strict=True)):
        raise Unsupported("The other model has activations of another size; give one of the same architecture.")
    if any(e.units != f.units for e, f in zip(own, again, strict=True)):
        raise Unsupported("The other model divides the texts into other units; give one with the same tokenizer.")
    acts = np.array([np.abs(a - b).mean() for a, b in zip(inside, there, strict=True)])
    gaps = [1 - float(direction(e.scores) @ direction(f.scores)) for e, f in zip(own, again, strict=True)]
    rho = spearman(acts, np.array(gaps))
    return Quantity(rho, *rank_correlation_interval(rho, len(own)))


def _errors(x: Float[np.ndarray, "text _"], p: Float[np.ndarray, "text"]) -> Float[np.ndarray, "text"]:
    """|predicted − true| of every text, by least squares fitted without its fold."""
    fold, errors = np.arange(len(p)) % _FOLDS, np.zeros(len(p))
    for number in range(_FOLDS):
        here = fold == number
        weights = np.linalg.lstsq(x[~here], p[~here], rcond=None)[0]
        errors[here] = np.abs(np.clip(x[here] @ weights, 0, 1) - p[here])
    return errors


def _by_word(explanation: Explanation) -> dict[str, float]:
    """The scores summed by word, scaled to length 1."""
    sums: dict[str, float] = {}
    for unit, score in zip(explanation.units, explanation.scores.tolist(), strict=True):
        sums[unit.casefold()] = sums.get(unit.casefold(), 0.0) + score
    return dict(zip(sums, direction(np.array([*sums.values()])).tolist(), strict=True))


def _gap(one: dict[str, float], other: dict[str, float]) -> float:
    return 1 - sum(score * other[word] for word, score in one.items() if word in other)


def _activations(model: Model, document: Document) -> Float[np.ndarray, "_"]:
    """The values of every attention layer, averaged over tokens; the outputs of a model without recorded layers."""
    if not isinstance(model, Recordable) or "layers" not in model.offers:
        return model.logits([document])[0]
    means = [call.v[0].double().mean(dim=-2).flatten().cpu().numpy() for call in record(model, [document]).calls]
    return np.concatenate(means)
