"""Models of other packages: scikit-learn classifiers and transformers pipelines."""

from collections.abc import Callable
from typing import Any

import numpy as np

from heedful.errors import BadInput, Unsupported, describe_error
from heedful.target import Returns

TASKS = (
    *("text-classification", "text-generation", "image-classification"),
    *("translation", "summarization", "text2text-generation", "token-classification", "fill-mask"),
)
"""The transformers pipelines that return the output of their model unchanged."""
_APPLIED: dict[str, Returns] = {"softmax": "logits", "sigmoid": "independent-logits"}


def is_pipeline(model: object) -> bool:
    """Whether it is a transformers pipeline with a network."""
    named = any(
        kind.__name__ == "Pipeline" and kind.__module__.startswith("transformers.") for kind in type(model).mro()
    )
    network = getattr(model, "model", None)
    return named and any(kind.__name__ == "PreTrainedModel" for kind in type(network).mro())


def parts_of(pipeline: Any) -> tuple[Any, Any, Returns | None]:
    """The network of a transformers pipeline, its tokenizer or image processor, and the function it was told to apply.

    Without such a function the pipeline applies the one that the network's configuration asks for.
    """
    if not pipeline.task.startswith(TASKS):
        raise Unsupported(
            f"A pipeline for {pipeline.task} changes its model's output; wrap the model with its tokenizer, or a "
            "function of texts."
        )
    applied = getattr(pipeline, "_postprocess_params", {}).get("function_to_apply")
    reader = pipeline.tokenizer if pipeline.tokenizer is not None else pipeline.image_processor
    return pipeline.model, reader, _APPLIED.get(str(getattr(applied, "value", applied)).lower())


def is_estimator(model: object) -> bool:
    """Whether it is a scikit-learn model, or has predict_proba or decision_function."""
    named = any(kind.__name__ == "BaseEstimator" for kind in type(model).mro())
    return named or _scoring_method(model) is not None


def function_of(
    estimator: Any, encode: Callable[[list[str]], Any] = lambda texts: texts
) -> tuple[Callable[[list[str]], Any], list[str] | None, Returns]:
    """A function from texts to the scores of a scikit-learn classifier, the names of its classes, what it returns.

    `encode` turns texts into what the classifier was fitted on.
    """
    name, scoring = type(estimator).__name__, _scoring_method(estimator)
    if scoring is None:
        raise BadInput(
            f"{name} has neither predict_proba nor decision_function; wrap a function of texts, such as its predict."
        )
    try:
        scoring(encode(["a"]))
    # What an estimator raises when it is given texts is not foreseeable.
    except Exception as error:
        if type(error).__name__ == "NotFittedError":
            raise BadInput(f"This {name} is not fitted yet; fit it, then wrap it.") from error
        raise BadInput(
            f"This {name} does not accept texts ({describe_error(error)}); wrap a pipeline that starts with a "
            "vectorizer, such as make_pipeline(TfidfVectorizer(), …)."
        ) from error

    def scores(texts: list[str]) -> Any:
        values = scoring(encode(texts))
        # A single number per text is the score of the second class.
        return np.stack([-values, values], axis=1) if np.ndim(values) == 1 else values

    labels = getattr(estimator, "classes_", None)
    names = None if labels is None else [str(label) for label in labels]
    return scores, names, "probabilities" if getattr(estimator, "predict_proba", None) is not None else "scores"


def _scoring_method(estimator: Any) -> Callable[[list[str]], Any] | None:
    method = getattr(estimator, "predict_proba", None) or getattr(estimator, "decision_function", None)
    return method if callable(method) else None
