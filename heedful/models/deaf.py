"""A model that can hear only the words it is left: what it uses is then known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import nn

from heedful.document import SPECIAL, Document, Unit
from heedful.errors import BadInput
from heedful.models import Differentiable, Model
from heedful.models.altered import copied, replacement_id_of, tables
from heedful.models.black_box import BlackBox
from heedful.models.layered import LayeredModel
from heedful.models.torch_module import TorchModule
from heedful.models.transformer import Transformer


@torch.no_grad()
def deaf(model: Model, words: Sequence[str]) -> Model:
    """The model forced to use at most these words: to it all others are the unknown or mask token.

    Their rows of the table of word vectors become that token's; of a function the text is rewritten before it is asked.
    What a language model can say stays as it was. Texts still have their length: no other word matters, but how many
    there are may.

    A word must be one token of the model, since the parts of a longer one belong to other words too; of a model that
    tells capitals apart each spelling is a word. Special tokens stay. Those of a torch module are known only as far as
    its splitter adds them to these words.

        model = heedful.deaf(heedful.load("paper"), ["good", "bad", "boring"])

    Ribeiro et al., 2016 (arXiv:1602.04938), Section 5.2. Differs from the source: the model is not trained to use few
    words but kept from hearing others.
    """
    given = [words] if isinstance(words, str) else list(words)
    if isinstance(words, str) or not given or not all(isinstance(word, str) for word in given):
        raise BadInput(f'deaf takes a list of the words that are left, such as ["good", "bad"]; {words!r} was given.')
    if isinstance(model, BlackBox):
        return _deaf_function(model, given)
    copy = copied(model)
    places, kept = tables(copy), _numbers(model, given)
    for module, name in places:
        weight: nn.Parameter = getattr(module, name)
        silent = torch.ones(len(weight), dtype=torch.bool, device=weight.device)
        silent[torch.from_numpy(kept).to(weight.device)] = False
        rows = torch.where(silent[:, None], weight[replacement_id_of(model)], weight).detach()
        # A weight of its own: in decoders the same table may make the logits, and that one must not change.
        setattr(module, name, nn.Parameter(rows, weight.requires_grad))
    return copy


def heard_units(model: Model, document: Document, unit: Unit) -> Bool[np.ndarray, "unit"]:
    """Which units a model can tell from what stands in for removed ones: of a deaf model those that are left to it."""
    if isinstance(model, BlackBox):
        hears = model.function.hears if isinstance(model.function, _Deaf) else lambda _: True
        heard = np.array([hears(piece) for piece in document.pieces], dtype=bool)
    else:
        assert isinstance(model, Differentiable)
        with torch.no_grad():
            differs = (model.embed([document]) != model.absent([document])).any(dim=-1)[0]
        heard = differs[: len(document.ids)].cpu().numpy()
    unit_of = document.unit_of(unit)
    found = np.zeros(document.n_units(unit), dtype=bool)
    found[unit_of[heard & (unit_of != SPECIAL)]] = True
    return found


def _numbers(model: Model, words: Sequence[str]) -> Int[np.ndarray, "_"]:
    """The tokens that words are, and those that are no words; words that are none or several tokens are refused."""
    kept, strange = {replacement_id_of(model)}, []
    if isinstance(model, LayeredModel) and not isinstance(model, Transformer | TorchModule):
        reader: Any = model
        kept.update(reader.tokenizer.all_special_ids)
    for word in words:
        # Twice, since some tokenizers write a word at the beginning of a text with another token than behind a space.
        document = model.encode(f"{word} {word}")
        places = [
            np.flatnonzero(document.words == number) for number in range(int(document.words.max(initial=SPECIAL)) + 1)
        ]
        whole = [place[0] for place in places if len(place) == 1 and document.known[place[0]]]
        if len(places) != 2 or not whole:
            strange.append(repr(word))
        kept.update(document.ids[document.words == SPECIAL].tolist(), document.ids[whole].tolist())
    if strange:
        raise BadInput(
            f"To this model {', '.join(strange)} is no single known token; leave it out or spell it otherwise."
        )
    return np.array(sorted(kept), dtype=np.int64)


@final
@dataclass(frozen=True)
class _Deaf:
    """A function of texts in which only some words are left, whatever their capitals."""

    function: Callable[[list[str]], Any]
    words: frozenset[str]
    model: BlackBox

    def hears(self, word: str) -> bool:
        return word.casefold() in self.words

    def __call__(self, texts: list[str]) -> Any:
        return self.function([self._rewritten(text) for text in texts])

    def _rewritten(self, text: str) -> str:
        gone = self.model.replacement
        # What stands for removed words already is no word.
        parts = text.split(gone) if gone else [text]
        return gone.join(self._silenced(part, gone) for part in parts)

    def _silenced(self, text: str, gone: str) -> str:
        document, parts, end = self.model.encode(text), [], 0
        for (start, stop), word in zip(document.spans, document.pieces, strict=True):
            parts += [text[end:start], word if self.hears(word) else gone]
            end = stop
        return "".join([*parts, text[end:]])


def _deaf_function(model: BlackBox, words: Sequence[str]) -> BlackBox:
    strange = [repr(word) for word in words if model.encode(word).pieces != (word,)]
    if strange:
        raise BadInput(f"A function's text is cut into single words; {', '.join(strange)} is none.")
    hearing = _Deaf(model.function, frozenset(word.casefold() for word in words), model)
    return BlackBox(hearing, model.classes, model.replacement)
