"""Changed copies of a model: weights permuted, or word vectors moved.

The model itself is never changed. Vocabulary, tokenizer and splitter are shared with the copy.
"""

import hashlib
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import TypeVar, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.document import SPECIAL, Document
from heedful.errors import Unsupported
from heedful.family import check_seed
from heedful.models import Model
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.classic.classifier import Classic
from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.language.gpt2 import Gpt2Network
from heedful.models.layered import LayeredModel, root_of
from heedful.models.recording import Recordable
from heedful.models.single_layer import SingleLayer
from heedful.models.torch_module import TorchModule
from heedful.models.transformer import Transformer
from heedful.models.twins.coordinates import word_table
from heedful.models.vocabulary import UNK

Copied = TypeVar("Copied", bound=Model)


@torch.no_grad()
def scrambled(model: Model, seed: int = 0) -> Model:
    """A copy of the model with its weights permuted at random within each tensor, which removes everything learnt.

    Every trained tensor is permuted: matrices, biases, norms, learnt positions. Fixed tables, such as the positions of
    the paper's model, stay as they are, and tied weights stay tied.

    Adebayo et al., 2018 (arXiv:1810.03292), Section 3. Differs from the source: weights are permuted, not
    redrawn, so that they keep their scale and no layer saturates; all layers are permuted at once,
    since a layer that is left may determine the explanation (Sixt et al., 2020, arXiv:1912.09818).
    """
    if not isinstance(model, Recordable):
        raise Unsupported("A function or a bag has no weights to randomise; wrap the network itself.")
    check_seed(seed)
    copy, rng = copied(model), np.random.default_rng(seed)
    weights = [weight for weight in copy.network.parameters() if weight.is_floating_point()]
    if not weights:
        raise Unsupported("The weights of a quantised model are packed and cannot be randomised.")
    for weight in weights:
        order = torch.from_numpy(rng.permutation(weight.numel())).to(weight.device)
        weight.copy_(weight.flatten()[order].view_as(weight))
    return copy


@final
class Movable:
    """A copy of a model whose word vectors can be moved, for one document at a time.

    Only its embedding tables are copied; all other weights are the model's. A move costs no more than the rows that it
    changes. The model that `moved` returns is valid until the next move.
    """

    def __init__(self, model: Model) -> None:
        assert isinstance(model, Recordable)
        tables(model)
        self._fingerprint, self._replacement_id = model.fingerprint, replacement_id_of(model)
        self._copy = copied(model, shared=model.network.parameters())
        self._weights: list[Tensor] = []
        for module, name in tables(self._copy):
            weight: nn.Parameter = getattr(module, name)
            own = nn.Parameter(weight.detach().clone(), weight.requires_grad)
            setattr(module, name, own)
            self._weights.append(own.data)
        self._before: list[tuple[Tensor, Tensor, Tensor]] = []

    def rows(self, document: Document) -> tuple[Int[np.ndarray, "row"], Float[np.ndarray, "row d_e"]]:
        """The ids of the document's distinct words that have a vector of their own, and their unmoved vectors."""
        self._back()
        own = (document.words != SPECIAL) & document.known & (document.ids != self._replacement_id)
        numbers = np.unique(document.ids[own])
        weight = self._weights[0]
        return numbers, weight[torch.from_numpy(numbers).to(weight.device)].double().cpu().numpy()

    def moved(self, document: Document, shift: Float[np.ndarray, "row d_e"]) -> Model:
        """The model with the vector of each of the document's distinct words moved by a row of `shift`."""
        numbers, _ = self.rows(document)
        for weight in self._weights:
            places = torch.from_numpy(numbers).to(weight.device)
            old = weight[places]
            self._before.append((weight, places, old))
            weight[places] = old + torch.from_numpy(shift).to(old)
        digest = hashlib.sha256(self._fingerprint.encode() + numbers.tobytes() + shift.tobytes())
        root_of(self._copy).fingerprint = digest.hexdigest()[:16]
        return self._copy

    def _back(self) -> None:
        for weight, places, old in self._before:
            weight[places] = old
        self._before.clear()


def replacement_id_of(model: Model) -> int:
    """The id of the token that replaces removed ones."""
    return model.replacement_id if isinstance(model, LayeredModel) else UNK


def copied(model: Copied, shared: Iterable[nn.Parameter] = ()) -> Copied:
    """A copy of the model with its own weights, except the shared ones; values cached from the weights are dropped.

    Models inside of the model, such as the base of a derived one, are copied with it and share the copied weights.
    """
    memo = {id(weight): weight for weight in shared}
    memo |= {id(part): part for part in _parts(model) if not _holds_weights(part)}
    # A copy made during another thread's pass would have that thread's hooks.
    with ONE_THREAD:
        copy = deepcopy(model, memo)
        for part in _parts(copy):
            if isinstance(part, nn.Module):
                for lstm in (module for module in part.modules() if isinstance(module, nn.RNNBase)):
                    # cuDNN wants the weights of an LSTM side by side, and copies are not.
                    lstm.flatten_parameters()
    for part in (part for part in _parts(copy) if isinstance(part, Model)):
        for name in list(vars(part)):
            # The class names of a language model do not depend on weights and are slow to compute.
            if name != "classes" and isinstance(getattr(type(part), name, None), cached_property):
                del vars(part)[name]
    return copy


def _parts(whole: object) -> Iterator[object]:
    """The object and what it holds, as deep as there are models in it."""
    yield whole
    if _holds_weights(whole) and not isinstance(whole, nn.Module):
        for part in vars(whole).values():
            yield from _parts(part)


def _holds_weights(part: object) -> bool:
    """Whether it is a network or a model, or a value that has a model, such as the second text of a continuation."""
    own = fields(part) if is_dataclass(part) and not isinstance(part, type) else ()
    return isinstance(part, nn.Module | Model) or any(isinstance(getattr(part, one.name), Model) for one in own)


def tables(model: Model) -> list[tuple[nn.Module, str]]:
    """The embedding tables: a module and the name of its weight each; encoder and decoder may have one each."""
    model = root_of(model)
    if isinstance(model, SingleLayer | Transformer | EncoderClassifier | Classic):
        return [(model.network, "W_e")]
    if isinstance(model, TorchModule):
        return [(model._table, "weight")]
    if isinstance(model, LayeredModel) and isinstance(model.network, Gpt2Network):
        raise Unsupported("The output of this model shares its table of word vectors, so the table cannot be changed.")
    if not isinstance(model, LayeredModel) or model.network.main_input_name != "input_ids":
        raise Unsupported("This model has no table of word vectors; use a model of texts.")
    network = model.network
    towers = [network.get_encoder(), network.get_decoder()] if network.config.is_encoder_decoder else [network]
    return [(table, "weight") for table in dict.fromkeys(word_table(tower) for tower in towers)]
