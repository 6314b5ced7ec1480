"""Which positions of a pass are tokens of a text, as seen from inside of the network."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.document import SPECIAL
from heedful.errors import Unsupported
from heedful.models.altered import tables
from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.encoder.network import EncoderNetwork
from heedful.models.encoder.word_pieces import SPECIAL_PIECES, UNKNOWN_ID
from heedful.models.language.gpt2 import Gpt2Network
from heedful.models.language.writer import Writer
from heedful.models.recording import Recordable
from heedful.models.transformer import NO_TOKEN, TransformerNetwork

TextPlaces = Callable[[Float[Tensor, "batch token d_e"]], Bool[Tensor, "_ token"]]
"""Where the activations of a running pass belong to tokens of a text: not to special tokens, nor to padding."""


@contextmanager
def watched_tokens(model: Recordable) -> Iterator[TextPlaces]:
    """Inside this context the function it gives knows the tokens that the running pass reads.

    Activations come without their tokens, and with a cache only new tokens are read. Therefore the table of word
    vectors is watched, or what our own networks announce: the last tokens looked up are those of the running pass.
    """
    readers, special = _readers(model), torch.tensor(special_ids(model))
    latest: list[Tensor] = []

    def note(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        latest[:] = inputs[:1]

    def places(x: Float[Tensor, "batch token d_e"]) -> Bool[Tensor, "_ token"]:
        ids = latest[0] if latest else x.new_empty(0)
        if ids.dim() != 2 or ids.shape[1] != x.shape[1] or len(ids) not in (1, len(x)):
            kind = type(model.network).__name__
            raise Unsupported(f"It is not known which tokens the layers of {kind} are reading, so they stay unchanged.")
        return ~torch.isin(ids, special.to(ids.device))

    with ExitStack() as hooks:
        for module in readers:
            hooks.callback(module.register_forward_pre_hook(note).remove)
        yield places


def _readers(model: Recordable) -> list[nn.Module]:
    """The modules that every pass gives its token ids to."""
    network = model.network
    if isinstance(network, Gpt2Network | EncoderNetwork | TransformerNetwork):
        return [network.tokens]
    return [table for table, _ in tables(model)]


_special: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()
"""What was found for a model."""


def special_ids(model: Recordable) -> list[int]:
    """The tokens that belong to no text, wherever they stand; the unknown token stands for a word, so it does."""
    if model not in _special:
        _special[model] = sorted(_special_ids(model))
    return _special[model]


def _special_ids(model: Recordable) -> frozenset[int]:
    document = model.encode("a")
    added = frozenset({NO_TOKEN, *document.ids[document.words == SPECIAL].tolist()})
    if isinstance(model, Writer):
        return added | frozenset(model.vocabulary.special)
    if isinstance(model, EncoderClassifier):
        return added | frozenset(range(len(SPECIAL_PIECES))) - {UNKNOWN_ID}
    # Only models of Hugging Face have such a tokenizer, and transformers may not be installed.
    tokenizer: Any = getattr(model, "tokenizer", None)
    if tokenizer is None:
        return added
    roles = {getattr(tokenizer, f"{role}_token_id") for role in ("bos", "eos", "cls", "sep", "pad", "mask")}
    return added | frozenset(tokenizer.all_special_ids) - ({tokenizer.unk_token_id} - roles)
