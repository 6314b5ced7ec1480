"""A message in the chat template of a tokenizer, as the model reads it."""

from dataclasses import replace

import numpy as np
from transformers import PreTrainedTokenizerBase

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, describe_error
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.hf.text import read_text

_PROBE = "heedful-message-0"


def read_chat(tokenizer: PreTrainedTokenizerBase, message: str) -> tuple[Document, int]:
    """The user's message in the tokenizer's chat template, up to where the answer begins, and its place in the text.

    The token ids are those of `tokenizer.apply_chat_template`. Tokens of the template, of roles and of the system
    prompt are special tokens: they have no word. A token that the message shares with the template belongs to the
    message.
    """
    text = _rendered(tokenizer, message)
    start, end = _place(_rendered(tokenizer, _PROBE), text, message)
    document = read_text(tokenizer, text, None, special=False)
    spans = np.array(document.spans, dtype=np.int64).reshape(-1, 2)
    # White space has an empty span, at the beginning of the next token.
    empty = spans[:, 0] == spans[:, 1]
    inside = np.where(empty, (start < spans[:, 0]) & (spans[:, 0] < end), (spans[:, 0] < end) & (spans[:, 1] > start))
    inside &= document.words != SPECIAL
    words = np.full(len(document.ids), SPECIAL, dtype=np.int64)
    words[inside] = np.unique(document.words[inside], return_inverse=True)[1]
    spans[inside] = spans[inside].clip(start, end)
    return replace(document, words=words, spans=tuple((int(a), int(b)) for a, b in spans)), start


def _rendered(tokenizer: PreTrainedTokenizerBase, message: str) -> str:
    chat = [{"role": "user", "content": message}]
    try:
        with ONE_THREAD:
            return str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    # A template is a program of the tokenizer's own, which may raise anything.
    except Exception as error:
        raise BadInput(
            f"The chat template failed with {describe_error(error)}; give chat=False to read the plain text."
        ) from error


def _place(probe: str, text: str, message: str) -> tuple[int, int]:
    """Where the message is: what comes before and after it is the same for another message."""
    before, middle, after = probe.partition(_PROBE)
    if middle and text.startswith(before) and text.endswith(after):
        start, end = len(before), len(text) - len(after)
        # Templates may remove white space around a message.
        if start < end and text[start:end].strip() == message.strip():
            return start, end
    raise BadInput("The chat template changes the text of the message; give chat=False to read the plain text.")
