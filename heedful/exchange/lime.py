"""Reads lime's `lime.explanation.Explanation` by its attributes; lime is not imported."""

from typing import Any

from heedful.document import Document
from heedful.errors import BadInput
from heedful.exchange.parsed import Parsed, another_text_error
from heedful.target import Target


def class_of_lime(given: Any, document: Document, classes: tuple[str, ...]) -> int | None:  # noqa: ARG001
    """The class that lime explained, if it is a single one."""
    labels = [int(label) for label in given.local_exp]
    return labels[0] if len(labels) == 1 and labels[0] < len(classes) else None


def parse_lime(given: Any, document: Document, target: Target, classes: tuple[str, ...]) -> Parsed:
    """The weights of the target's class, each with the characters of its word.

    With a bag of words (lime's default) a weight is for all occurrences of the word, so the unit is the type; otherwise
    it is for one place. Words that lime's feature selection left out have no weight.
    """
    indexed = getattr(given.domain_mapper, "indexed_string", None)
    if indexed is None:
        raise BadInput("This lime explanation is of a table or an image; only explanations of texts can be read.")
    raw = indexed.raw_string()
    if raw != document.text:
        raise another_text_error("lime", raw, document.text)
    weights, intercept, output = _of_class(given, target.index, classes)
    if target.against is not None:
        other, below, less = _of_class(given, target.against, classes)
        weights = {word: weights.get(word, 0.0) - other.get(word, 0.0) for word in {**weights, **other}}
        intercept, output = intercept - below, None if output is None or less is None else output - less
    words = sorted(weights)
    places = tuple(
        tuple((int(start), int(start) + len(indexed.word(word))) for start in indexed.string_position(word))
        for word in words
    )
    return Parsed(
        package="lime",
        numbers=[float(weights[word]) for word in words],
        places=places,
        unit="type" if indexed.bow else "word",
        signed=True,
        facts={"intercept": intercept},
        output=output,
    )


def _of_class(given: Any, index: int, classes: tuple[str, ...]) -> tuple[dict[int, float], float, float | None]:
    """The weights, the intercept and the output of one class."""
    # The single output of a model is the second of the two classes that lime was given.
    label = (
        given.dummy_label if given.mode == "regression" else 1 if len(classes) == 1 and 1 in given.local_exp else index
    )
    if label not in given.local_exp:
        explained = ", ".join(classes[n] if n < len(classes) else str(n) for n in map(int, given.local_exp))
        raise BadInput(
            f"lime explained {explained or 'no class'}, but the target is {classes[index]}; pass the same class."
        )
    outputs = getattr(given, "predict_proba", None)
    output = None if outputs is None else float(outputs[label])
    return {int(word): float(weight) for word, weight in given.local_exp[label]}, float(given.intercept[label]), output
