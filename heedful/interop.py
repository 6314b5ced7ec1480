"""To and from other packages: models of scikit-learn and transformers come in, explanations go out to shap."""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.document import Document, Unit
from heedful.errors import BadInput, MissingPackage, Unsupported

TASKS = (
    *("text-classification", "text-generation", "image-classification"),
    *("translation", "summarization", "text2text-generation"),
)
"""The pipelines of transformers whose model is what they answer with."""


def said(error: BaseException) -> str:
    """What an error of somebody else's code says, in one line that can be printed anywhere."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    line = lines[0] if len(lines[0]) <= _LINE else f"{lines[0][:_LINE]}…"
    return f"{type(error).__name__}: {line.rstrip('.')}".encode("utf-8", "backslashreplace").decode()


_LINE = 200


def is_pipeline(model: object) -> bool:
    """Whether it is a pipeline of transformers around a network of its own."""
    named = any(
        kind.__name__ == "Pipeline" and kind.__module__.startswith("transformers.") for kind in type(model).mro()
    )
    network = getattr(model, "model", None)
    return named and any(kind.__name__ == "PreTrainedModel" for kind in type(network).mro())


def parts_of(pipeline: Any) -> tuple[Any, Any]:
    """The network of a transformers pipeline, with its tokenizer or image processor."""
    if not pipeline.task.startswith(TASKS):
        raise Unsupported(
            f"A pipeline for {pipeline.task} does more than its model says; wrap the model with its tokenizer, or a "
            "function of texts."
        )
    return pipeline.model, pipeline.tokenizer if pipeline.tokenizer is not None else pipeline.image_processor


def is_estimator(model: object) -> bool:
    """Whether it is a model of scikit-learn, or one that looks like it."""
    named = any(kind.__name__ == "BaseEstimator" for kind in type(model).mro())
    return named or _asked(model) is not None


def function_of(estimator: Any) -> tuple[Callable[[list[str]], Any], list[str] | None]:
    """The scores that a classifier of scikit-learn gives texts, and the names of its classes."""
    name, asked = type(estimator).__name__, _asked(estimator)
    if asked is None:
        raise BadInput(
            f"{name} has neither predict_proba nor decision_function; wrap a function of texts, such as its predict."
        )
    try:
        asked(["a"])
    # What an estimator raises when it is given texts is not foreseeable.
    except Exception as error:
        if type(error).__name__ == "NotFittedError":
            raise BadInput(f"This {name} is not fitted yet; fit it, then wrap it.") from error
        raise BadInput(
            f"This {name} takes no texts ({said(error)}); wrap a pipeline that begins with what makes numbers "
            "of them, such as make_pipeline(TfidfVectorizer(), …)."
        ) from error

    def scores(texts: list[str]) -> Any:
        found = asked(texts)
        # One number a text says how far it is on the side of the second class.
        return np.stack([-found, found], axis=1) if np.ndim(found) == 1 else found

    labels = getattr(estimator, "classes_", None)
    return scores, None if labels is None else [str(label) for label in labels]


def _asked(estimator: Any) -> Callable[[list[str]], Any] | None:
    found = getattr(estimator, "predict_proba", None) or getattr(estimator, "decision_function", None)
    return found if callable(found) else None


def as_shap(
    document: Document,
    unit: Unit,
    scores: Float[np.ndarray, "unit"],
    error: Float[np.ndarray, "unit"] | None,
    base: float,
    output: str,
) -> Any:
    """A `shap.Explanation`: of a text one row, of a picture a batch of one, which is what shap's plots take."""
    try:
        with warnings.catch_warnings():
            # shap warns of what it uses itself.
            warnings.simplefilter("ignore")
            import shap
    except ImportError as missing:
        raise MissingPackage("This needs the package shap, which is not installed: pip install shap.") from missing
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
    # A row of one output, cut from a batch of one text and one output: so shap knows which axis is which.
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
    """The units with the spaces between them, as shap's own have: its text plot sets one behind the other."""
    units = document.units(unit)
    if unit not in ("token", "word"):
        return [f"{text} " for text in units]
    words = document.words.tolist()
    tokens = [span for span, word in zip(document.spans, words, strict=True) if word >= 0]
    spans = tokens if unit == "token" else document.word_spans
    after = [document.text[end:start] for (_, end), (start, _) in pairwise(spans)]
    gaps = [gap if not gap.strip() else " " for gap in after]
    return [text + gap for text, gap in zip(units, [*gaps, ""], strict=True)]
