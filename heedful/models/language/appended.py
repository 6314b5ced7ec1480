"""Documents with the output of a language model behind them, and the tokens of such an output."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from heedful.document import SPECIAL, Document
from heedful.document.alignment.align import Alignment


def append_output(document: Document, ids: Sequence[int], added: str, alignment: Alignment, gap: str = "") -> Document:
    """The document with tokens behind it, in segment 1; `alignment` is of their text, which stands behind the gap.

    They are words of their own, numbered on after the document's words, and in no passage.
    """
    shift, n_words = len(document.text) + len(gap), int(document.words.max(initial=SPECIAL)) + 1
    words = np.where(alignment.words == SPECIAL, SPECIAL, alignment.words + n_words)
    segments = np.zeros(len(document.ids), dtype=np.int64) if document.segments is None else document.segments
    outside = None if document.passages is None else np.append(document.passages, np.full(len(ids), SPECIAL))
    return replace(
        document,
        text=document.text + gap + added,
        ids=np.append(document.ids, np.array(ids, dtype=np.int64)),
        pieces=(*document.pieces, *alignment.pieces),
        spans=(*document.spans, *((start + shift, end + shift) for start, end in alignment.spans)),
        words=np.append(document.words, words),
        known=np.append(document.known, np.ones(len(ids), dtype=bool)),
        segments=np.append(segments, np.ones(len(ids), dtype=np.int64)),
        passages=outside,
    )


def tokens_behind(before: str, text: str, encode: Callable[[str], list[int]]) -> list[int]:
    """The tokens of a text that stands behind another one, whose own tokens stay as they are.

    They are those that the text adds. Where both would share a token, they are those that it adds to a line break: at
    the beginning of a text some tokenizers put a space before the first word.
    """
    for start in (before, "\n"):
        known, both = encode(start), encode(start + text)
        if both[: len(known)] == known:
            return both[len(known) :]
    return encode(text)
