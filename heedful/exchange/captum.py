"""Reads captum's `VisualizationDataRecord` and `LLMAttributionResult` by their attributes; captum is not imported.

Its plain tensors, (1, tokens) or (1, tokens, embedding), are read as numbers.
"""

from typing import Any

from heedful.document import Document
from heedful.errors import BadInput
from heedful.exchange.numbers import parse_numbers
from heedful.exchange.parsed import Parsed
from heedful.target import Target


def class_of_captum_record(given: Any, document: Document, classes: tuple[str, ...]) -> int | str | None:  # noqa: ARG001
    """The class that was attributed, if it is one of the model's."""
    known = (
        given.attr_class in classes if isinstance(given.attr_class, str) else given.attr_class in range(len(classes))
    )
    return given.attr_class if known else None


def parse_captum_record(given: Any, document: Document, target: Target, classes: tuple[str, ...]) -> Parsed:
    """The attributions to draw, one per token."""
    theirs = class_of_captum_record(given, document, classes)
    if theirs is not None and theirs not in (target.index, classes[target.index]):
        raise BadInput(
            f"captum attributed {theirs}, but the target is {classes[target.index]}; pass the same class, or none."
        )
    delta = None if given.convergence_score is None else parse_numbers(given.convergence_score)
    facts = {"convergence": float(delta.flat[0])} if delta is not None and delta.size == 1 else {}
    return Parsed("captum", given.word_attributions, tuple(map(str, given.raw_input_ids)), facts=facts)


def class_of_captum_result(given: Any, document: Document, classes: tuple[str, ...]) -> int | None:  # noqa: ARG001
    """The first generated token, if the model has one token of that name."""
    name = _first_name(given)
    return classes.index(name) if name is not None and classes.count(name) == 1 else None


def parse_captum_result(given: Any, document: Document, target: Target, classes: tuple[str, ...]) -> Parsed:  # noqa: ARG001
    """The attributions of the first generated token, the one after the prompt."""
    theirs = _first_name(given)
    if theirs in classes and theirs != classes[target.index]:
        raise BadInput(
            f"captum attributed {theirs!r}, but the target is {classes[target.index]!r}; pass the same token, or none."
        )
    if given.token_attr is None and len(given.output_tokens) != 1:
        raise BadInput(
            f"captum attributed {len(given.output_tokens)} tokens together, but a target is one token; give a result "
            "with token_attr."
        )
    row = given.seq_attr if given.token_attr is None else given.token_attr[0]
    return Parsed("captum", row, tuple(map(str, given.input_tokens)))


def _first_name(given: Any) -> str | None:
    """The characters of the first generated token, its space included."""
    return str(given.output_tokens[0]).replace("Ġ", " ").replace("▁", " ") if given.output_tokens else None
