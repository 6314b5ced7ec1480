"""What a language model writes after a prompt, as a model whose texts are prompts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from heedful.document import Document, Pair
from heedful.errors import BadInput, in_short
from heedful.generation.continuation import Continuation
from heedful.generation.generate import generate
from heedful.generation.prompt import read_prompt
from heedful.generation.written import fixed, with_output
from heedful.models import Model
from heedful.models.language import LanguageModel, check_writes


def continuation(
    model: Model, max_new: int = 20, *, context: str | Sequence[str] | None = None, chat: bool | None = None
) -> Continuation:
    """What a language model writes after each text, as a model for `explain`, `compare` and `trust`.

    A text is a prompt, which the model continues with at most `max_new` tokens, each the most likely one; or a
    `heedful.Pair` of a prompt and an output. The value is the log-probability of the output, without the token that
    ends it. Units are those of the prompt and its `context`; the output is never removed. `context` and `chat` are
    those of `heedful.generate`. `heedful.attribute` explains every token of one output.
    """
    writer = check_writes(model)
    return Continuation(writer, read=PromptReader(writer, max_new, context, chat))


def written_text(document: Document) -> str:
    """The output of a document of a `Continuation`."""
    assert document.segments is not None
    return document.text[document.spans[int(np.argmax(document.segments == 1))][0] :]


@final
@dataclass(frozen=True, eq=False)
class PromptReader:
    """Reads prompts with what a language model writes after them; each is written once.

    While features of the model are clamped it writes something else, and has another fingerprint.
    """

    model: LanguageModel
    max_new: int
    context: str | Sequence[str] | None
    chat: bool | None
    _written: dict[tuple[str, str], Document] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, text: Any) -> Document:
        """The prompt with the output behind it."""
        if isinstance(text, Pair):
            prompt = read_prompt(self.model, text.first, self.context, self.chat)
            return fixed(with_output(self.model, prompt, text.second))
        if not isinstance(text, str):
            raise BadInput(f"A text is a prompt, or a Pair of a prompt and its output; {in_short(text)} was given.")
        key = self.model.fingerprint, text
        if key not in self._written:
            result = generate(
                self.model, text, context=self.context, chat=self.chat, max_new=self.max_new, progress=None
            )
            ids = result.ids[:-1] if result.ids[-1] in self.model.end_ids else result.ids
            self._written[key] = fixed(with_output(self.model, result.document, ids))
        return self._written[key]
