"""Documents as JSON: to a dictionary and back."""

from typing import Any

import numpy as np

from heedful.document import SPECIAL, Document, Picture
from heedful.document.note import Note


def document_as_dict(document: Document) -> dict[str, Any]:
    """What a document shows, ready for JSON: all but what only its model needs, such as the pixels that it read."""
    kept: dict[str, Any] = {
        "text": document.text,
        "ids": document.ids.tolist(),
        "pieces": list(document.pieces),
        "spans": [list(span) for span in document.spans],
        "words": document.words.tolist(),
        "known": document.known.tolist(),
        "notes": [note.as_dict() for note in document.notes],
    }
    if document.segments is not None:
        kept["segments"] = document.segments.tolist()
    if document.passages is not None:
        kept["passages"] = document.passages.tolist()
    if document.picture is not None:
        # The numbers that the model read are the processor's to make.
        kept["picture"] = {"rgb": document.picture.rgb.tolist(), "grid": list(document.picture.grid)}
    return kept


def stored_document(parts: dict[str, Any]) -> Document:
    """The document of a dictionary; raises ValueError if its tokens have no places in the text."""
    document = Document(
        text=parts["text"],
        ids=np.array(parts["ids"], dtype=np.int64),
        pieces=tuple(parts["pieces"]),
        spans=tuple((start, end) for start, end in parts["spans"]),
        words=np.array(parts["words"], dtype=np.int64),
        known=np.array(parts["known"], dtype=bool),
        notes=tuple(map(Note.of, parts["notes"])),
        segments=np.array(parts["segments"], dtype=np.int64) if "segments" in parts else None,
        picture=_picture(parts["picture"]) if "picture" in parts else None,
        passages=np.array(parts["passages"], dtype=np.int64) if "passages" in parts else None,
    )
    n, words, length = len(parts["ids"]), document.words, len(document.text)
    optional = [column for column in (document.segments, document.passages) if column is not None]
    columns = [document.ids, words, document.known, *optional]
    rules = {
        "pieces": len(document.pieces) == n and all(isinstance(piece, str) for piece in document.pieces),
        "tokens": all(column.shape == (n,) for column in columns),
        "words": {*words.tolist()} - {SPECIAL} == {*range(int(words.max(initial=SPECIAL)) + 1)},
        "spans": len(document.spans) == n and all(0 <= start <= end <= length for start, end in document.spans),
    }
    wrong = [name for name, holds in rules.items() if not holds]
    if wrong:
        raise ValueError(f"the document's {wrong[0]} is not valid")
    return document


def _picture(kept: dict[str, Any]) -> Picture:
    rgb = np.array(kept["rgb"], dtype=np.uint8)
    rows, columns = kept["grid"]
    return Picture(rgb, np.zeros((0, *rgb.shape[:2]), dtype=np.float32), (rows, columns))
