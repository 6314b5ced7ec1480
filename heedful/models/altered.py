"""Changed copies of a model: weights permuted, weights rescaled without changing f, or word vectors moved.

The model itself is never changed. Vocabulary, tokenizer and splitter are shared with the copy.
"""

import hashlib
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.document import SPECIAL, Document
from heedful.errors import Unsupported
from heedful.family import check_seed
from heedful.models import Model
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.layered import LayeredModel
from heedful.models.recording import Recordable
from heedful.models.single_layer import SingleLayer
from heedful.models.torch_module import TorchModule
from heedful.models.transformer import Layer, Transformer
from heedful.models.vocabulary import UNK

Copied = TypeVar("Copied", bound=Model)

_JOINED = (
    ("v_proj", "o_proj"),
    ("v_proj", "out_proj"),
    ("v_lin", "out_lin"),
    ("v", "o"),
    ("value", "dense"),
    ("self.value", "output.dense"),
    ("attention.value", "output.dense"),
)
"""The value and output projections by the names that Hugging Face's attention modules give them."""


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
        raise Unsupported("A function or a bag has no weights to scramble; wrap the network itself.")
    check_seed(seed)
    copy, rng = copied(model), np.random.default_rng(seed)
    weights = [weight for weight in copy.network.parameters() if weight.is_floating_point()]
    if not weights:
        raise Unsupported("The weights of a quantised model are packed and cannot be scrambled.")
    for weight in weights:
        order = torch.from_numpy(rng.permutation(weight.numel())).to(weight.device)
        weight.copy_(weight.flatten()[order].view_as(weight))
    return copy


@torch.no_grad()
def twin(model: Model) -> Model:
    """A copy with other weights that computes the same function: f is equal on every text and every mask.

    In the paper's model the coordinates of all word and position vectors are multiplied by ½, 1 or 2 and the columns of
    W_q, W_k and W_v are divided by the same factors: a method that depends on the scale of embeddings changes. In
    layered models the values are doubled and the output projection is halved: a method that depends on the scale of
    values changes. Factors are powers of two, so there is no rounding error. A twin of the paper's model cannot be
    saved: its file would lose the factors of the positions.
    """
    if not isinstance(model, Recordable):
        raise Unsupported("A function or a bag has no weights, so it has no twin; wrap the network itself.")
    copy = copied(model)
    if isinstance(copy, SingleLayer):
        net = copy.network
        factor = 2.0 ** (torch.arange(net.config.d_e, device=net.W_e.device) % 3 - 1)
        for table in (net.W_e, net.W_p):
            table.mul_(factor.to(table))
        for matrix in (net.W_q, net.W_k, net.W_v):
            matrix.div_(factor.to(matrix))
        return copy
    pairs = list(_values_and_joins(copy.network))
    for values, join in pairs:
        join.div_(2.0)
        for value in values:
            value.mul_(2.0)
    if not pairs or not _agree(model, copy):
        raise Unsupported(f"heedful cannot rescale the weights of {type(model.network).__name__}, so it has no twin.")
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
        self._copy.fingerprint = digest.hexdigest()[:16]
        return self._copy

    def _back(self) -> None:
        for weight, places, old in self._before:
            weight[places] = old
        self._before.clear()


def replacement_id_of(model: Model) -> int:
    """The id of the token that replaces removed ones."""
    return model.replacement_id if isinstance(model, LayeredModel) else UNK


def copied(model: Copied, shared: Iterable[nn.Parameter] = ()) -> Copied:
    """A copy of the model with its own weights, except the shared ones; values cached from the weights are dropped."""
    memo = {id(part): part for part in vars(model).values() if not isinstance(part, nn.Module)}
    memo |= {id(weight): weight for weight in shared}
    # A copy made during another thread's pass would have that thread's hooks.
    with ONE_THREAD:
        copy = deepcopy(model, memo)
    for name in list(vars(copy)):
        # The class names of a language model do not depend on weights and are slow to compute.
        if name != "classes" and isinstance(getattr(type(copy), name, None), cached_property):
            del vars(copy)[name]
    return copy


def tables(model: Model) -> list[tuple[nn.Module, str]]:
    """The embedding tables: a module and the name of its weight each; encoder and decoder may have one each."""
    if isinstance(model, SingleLayer | Transformer):
        return [(model.network, "W_e")]
    if isinstance(model, TorchModule):
        return [(model._table, "weight")]
    if not isinstance(model, LayeredModel) or model.network.main_input_name != "input_ids":
        raise Unsupported("This model has no table of word vectors; use a model of texts.")
    network = model.network
    towers = [network.get_encoder(), network.get_decoder()] if network.config.is_encoder_decoder else [network]
    return [(table, "weight") for table in dict.fromkeys(tower.get_input_embeddings() for tower in towers)]


def _values_and_joins(network: nn.Module) -> Iterator[tuple[list[Tensor], Tensor]]:
    """For every attention module, the weights that compute its values and its output projection."""
    for module in network.modules():
        if isinstance(module, Layer):
            yield [module.weights["W_v"], module.weights["b_v"]], module.weights["W_o"]
        elif isinstance(module, nn.MultiheadAttention):
            weight = module.v_proj_weight if module.in_proj_weight is None else module.in_proj_weight.chunk(3)[2]
            bias = [] if module.in_proj_bias is None else [module.in_proj_bias.chunk(3)[2]]
            yield [weight, *bias], module.out_proj.weight
        elif (both := _part(module, "c_attn")) is not None and (join := _part(module, "c_proj")) is not None:
            # GPT-2 stores its linear maps transposed, and one of them computes queries, keys and values.
            yield [both.weight.chunk(3, dim=1)[2], both.bias.chunk(3)[2]], join.weight
        else:
            for names in _JOINED:
                value, join = (_part(module, name) for name in names)
                if isinstance(value, nn.Linear) and isinstance(join, nn.Linear):
                    yield [value.weight, *([] if value.bias is None else [value.bias])], join.weight


def _part(module: nn.Module, path: str) -> Any:
    part: nn.Module | None = module
    for name in path.split("."):
        part = None if part is None else dict(part.named_children()).get(name)
    return part


def _agree(model: Recordable, copy: Recordable) -> bool:
    """Whether two models give equal logits: the names of its parts do not show how a module uses its values."""
    document = _any_document(model)
    before, after = model.logits([document]), copy.logits([document])
    return bool(np.abs(before - after).max() <= 1e-4 * max(1.0, np.abs(before).max()))


def _any_document(model: Recordable) -> Document:
    """A document that the model can read: text, token ids or an image."""
    if isinstance(model, TorchModule):
        ids = np.arange(6) % model._table.num_embeddings
        return Document("", ids, ("",) * 6, ((0, 0),) * 6, ids, ids >= 0)
    if isinstance(model, Transformer) or model.network.main_input_name == "input_ids":
        return model.encode("a b c d e f")
    return model.encode(np.arange(32 * 32 * 3, dtype=np.uint32).astype(np.uint8).reshape(32, 32, 3))
