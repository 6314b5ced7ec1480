"""Reading text for Hugging Face models: tokenization, length limits, replacement tokens and embeddings."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from heedful.document import SPECIAL, Document, Pair, check_text
from heedful.document.alignment.align import align, join_texts
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.hf.next_token import plain_ids

_HALF = re.compile("[\ud800-\udfff]")
_UNMATCHED = "The tokens could not be matched to the text's characters, so each token counts as a word."


def read_text(
    tokenizer: PreTrainedTokenizerBase, text: object, limit: int | None, special: bool = True, target: bool = False
) -> Document:
    """A text or a pair as the tokenizer reads it; a text above the model's limit is truncated, with a note.

    Without `special` no special tokens are added; `target` tokenizes for the language that the model generates.
    """
    parts = (text.first, text.second) if isinstance(text, Pair) else (text,)
    texts = tuple(_HALF.sub("�", check_text(part)) for part in parts)
    if len(texts) == 2 and tokenizer.num_special_tokens_to_add(pair=True) == 0:
        raise BadInput("This model's tokenizer does not separate the texts of a pair; give a single text.")
    options = _options(tokenizer, texts, special, target)
    # A tokenizer keeps the last call's truncation until the next call.
    with ONE_THREAD:
        read = tokenizer(**options)
        n_all, notes = len(read["input_ids"]), _halves(parts)
        if limit is not None and n_all > limit:
            read = tokenizer(**options, truncation=True, max_length=limit)
            cut = f"Only {limit:,} of {n_all:,} tokens were read; the text is longer than the model's limit."
            notes.append(Note(cut, "truncated"))
    ids = np.array(read["input_ids"], dtype=np.int64)
    is_special = [bool(mark) for mark in read["special_tokens_mask"]]
    offsets = [tuple(span) for span in read["offset_mapping"]] if tokenizer.is_fast else None
    alignment = align(
        tokenizer, ids.tolist(), texts, is_special, offsets, read.sequence_ids(0) if tokenizer.is_fast else None
    )
    if alignment.how == "pieces":
        notes.append(Note(_UNMATCHED, "unmatched-tokens"))
    known = np.ones(len(ids), dtype=bool) if tokenizer.unk_token_id is None else ids != tokenizer.unk_token_id
    notes += _unknown(alignment.pieces, alignment.words, known)
    return Document(
        text=join_texts(texts),
        ids=ids,
        pieces=alignment.pieces,
        spans=alignment.spans,
        words=alignment.words,
        known=known | np.array(is_special, dtype=bool),
        notes=tuple(notes),
        segments=alignment.segments if len(texts) == 2 else None,
    )


def _options(tokenizer: PreTrainedTokenizerBase, texts: tuple[str, ...], special: bool, target: bool) -> dict[str, Any]:
    return {
        "text_target" if target else "text": texts[0],
        "text_pair": texts[1] if len(texts) == 2 else None,
        "add_special_tokens": special,
        "return_special_tokens_mask": True,
        "return_offsets_mapping": tokenizer.is_fast,
        "return_attention_mask": False,
        "verbose": False,
    }


def _halves(parts: tuple[object, ...]) -> list[Note]:
    """A note on halves of surrogate pairs, which are no characters and which tokenizers reject; empty if none."""
    n_halves = sum(len(_HALF.findall(str(part))) for part in parts)
    replaced = f"Lone surrogates (halves of characters) in the text were replaced by �: {n_halves}."
    return [Note(replaced, "changed-text")] if n_halves else []


def _unknown(pieces: tuple[str, ...], words: Int[np.ndarray, "token"], known: Bool[np.ndarray, "token"]) -> list[Note]:
    """A note on the tokens that are unknown to the model, if there are any."""
    unknown = [piece for piece, is_known, word in zip(pieces, known, words, strict=True) if not is_known and word >= 0]
    if not unknown:
        return []
    shown = ", ".join(dict.fromkeys(unknown))
    shown = shown if len(shown) <= 80 else shown[:80] + "…"
    n_tokens = int((words != SPECIAL).sum())
    return [Note(f"{len(unknown)} of {n_tokens} tokens are unknown to the model: {shown}", "unknown-words")]


def look_up(table: nn.Module, ids: Int[Tensor, "batch _"]) -> Float[Tensor, "batch _ d_e"]:
    """The vectors of token ids; raises an error if the tokenizer has more tokens than the model."""
    n_tokens = int(table.num_embeddings)  # type: ignore[arg-type]
    if int(ids.max()) >= n_tokens:
        raise BadInput(
            f"The tokenizer gives token {int(ids.max()):,}, but the model has {n_tokens:,}; use its own tokenizer."
        )
    # Another thread may have replaced the table's vectors.
    with ONE_THREAD:
        return table(ids)


def room(network: Any, tokenizer: PreTrainedTokenizerBase | None) -> int | None:
    """The maximum number of tokens: the smaller of the tokenizer's limit and the network's number of positions."""
    limits = []
    config: Any = network.config
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if positions:
        tables = [m for name, m in network.named_modules() if isinstance(m, nn.Embedding) and "position" in name]
        # RoBERTa and similar models count positions from the padding id + 1.
        offset = max((table.padding_idx + 1 for table in tables if table.padding_idx is not None), default=0)
        limits.append(int(positions) - offset)
    if tokenizer is not None and tokenizer.model_max_length < 1_000_000:
        limits.append(int(tokenizer.model_max_length))
    return min(limits, default=None)


def replacement_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token that replaces removed ones: the first that exists of mask, unknown, padding and end of text."""
    ids: Any = tokenizer
    for number in (ids.mask_token_id, ids.unk_token_id, ids.pad_token_id, ids.eos_token_id):
        if number is not None:
            return int(number)
    raise BadInput("The tokenizer has no mask, unknown, padding or end token to replace a word; set one of them.")


def token_of(tokenizer: PreTrainedTokenizerBase, word: str) -> int:
    """The one token that a word is inside a text."""
    for spelling in (f" {word}", word):
        ids = plain_ids(tokenizer, spelling)
        if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
            return ids[0]
    raise BadInput(f"{word!r} is not one token of this model, so it cannot replace words; give another word.")


def filler(tokenizer: PreTrainedTokenizerBase) -> int:
    """The padding id of a batch; it is hidden from attention, so any id will do if the tokenizer has none."""
    number: Any = tokenizer.pad_token_id
    return 0 if number is None else int(number)


@contextmanager
def embedded(
    embedding: nn.Module, places: Sequence[tuple[Int[Tensor, "batch _"], Float[Tensor, "batch _ d_e"]]]
) -> Iterator[None]:
    """Inside this context, looking up these token ids gives these vectors: gradients need no `inputs_embeds`.

    A hook on the table rather than `inputs_embeds`: some models scale embeddings and some do not, and positions may be
    computed from token ids.
    """
    at = {(ids.untyped_storage().data_ptr(), ids.shape): e for ids, e in places}

    def replaced(_module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> Tensor:
        place = inputs[0].untyped_storage().data_ptr(), inputs[0].shape
        if place not in at:
            raise Unsupported(
                "The model copies or cuts its token ids before it looks them up, so its embeddings cannot be replaced."
            )
        return at[place]

    with ONE_THREAD:
        handle = embedding.register_forward_hook(replaced)
        try:
            yield
        finally:
            handle.remove()
