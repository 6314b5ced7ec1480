"""The output of a language model behind its prompt: its tokens, its parts, and what may be removed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import index
from typing import Literal

import numpy as np

from heedful.document import SPECIAL, Document
from heedful.document.note import Note
from heedful.errors import BadInput, in_short
from heedful.generation.continuation import Groups
from heedful.models.language import LanguageModel

Of = Literal["tokens", "words", "sequence"] | tuple[int, int]
"""What is explained: each token, each word, or the whole output; or one span of tokens (start, end)."""


def with_output(model: LanguageModel, prompt: Document, output: str | Iterable[int]) -> Document:
    """The prompt with an output behind it, of words of its own; one that the model cannot write is refused.

    A text is put behind the prompt as it is. Between two letters or digits of English there is a space, with a note.
    """
    notes: tuple[Note, ...] = ()
    if isinstance(output, str):
        if not output.strip():
            raise BadInput("The output is empty; give some text, or leave it out and the model writes one.")
        plain = bool(prompt.words.size) and prompt.words[-1] != SPECIAL
        ends = prompt.text[-1:], output[:1]
        if plain and all(end.isascii() and end.isalnum() for end in ends):
            output = f" {output}"
            notes = (Note("A space was put between the prompt and the output.", "changed-text"),)
        ids = model.typed(prompt, output)
    else:
        ids = _ids(output)
    if not ids:
        raise BadInput("The output has no tokens: the model ended the text at once, or nothing was given.")
    if not all(0 <= number < len(model.classes) for number in ids):
        raise BadInput(f"The model has {len(model.classes):,} tokens; the output contains another number.")
    n_read = int((prompt.segments == 1).sum()) if model.n_sources([prompt]) else len(prompt.ids)
    if model.room is not None and n_read + len(ids) > model.room + 1:
        raise BadInput(
            f"Prompt and output have {n_read + len(ids):,} tokens; the model reads {model.room:,}. Shorten one of them."
        )
    document = model.continued(prompt, ids)
    spelt = document.text[len(prompt.text) :]
    if isinstance(output, str) and _letters(spelt) != _letters(output):
        raise BadInput(f"The model cannot write {in_short(output)}: its tokens do not spell that text.")
    if isinstance(output, str) and spelt != output and not model.n_sources([prompt]):
        notes = (*notes, Note("The model's tokens spell the output with other white space.", "changed-text"))
    return replace(document, notes=(*document.notes, *notes))


def _ids(output: Iterable[int]) -> list[int]:
    try:
        return [index(number) for number in output]
    except TypeError:
        raise BadInput(
            f"The output is a text, the numbers of its tokens, or a generation; {in_short(output)} was given."
        ) from None


def _letters(text: str) -> str:
    return "".join(text.split())


def fixed(document: Document) -> Document:
    """The document with an output that is never removed, as its units are those of the prompt."""
    assert document.segments is not None
    return replace(document, words=np.where(document.segments == 1, SPECIAL, document.words))


def groups_of(document: Document, n_written: int, of: Of) -> tuple[tuple[str, ...], Groups]:
    """The parts of the output that are explained, by name, and the positions of their tokens."""
    n_before = len(document.ids) - n_written
    if of == "tokens":
        groups: Groups = tuple((place,) for place in range(n_written))
    elif of == "words":
        words: Sequence[int] = document.words[n_before:].tolist()
        # Special tokens, such as the end of the text, are each a word of their own.
        keys = [word if word != SPECIAL else -2 - place for place, word in enumerate(words)]
        groups = tuple(tuple(np.flatnonzero(np.array(keys) == key).tolist()) for key in dict.fromkeys(keys))
    elif of == "sequence":
        groups = (tuple(range(n_written)),)
    else:
        groups = (tuple(range(*_span(of, n_written))),)
    return tuple(_name(document, n_before, group) for group in groups), groups


def _span(of: object, n_written: int) -> tuple[int, int]:
    """The first token and the one after the last."""
    if isinstance(of, tuple | list) and len(of) == 2 and all(isinstance(number, int) for number in of):
        start, end = of
        if 0 <= start < end <= n_written:
            return start, end
    raise BadInput(
        f'of is "tokens", "words", "sequence", or the span (start, end) of some of the {n_written} tokens of the '
        f"output; {in_short(of)} was given."
    )


def _name(document: Document, n_before: int, group: Sequence[int]) -> str:
    first, last = n_before + group[0], n_before + group[-1]
    text = document.text[document.spans[first][0] : document.spans[last][1]]
    return text or document.pieces[first]
