"""The scale of values on a text: which value is the worst, which the best, and which differences are rounding.

It comes from the model and the text alone, so that what is said of a method does not depend on the other methods.
"""

from collections.abc import Sequence
from dataclasses import asdict
from math import inf, isfinite
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document.note import Note
from heedful.evaluation.journal import DocumentResult
from heedful.metrics import Evaluation, Metric
from heedful.metrics.linear_datamodelling import LinearDatamodelling
from heedful.metrics.removal import gain_from, loss_without
from heedful.models import Model
from heedful.statistics.ties import NOISE

_OWN_TIE = 1e-9
"""The difference that is a tie for metrics that are not in the scale of the target."""


@final
class TextScale(NamedTuple):
    """For every metric and document the values that score 0 and 1, and the difference of values that is a tie.

    Where 0 and 1 are no further apart than ties are, no method can be better than another, and all score ½.
    """

    worst: Float[np.ndarray, "metric document"]
    best: Float[np.ndarray, "metric document"]
    tie: Float[np.ndarray, "metric document"]

    @staticmethod
    def plain(higher: Sequence[bool], n_documents: int) -> "TextScale":
        """From 0 to 1, or from 1 to 0 where lower values are better."""
        up = np.repeat(np.asarray(higher, dtype=np.float64)[:, None], n_documents, axis=1)
        return TextScale(1.0 - up, up, np.full_like(up, _OWN_TIE))

    @staticmethod
    def of(
        higher: Sequence[bool],
        ends: Sequence[Sequence[Sequence[float] | None]],
        levels: Sequence[float],
        bounds: Sequence[tuple[float, float]] = (),
    ) -> "TextScale":
        """With the bounds of every metric, and its ends on every document where they are known.

        Metrics without bounds are in the scale of the outputs, whose sizes are given.
        """
        scale = TextScale.plain(higher, len(levels))
        for metric, by_document in enumerate(ends):
            own_bounds = bounds[metric] if bounds else (-inf, inf)
            bounded = isfinite(own_bounds[1] - own_bounds[0])
            if bounded:
                scale.worst[metric], scale.best[metric] = own_bounds if higher[metric] else own_bounds[::-1]
            for document, own in enumerate(by_document):
                if own is not None:
                    scale.worst[metric, document], scale.best[metric, document] = own
                    scale.tie[metric, document] = _OWN_TIE if bounded else NOISE * levels[document]
        return scale

    def at(self, columns: Sequence[int], texts: np.ndarray) -> "TextScale":
        """The scale of some of the metrics on some of the documents."""
        return TextScale(*(part[columns][:, texts] for part in self))

    def scores(
        self, values: Float[np.ndarray, "method metric document"]
    ) -> Float[np.ndarray, "method metric document"]:
        """Values as scores from 0, the worst that the text allows, to 1, the best; ½ where it allows no difference.

        They are not clipped: where an output is not monotone in the words that are removed, a value may lie beyond.
        """
        width = np.where(self.is_flat, 1.0, self.best - self.worst)
        scores = np.where(self.is_flat, 0.5, (values - self.worst) / width)
        return np.where(np.isnan(values), np.nan, scores)

    @property
    def is_flat(self) -> Bool[np.ndarray, "metric document"]:
        """Where no method can be better than another."""
        return np.abs(self.best - self.worst) <= 2 * self.tie

    @property
    def score_ties(self) -> Float[np.ndarray, "metric document"]:
        """The difference of scores that is a tie."""
        width = np.abs(self.best - self.worst)
        return self.tie / np.where(width > 0, width, 1.0)


def value_ends(metric: Metric, evaluation: Evaluation) -> tuple[float, float] | None:
    """The values that score 0 and 1 on this document, whatever the explanation; None if they are the metric's bounds.

    Metrics of removal are in the scale of the target. There the best is how far the output moves if all evidence for
    the target is removed, and all evidence against it, or how far it moves from the empty text if they are added: the
    larger of the ends of every deletion and insertion curve, the same for all methods. One alone is not enough: where a
    word is repeated, removing it may change nothing and adding it everything. Of linear datamodelling the best is the
    score of the best linear surrogate, where it is known.
    """
    if isinstance(metric, LinearDatamodelling) and (ceiling := metric.ceiling(evaluation)) is not None:
        return metric.bounds[0], ceiling
    if not metric.in_target:
        return None
    settings = asdict(metric)
    everything = np.ones((1, len(evaluation.scores)), dtype=bool)
    given = everything, settings.get("absence", "replace"), settings.get("measure_of", "target")
    reach = float(max(change(evaluation, *given, "any")[0] for change in (loss_without, gain_from)))
    least = 0.0 if settings.get("evidence") == "any" else -reach
    return (least, reach) if metric.better == "higher" else (reach, least)


def ceiling_notes(results: Sequence[DocumentResult]) -> list[Note]:
    """The linear datamodelling score of the best linear surrogate, where it is known, as a note."""
    name = LinearDatamodelling.name
    known = [result.ends[name][1] for result in results if name in result.ends]
    if not known:
        return []
    texts = "1 text" if len(known) == 1 else f"{len(known)} texts"
    sentence = f"{name}: no scores have much more than {np.mean(known):.2f}, the mean of the best surrogate on {texts}."
    return [Note(sentence, "remark")]


def zero_notes(model: Model, results: Sequence[DocumentResult]) -> list[Note]:
    """On how many texts the model's only output is exactly 0, if it has a note on that."""
    n = sum(result.skipped is None and result.level == 0 for result in results)
    if model.note_of_zero is None or n == 0:
        return []
    return [Note(f"{n:,} of {len(results):,} texts: {model.note_of_zero}", model.note_of_zero.kind)]
