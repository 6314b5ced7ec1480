"""What a language model reads before it writes: passages of context and the prompt, in a chat template or plain."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int

from heedful.document import SPECIAL, Document, check_text
from heedful.errors import BadInput, Unsupported
from heedful.models.language import LanguageModel
from heedful.models.recording import OneTower

BETWEEN = "\n\n"
"""What separates passages from each other and from the prompt."""
_BLANK_LINES = re.compile(r"\n\s*\n")


def read_prompt(
    model: LanguageModel, prompt: str, context: str | Sequence[str] | None = None, chat: bool | None = None
) -> Document:
    """The passages of the context and then the prompt, as the model reads them before it writes.

    `context` is a list of passages, or a text whose passages are separated by blank lines; `Document.passages` has the
    passage of every token. With `chat` the text is the user's message in the tokenizer's chat template: None uses the
    template if there is one, True demands it, False reads the plain text. An encoder-decoder reads the text as its
    source, never as a chat. A text that is longer than the model is refused, not truncated.
    """
    passages = split_passages(context)
    if not check_text(prompt).strip():
        raise BadInput("The prompt is empty; give some text.")
    text = BETWEEN.join([*passages, prompt])
    document, start = _read(model, text, chat)
    n_read = len(document.ids) if document.segments is None else int((document.segments == 0).sum())
    if document.truncated or (model.room is not None and n_read > model.room):
        raise BadInput(
            f"The prompt and its context have more tokens than the model reads ({model.room:,}); shorten them."
        )
    if not passages:
        return document
    numbers = _passage_of_token(document, passages, start)
    if missing := set(range(len(passages))) - set(numbers.tolist()):
        raise BadInput(f"The model reads no token of passage {min(missing) + 1}; leave it out.")
    return replace(document, passages=numbers)


def split_passages(context: str | Sequence[str] | None) -> tuple[str, ...]:
    """The passages without white space around them."""
    if context is None:
        return ()
    if isinstance(context, str):
        passages = tuple(part.strip() for part in _BLANK_LINES.split(context) if part.strip())
        if not passages:
            raise BadInput("The context is blank; give at least one passage, or leave it out.")
        return passages
    if not isinstance(context, Sequence):
        raise BadInput(f"The context is a text or a list of passages; {type(context).__name__} was given.")
    passages = tuple(check_text(passage).strip() for passage in context)
    if blank := [number for number, passage in enumerate(passages, start=1) if not passage]:
        raise BadInput(f"Passage {blank[0]} of the context is blank; leave it out.")
    return passages


def _read(model: LanguageModel, text: str, chat: bool | None) -> tuple[Document, int]:
    """The document, and the character at which the text begins in it."""
    if chat not in (None, True, False):
        raise BadInput(f"chat must be True, False or None; {chat!r} was given.")
    # Only tokenizers of Hugging Face have templates, and transformers may not be installed.
    tokenizer: Any = getattr(model, "tokenizer", None)
    has_template = getattr(tokenizer, "chat_template", None) is not None and isinstance(model, OneTower)
    if chat and not has_template:
        raise Unsupported("This model has no chat template; leave chat out, and it reads the plain text.")
    if chat is False or not has_template:
        return model.encode(text), 0
    from heedful.models.hf.chat import read_chat

    return read_chat(tokenizer, text)


def _passage_of_token(document: Document, passages: Sequence[str], start: int) -> Int[np.ndarray, "token"]:
    """The passage that most characters of a token are in, the first of equals; −1 if there is none.

    White space has an empty span: it is in a passage if a part of the passage is on both sides.
    """
    starts, ends = np.array(document.spans, dtype=np.int64).reshape(-1, 2).T
    lengths = np.array([len(passage) for passage in passages])
    firsts = start + np.concatenate([[0], np.cumsum(lengths + len(BETWEEN))[:-1]])
    shared = np.minimum(ends, (firsts + lengths)[:, None]) - np.maximum(starts, firsts[:, None])
    within = (firsts[:, None] < starts) & (ends < (firsts + lengths)[:, None]) & (starts == ends)
    inside = np.where(within, 1, shared)
    own = (inside > 0).any(axis=0) & (document.words != SPECIAL)
    return np.where(own, inside.argmax(axis=0), SPECIAL)
