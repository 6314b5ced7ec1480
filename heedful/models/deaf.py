"""A copy of a model that reads only chosen words, so that the words it uses are known."""

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
from heedful.models.classic.classifier import Classic
from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.layered import LayeredModel, root_of
from heedful.models.single_layer import SingleLayer
from heedful.models.torch_module import TorchModule
from heedful.models.transformer import Transformer


@torch.no_grad()
def deaf(model: Model, words: Sequence[str]) -> Model:
    """A copy of the model that reads only these words; every other word is the unknown or mask token.

    Each other word's embedding becomes that token's; for a function, the text is rewritten before the call. The tokens
    that a language model can predict stay the same. Texts keep their length, so the number of other words may still
    matter.

    A word must be one token of the model, since the tokens of a longer one belong to other words too; a cased model
    reads only the spelling that is given. Special tokens stay. For a torch module these are the ones that its splitter
    adds to the words.

        model = heedful.deaf(heedful.load("paper"), ["good", "bad", "boring"])

    Ribeiro et al., 2016 (arXiv:1602.04938), Section 5.2. Differs from the source: the model is not trained to use few
    words; it is prevented from reading others.
    """
    kept_words = [words] if isinstance(words, str) else list(words)
    if isinstance(words, str) or not kept_words or not all(isinstance(word, str) for word in kept_words):
        raise BadInput(f'deaf needs a list of the words to keep, such as ["good", "bad"]; {words!r} was given.')
    if isinstance(model, BlackBox):
        return _deaf_function(model, kept_words)
    copy = copied(model)
    places, kept_ids = tables(copy), _kept_ids(model, kept_words)
    for module, name in places:
        weight: nn.Parameter = getattr(module, name)
        silent = torch.ones(len(weight), dtype=torch.bool, device=weight.device)
        silent[torch.from_numpy(kept_ids).to(weight.device)] = False
        rows = torch.where(silent[:, None], weight[replacement_id_of(model)], weight).detach()
        # A new weight: in decoders the same table may also compute the logits, and there it must not change.
        setattr(module, name, nn.Parameter(rows, weight.requires_grad))
    return copy


def heard_units(model: Model, document: Document, unit: Unit) -> Bool[np.ndarray, "unit"]:
    """Which units differ from the replacement of removed ones; in a deaf model, the units it can read."""
    if isinstance(model, BlackBox):
        hears = model.function.hears if isinstance(model.function, _Deaf) else lambda _: True
        heard = np.array([hears(piece) for piece in document.pieces], dtype=bool)
    else:
        assert isinstance(model, Differentiable)
        with torch.no_grad():
            differs = (model.embed([document]) != model.absent([document])).any(dim=-1)[0]
        heard = differs[: len(document.ids)].cpu().numpy()
    unit_of = document.unit_of(unit)
    heard_unit = np.zeros(document.n_units(unit), dtype=bool)
    heard_unit[unit_of[heard & (unit_of != SPECIAL)]] = True
    return heard_unit


def _kept_ids(model: Model, words: Sequence[str]) -> Int[np.ndarray, "_"]:
    """The ids of the words' tokens and of special tokens; raises an error for a word that is not one known token."""
    kept, rejected = {replacement_id_of(model)}, []
    model = root_of(model)
    if isinstance(model, SingleLayer | Transformer):
        kept.add(model.network.padding_id)
    if isinstance(model, LayeredModel) and not isinstance(
        model, Transformer | TorchModule | EncoderClassifier | Classic
    ):
        reader: Any = model
        kept.update(reader.tokenizer.all_special_ids)
    for word in words:
        # Twice, since some tokenizers have one token for a word at the start of a text and another after a space.
        document = model.encode(f"{word} {word}")
        places = [
            np.flatnonzero(document.words == number) for number in range(int(document.words.max(initial=SPECIAL)) + 1)
        ]
        whole = [place[0] for place in places if len(place) == 1 and document.known[place[0]]]
        if len(places) != 2 or not whole:
            rejected.append(repr(word))
        kept.update(document.ids[document.words == SPECIAL].tolist(), document.ids[whole].tolist())
    if rejected:
        raise BadInput(
            f"For this model {', '.join(rejected)} is not a single known token; leave it out or change the spelling."
        )
    return np.array(sorted(kept), dtype=np.int64)


@final
@dataclass(frozen=True)
class _Deaf:
    """A function of texts that reads only some words, in upper or lower case."""

    function: Callable[[list[str]], Any]
    words: frozenset[str]
    model: BlackBox

    def hears(self, word: str) -> bool:
        return word.casefold() in self.words

    def __call__(self, texts: list[str]) -> Any:
        return self.function([self._rewritten(text) for text in texts])

    def _rewritten(self, text: str) -> str:
        gone = self.model.replacement
        # The replacement of a removed word is not a word itself.
        parts = text.split(gone) if gone else [text]
        return gone.join(self._silenced(part, gone) for part in parts)

    def _silenced(self, text: str, gone: str) -> str:
        document, parts, end = self.model.encode(text), [], 0
        for (start, stop), word in zip(document.spans, document.pieces, strict=True):
            parts += [text[end:start], word if self.hears(word) else gone]
            end = stop
        return "".join([*parts, text[end:]])


def _deaf_function(model: BlackBox, words: Sequence[str]) -> BlackBox:
    rejected = [repr(word) for word in words if model.encode(word).pieces != (word,)]
    if rejected:
        raise BadInput(f"For a function of texts, give single words; {', '.join(rejected)} is not one.")
    hearing = _Deaf(model.function, frozenset(word.casefold() for word in words), model)
    return BlackBox(hearing, model.classes, model.replacement, model.returns)
