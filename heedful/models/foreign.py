"""Models of other packages: scikit-learn classifiers and transformers pipelines."""

from collections.abc import Callable
from typing import Any

import numpy as np

from heedful.errors import BadInput, Unsupported, describe_error

TASKS = (
    *("text-classification", "text-generation", "image-classification"),
    *("translation", "summarization", "text2text-generation"),
)
"""The pipelines of transformers whose model is what they answer with."""


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
            f"This {name} takes no texts ({describe_error(error)}); wrap a pipeline that begins with what makes "
            "numbers of them, such as make_pipeline(TfidfVectorizer(), …)."
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
