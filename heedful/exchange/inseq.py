"""Reads inseq's `FeatureAttributionOutput`, or one of its sequences, by its attributes; inseq is not imported.

    source, target        tokens with `.token` and `.id`; for a decoder, the prompt is part of `target`
    source_attributions   (source tokens, steps[, d]) or None
    target_attributions   (target tokens, steps[, d]) or None; NaN where a token is later than the step
    attr_pos_start        the first step's place in `target`

These are the attributes of inseq 0.4 to 0.6, as their class documents them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput
from heedful.exchange.numbers import parse_numbers
from heedful.exchange.parsed import Parsed
from heedful.exchange.pieces import names_match
from heedful.target import Target


def class_of_inseq(given: Any, document: Document, classes: tuple[str, ...]) -> int:  # noqa: ARG001
    """The token that inseq generated after the document."""
    sequence, step, _ = _step(given, document)
    return int(sequence.target[sequence.attr_pos_start + step].id)


def parse_inseq(given: Any, document: Document, target: Target, classes: tuple[str, ...]) -> Parsed:
    """The attributions at the step after the document, one number per token; vectors are summed.

    Differs from inseq's own plots: there vectors are aggregated by a norm, or scaled, depending on the version; for
    that, give the result of its `aggregate()`.
    """
    sequence, step, prefix = _step(given, document)
    after = sequence.target[sequence.attr_pos_start + step]
    if int(after.id) != target.index:
        raise BadInput(
            f"inseq explained {after.token!r} here, but the target is {classes[target.index]!r}; pass the "
            "same token, or none."
        )
    row, notes = np.zeros(len(document.ids)), ()
    if sequence.source_attributions is not None:
        source = np.flatnonzero(_segments(document) == 0)
        if not names_match(document, _names(sequence.source), source):
            raise BadInput(
                f"inseq's source is {_shown(sequence.source)}, but the model splits {document.text[:40]!r} into other "
                "tokens; explain the same text with the same tokenizer."
            )
        row[source] = _column(sequence.source_attributions, len(source), step)
    if sequence.target_attributions is not None:
        row[prefix] = _column(sequence.target_attributions, len(prefix), step)
    elif len(prefix):
        notes = ("inseq has no numbers for the start of the output; they are 0 (attribute_target=True adds them).",)
    method = str(getattr(given, "info", {}).get("attribution_method", "")).strip()
    return Parsed(f"inseq {method}".strip(), row, notes=notes)


def _step(given: Any, document: Document) -> tuple[Any, int, Int[np.ndarray, "_"]]:
    """The sequence and its step after the document, and the tokens before that step in `target`."""
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
                if names_match(document, names, tokens):
                    return sequence, step, tokens
    shown = "; ".join(_shown(sequence.target) for sequence in sequences[:3])
    raise BadInput(
        f"The text is not the start of what inseq explained ({shown or 'nothing'}); for a translation give "
        "heedful.Pair(source, start), for a continuation the text up to the explained token."
    )


def _segments(document: Document) -> Int[np.ndarray, "token"]:
    return np.zeros(len(document.ids), dtype=np.int64) if document.segments is None else document.segments


def _n_steps(sequence: Any) -> int:
    attributions = [a for a in (sequence.source_attributions, sequence.target_attributions) if a is not None]
    return min((int(a.shape[1]) for a in attributions), default=0)


def _column(attributions: Any, n: int, step: int) -> Float[np.ndarray, "_"]:
    if attributions.shape[0] < n:
        raise BadInput(
            f"inseq has {attributions.shape[0]} rows of attributions for {n} tokens; one per token is needed."
        )
    column = attributions[:n, step]
    values = parse_numbers(column) if n else np.zeros(0)
    return values.sum(axis=-1) if values.ndim > 1 else values


def _names(tokens: Sequence[Any]) -> list[str]:
    return [str(token.token) for token in tokens]


def _shown(tokens: Sequence[Any]) -> str:
    joined = " ".join(_names(tokens))
    return f"{joined[:40]}…" if len(joined) > 40 else joined
