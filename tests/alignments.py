"""What a tokenizer tells of a text, what is made of it, and what must hold for any."""

from functools import cache
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

from heedful.document import SPECIAL, Document
from heedful.document.alignment.align import Alignment, align, join_texts
from tests.tokenizers import Replayed, made

AWKWARD = st.text(st.sampled_from("aB ß\n\tİé\u0301\u200d\ufffd👩🇩☃'-?我한´½"), max_size=12)


def encoded(tokenizer, *given, side="right", most=None):
    """What `align` is told of the texts by a fast tokenizer, or by a slow one."""
    tokenizer.truncation_side = side
    fast = tokenizer.is_fast
    cut = {"truncation": True, "max_length": most} if most else {}
    encoding = tokenizer(*given, return_offsets_mapping=fast, return_special_tokens_mask=fast, **cut)
    ids = encoding["input_ids"]
    names = {tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id}
    return SimpleNamespace(
        tokenizer=tokenizer,
        ids=ids,
        texts=given,
        special=[bool(s) for s in encoding["special_tokens_mask"]] if fast else [number in names for number in ids],
        offsets=encoding["offset_mapping"] if fast else None,
        sequence=encoding.sequence_ids() if fast else None,
    )


def aligned(code, **changes) -> Alignment:
    return align(**{**vars(code), **changes})


@cache
def known(name, text):
    """The whole text as this tokenizer tells of it, and its alignment."""
    code = encoded(made(name), text)
    return code, aligned(code)


def document(code, alignment: Alignment) -> Document:
    ids = np.array(code.ids, dtype=np.int64)
    return Document(
        join_texts(code.texts), ids, alignment.pieces, alignment.spans, alignment.words, np.ones(len(ids), dtype=bool)
    )


def without_spaces(text):
    return "".join(text.split())


def check(code, alignment: Alignment):
    """What holds for any tokens of any texts."""
    text = join_texts(code.texts)
    assert (
        len(alignment.pieces)
        == len(alignment.spans)
        == len(alignment.words)
        == len(alignment.segments)
        == len(code.ids)
    )
    assert all(0 <= start <= end <= len(text) for start, end in alignment.spans)
    for column in zip(*alignment.spans, strict=True):
        assert list(column) == sorted(column)
    real = np.logical_not(code.special)
    assert np.array_equal(alignment.words == SPECIAL, ~real)
    assert all(start == end for (start, end), is_real in zip(alignment.spans, real, strict=True) if not is_real)
    numbers = alignment.words[real]
    assert len(numbers) == 0 or (numbers[0] == 0 and set(np.diff(numbers).tolist()) <= {0, 1})
    # None begins or ends with white space, so none is white space.
    for start, end in (*alignment.spans, *document(code, alignment).word_spans):
        assert text[start:end] == text[start:end].strip()


def replayed(text, *names, offsets=None, special=()):
    """The alignment and the document of a text whose tokens are these; `?` is the unknown one."""
    code = SimpleNamespace(
        tokenizer=Replayed(*names, unknown=names.index("?") if "?" in names else None),
        ids=[names.index(name) for name in names],
        texts=(text,),
        special=[name in special for name in names],
        offsets=offsets,
        sequence=None,
    )
    alignment = aligned(code)
    check(code, alignment)
    return alignment, document(code, alignment)
