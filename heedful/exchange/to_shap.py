"""Explanations of heedful as a `shap.Explanation`, for shap's plots."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.document import Document, Unit
from heedful.errors import MissingPackage
from heedful.explanation import Explanation


def as_shap(
    document: Document,
    unit: Unit,
    scores: Float[np.ndarray, "unit"],
    error: Float[np.ndarray, "unit"] | None,
    base: float,
    output: str,
) -> Any:
    """A `shap.Explanation` as shap's plots take it: one row for a text, a batch of one for an image."""
    shap = _shap()
    if document.picture is not None:
        (rows, columns), units = document.picture.grid, document.unit_of(unit)
        colours = [
            [patch.mean(axis=(0, 1)) for patch in np.array_split(band, columns, axis=1)]
            for band in np.array_split(document.picture.rgb, rows)
        ]
        return shap.Explanation(
            values=scores[units[units >= 0]].reshape(1, rows, columns, 1, 1),
            base_values=np.array([[base]]),
            data=np.array([colours]).round().astype(np.uint8),
            output_names=[output],
        )
    # A row of one output, selected from a batch of one text and one output, so that shap knows the axes.
    bounds = (None, None) if error is None else ((scores - error)[None, :, None], (scores + error)[None, :, None])
    batch = shap.Explanation(
        values=scores[None, :, None],
        base_values=np.array([[base]]),
        data=np.array([_spaced(document, unit)], dtype=object),
        feature_names=list(document.units(unit)),
        output_names=[output],
        lower_bounds=bounds[0],
        upper_bounds=bounds[1],
    )
    return batch[0, :, 0]


def _spaced(document: Document, unit: Unit) -> list[str]:
    """The units with the spaces after them, as in shap's own explanations: its text plot joins them."""
    units = document.units(unit)
    if unit not in ("token", "word"):
        return [f"{text} " for text in units]
    words = document.words.tolist()
    tokens = [span for span, word in zip(document.spans, words, strict=True) if word >= 0]
    spans = tokens if unit == "token" else document.word_spans
    after = [document.text[end:start] for (_, end), (start, _) in pairwise(spans)]
    gaps = [gap if not gap.strip() else " " for gap in after]
    return [text + gap for text, gap in zip(units, [*gaps, ""], strict=True)]


def words_as_shap(explanations: Sequence[Explanation], words: Sequence[Mapping[str, Sequence[float]]]) -> Any:
    """A `shap.Explanation` of texts × words, from the scores of each word's occurrences in each text."""
    names = sorted({word for text in words for word in text})
    return _shap().Explanation(
        values=np.array([[sum(text.get(name, ())) for name in names] for text in words], dtype=float),
        base_values=np.array([base_value(explanation) for explanation in explanations]),
        data=np.array([[len(text.get(name, ())) for name in names] for text in words]),
        feature_names=names,
    )


def base_value(explanation: Explanation) -> float:
    """What is added to the scores: the intercept of a linear surrogate, else the output minus all scores."""
    return float(explanation.facts.get("intercept", explanation.output - explanation.scores.sum()))


def _shap() -> Any:
    try:
        with warnings.catch_warnings():
            # shap warns of what it uses itself.
            warnings.simplefilter("ignore")
            import shap
    except ImportError as missing:
        raise MissingPackage("to_shap needs the package shap; run pip install shap.") from missing
    return shap
