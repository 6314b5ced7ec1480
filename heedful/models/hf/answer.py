"""Hugging Face models that answer a question by a span of a context: the first and the last token of the answer."""

from dataclasses import replace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document, Pair
from heedful.document.note import Note
from heedful.errors import BadInput, in_short
from heedful.models import AtPlace, Model
from heedful.models.hf.at_places import HfAtPlaces, placed_at
from heedful.models.hf.text import read_text
from heedful.target import ClassNames

_LONGEST = 30
"""The most tokens of a predicted answer, as in the authors' script of BERT."""
_PREDICTED = "the predicted answer"


@final
class HfAnswer(HfAtPlaces, AtPlace):
    """An extractive question answerer, which reads `Pair(question, context)`; its output is the score of an answer.

    The score of a span of the context is the logit of its first token as a start plus that of its last as an end. The
    target is the answer as the context spells it, "Paris#2" its second occurrence there, None the span that is
    predicted: the best of at most 30 tokens. It is found on the whole text, and masked copies keep it.

    Reference: Devlin, Chang, Lee & Toutanova, *BERT*, NAACL 2019, arXiv:1810.04805, Section 4.2. No answer, which
    models of SQuAD 2.0 place at [CLS], is not among the spans.
    """

    returns = "scores"
    reads = "the first and the last token of the answer"
    outputs = "answers"
    asked: tuple[str | None, ...] = (None,)
    """The answers that were named, None for the predicted one."""

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.prepare(network, tokenizer, (_PREDICTED,), Pair("a b c", "d e f"))

    def encode(self, text: object) -> Document:
        """The pair as this model reads it, with the first and the last token of every answer."""
        if not isinstance(text, Pair):
            raise BadInput(
                "This model reads a question and a context: give heedful.Pair(question, context), or --second on the "
                "command line."
            )
        document = read_text(self.tokenizer, text, self.room)
        start = len(document.text) - len(text.second)
        spans = [self._predicted(document) if one is None else _tokens_of(document, one, start) for one in self.asked]
        if len({*spans}) < len(spans):
            raise BadInput(f"A contrast needs two answers; {_spelt(document, spans[0])!r} was given twice.")
        read = [[token] for span in spans for token in span]
        notes = document.notes
        if None in self.asked:
            answer = _spelt(document, spans[self.asked.index(None)])
            notes = (*notes, Note(f"One more pass found the predicted answer {answer!r}."))
        return replace(document, attached=placed_at(document, *read), notes=notes)

    def aimed(self, target: Any, against: object) -> tuple[Model, Any]:
        """The model read at the answers that are named, and the number of the target."""
        if self.origin is not None and not isinstance(target, str):
            return self, target
        asked: tuple[Any, ...] = (target,) if against is None else (target, against)
        if wrong := [one for one in asked if one is not None and not (isinstance(one, str) and one.strip())]:
            raise BadInput(
                f"An answer is named by its text, for all contexts the same; {in_short(wrong[0])} was given."
            )
        made = self.at(repr(asked), tuple(_PREDICTED if one is None else one for one in asked))
        made.asked = asked
        return made, 0

    def target_names(self, document: Document | None) -> ClassNames:
        """The answers as the context spells them."""
        if document is None or document.attached is None or None not in self.asked:
            return ClassNames(self.classes)
        ends = document.attached.argmax(axis=0).reshape(-1, 2)
        spelt = [_spelt(document, (int(first), int(last))) for first, last in ends]
        names = zip(spelt, self.classes, self.asked, strict=True)
        return ClassNames(tuple(own if one is None else name for own, name, one in names))

    def token_outputs(self, output: Any) -> Float[Tensor, "batch token output"]:
        """The logits of every token as a start and as an end."""
        return torch.stack([output.start_logits, output.end_logits], dim=2)

    def picked(self, rows: Float[Tensor, "batch place output"]) -> Float[Tensor, "batch class"]:
        """The score of every answer."""
        return rows[:, ::2, 0] + rows[:, 1::2, 1]

    def _predicted(self, document: Document) -> tuple[int, int]:
        """The span of the context with the highest score."""
        context = np.flatnonzero((document.segments == 1) & (document.words >= 0))
        if not len(context):
            raise BadInput("Nothing of the context was read; give one, and a question that leaves room for it.")
        start, end = self.all_outputs(document)[context].double().cpu().numpy().T
        longer = np.arange(len(context)) - np.arange(len(context))[:, None]
        scores = np.where((longer >= 0) & (longer < _LONGEST), start[:, None] + end, -np.inf)
        first, last = np.unravel_index(scores.argmax(), scores.shape)
        return int(context[first]), int(context[last])


def _tokens_of(document: Document, answer: str, start: int) -> tuple[int, int]:
    """The first and the last token of an answer in the context, which starts at that character."""
    context, (stem, mark, number) = document.text[start:], answer.rpartition("#")
    nth = int(number) if answer not in context and mark and stem.strip() and number.isdecimal() else 0
    wanted = (stem if nth else answer).strip()
    places = [start + n for n in range(len(context)) if context.startswith(wanted, n)]
    if not places:
        raise BadInput(f"The context does not contain the answer {wanted[:80]!r}; spell it as the context does.")
    spans = [span for span in (_covering(document, low, low + len(wanted)) for low in places) if span]
    if not spans:
        raise BadInput(f"The answer {wanted[:80]!r} lies beyond the tokens that were read; shorten the context.")
    whole = [span for span in spans if _spelt(document, span) == wanted]
    if not whole:
        inside = _spelt(document, spans[0])
        raise BadInput(f"The answer {wanted[:80]!r} begins or ends inside of a token; there it says {inside[:80]!r}.")
    if nth > len(whole) == 1:
        raise BadInput(f"{wanted[:80]!r} occurs once in the context; name it without a number.")
    if nth > len(whole) or (not nth and len(whole) > 1):
        choice = f"{wanted}#1 to {wanted}#{len(whole)}"
        raise BadInput(f"{wanted[:80]!r} occurs {len(whole)} times in the context; name one of them: {choice}.")
    return whole[max(0, nth - 1)]


def _covering(document: Document, low: int, high: int) -> tuple[int, int] | None:
    """The first and the last token of some characters; None if no token that was read covers one of them."""
    own = [t for t, (a, b) in enumerate(document.spans) if a < b and a < high and b > low and document.words[t] >= 0]
    return (own[0], own[-1]) if own else None


def _spelt(document: Document, span: tuple[int, int]) -> str:
    """The characters from the first token of a span to its last."""
    return document.text[document.spans[span[0]][0] : document.spans[span[1]][1]].strip()
