"""What inseq made, `FeatureAttributionOutput` or one of its sequences, read by its attributes; inseq is not imported.

    source, target        tokens with `.token` and `.id`; of a model that only continues, the prompt is part of `target`
    source_attributions   (source tokens, steps[, d]) or None
    target_attributions   (target tokens, steps[, d]) or None; not a number where a token comes later than the step
    attr_pos_start        the first step's place in `target`

These are the attributes of inseq 0.4 to 0.6, as their class documents them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput
from heedful.exchange.numbers import numbers
from heedful.exchange.parsed import Opened
from heedful.exchange.pieces import agree
from heedful.target import Target


def class_of(given: Any, document: Document, classes: tuple[str, ...]) -> int:  # noqa: ARG001
    """The token that was generated after the document."""
    sequence, step, _ = _step(given, document)
    return int(sequence.target[sequence.attr_pos_start + step].id)


def opened(given: Any, document: Document, target: Target, classes: tuple[str, ...]) -> Opened:
    """The attributions at the step that comes after the document, a number a token, vectors summed.

    Differs from inseq's own pictures: there vectors are joined by a norm, or scaled, as its version has it; for that,
    give what its `aggregate()` answers.
    """
    sequence, step, prefix = _step(given, document)
    after = sequence.target[sequence.attr_pos_start + step]
    if int(after.id) != target.index:
        raise BadInput(
            f"inseq explained {after.token!r} here, and the target is {classes[target.index]!r}; name this or none."
        )
    row, notes = np.zeros(len(document.ids)), ()
    if sequence.source_attributions is not None:
        source = np.flatnonzero(_segments(document) == 0)
        if not agree(document, _names(sequence.source), source):
            raise BadInput(
                f"inseq's source is {_shown(sequence.source)}, and the model reads {document.text[:40]!r} otherwise; "
                "explain the same text with the same tokenizer."
            )
        row[source] = _column(sequence.source_attributions, len(source), step)
    if sequence.target_attributions is not None:
        row[prefix] = _column(sequence.target_attributions, len(prefix), step)
    elif len(prefix):
        notes = ("inseq gave the beginning of the output no numbers; they are 0 (attribute_target=True gives them).",)
    method = str(getattr(given, "info", {}).get("attribution_method", "")).strip()
    return Opened(f"inseq {method}".strip(), row, notes=notes)


def _step(given: Any, document: Document) -> tuple[Any, int, Int[np.ndarray, "_"]]:
    """The sequence and its step that comes after the document, and the tokens that come before it in `target`."""
    sequences = getattr(given, "sequence_attributions", None)
    sequences = [given] if sequences is None else list(sequences)
    for sequence in sequences:
        both = sequence.source_attributions is not None
        if both and document.segments is None:
            continue
        begun = np.flatnonzero(_segments(document) == 1) if both else np.arange(len(document.ids))
        real = begun[document.words[begun] != SPECIAL]
        for step in range(_n_steps(sequence)):
            names = _names(sequence.target[: sequence.attr_pos_start + step])
            for tokens in (real, begun):
                if agree(document, names, tokens):
                    return sequence, step, tokens
    shown = "; ".join(_shown(sequence.target) for sequence in sequences[:3])
    raise BadInput(
        f"The text is no beginning of what inseq explained ({shown or 'nothing'}); of a translation give "
        "heedful.Pair(source, beginning), of a continuation the text up to the token that is explained."
    )


def _segments(document: Document) -> Int[np.ndarray, "token"]:
    return np.zeros(len(document.ids), dtype=np.int64) if document.segments is None else document.segments


def _n_steps(sequence: Any) -> int:
    there = [a for a in (sequence.source_attributions, sequence.target_attributions) if a is not None]
    return min((int(a.shape[1]) for a in there), default=0)


def _column(attributions: Any, n: int, step: int) -> Float[np.ndarray, "_"]:
    if attributions.shape[0] < n:
        raise BadInput(f"inseq gave {attributions.shape[0]} rows of numbers for {n} tokens; wanted: one a token.")
    column = attributions[:n, step]
    values = numbers(column) if n else np.zeros(0)
    return values.sum(axis=-1) if values.ndim > 1 else values


def _names(tokens: Sequence[Any]) -> list[str]:
    return [str(token.token) for token in tokens]


def _shown(tokens: Sequence[Any]) -> str:
    joined = " ".join(_names(tokens))
    return f"{joined[:40]}…" if len(joined) > 40 else joined
