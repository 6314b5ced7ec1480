"""A copy of a model that is the same function with other weights, so that explanations may differ."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.document import Document
from heedful.errors import Unsupported
from heedful.models import Model
from heedful.models.altered import copied, tables
from heedful.models.classic.classifier import Classic
from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.language.writer import Writer
from heedful.models.layered import root_of
from heedful.models.recording import Recordable, record
from heedful.models.single_layer import SingleLayer
from heedful.models.torch_module import TorchModule
from heedful.models.transformer import Layer, Transformer, TransformerNetwork
from heedful.models.twins.coordinates import OtherCoordinates
from heedful.models.twins.heads import HeadWeights, heads_of


@torch.no_grad()
def twin(model: Model) -> Model:
    """A copy with other weights that computes the same function: f is equal on every text, up to rounding.

    In the paper's model the coordinates of all word and position vectors are multiplied by ½, 1 or 2 and the columns of
    W_q, W_k and W_v are divided by the same factors. A layered model is rewritten in as many of these ways as leave its
    logits as they are:

    - word vectors in other coordinates, e′ = e · factor + shift, followed by the inverse map;
    - values v′ = v · factor + shift of each head: the output projection divides by the factor, and its bias takes the
      shift back, since the weights of attention sum to one;
    - heads in reverse order;
    - one head of each layer split into two with the same attention, each with half of the output.

    Masked texts have equal values too, except with absence "zero": a vector of zeros means another word in other
    coordinates. A twin of the paper's model cannot be saved: its file would lose the factors of the positions.
    """
    if not isinstance(model, Recordable):
        raise Unsupported("A function or a bag has no weights, so it has no twin; wrap the network itself.")
    if isinstance(root_of(model), Classic):
        raise Unsupported("heedful has no rule for rewriting the weights of a classic model, so it has no twin.")
    if isinstance(model, SingleLayer):
        return _rescaled_embeddings(copied(model))
    current, document = model, _any_document(model)
    before = _outputs(model, document)
    for step in (_other_coordinates, _moved_values, _reversed_heads, _split_head):
        candidate = copied(current)
        try:
            step(candidate)
            after = _outputs(candidate, document)
        # Names do not show how a module uses its weights; what its code raises for others is not foreseeable.
        except Exception:
            continue
        if all(_are_equal(*two, _tolerance(model)) for two in zip(after, before, strict=True)):
            current = candidate
    if current is model:
        raise Unsupported(f"heedful cannot rewrite the weights of {type(model.network).__name__}, so it has no twin.")
    return current


def _outputs(model: Model, document: Document) -> list[Float[np.ndarray, "1 class"]]:
    """The outputs of a model and of the one that it is derived from: a feature alone may be 0 whatever is changed."""
    return [part.logits([document]) for part in dict.fromkeys((model, root_of(model)))]


def _are_equal(after: Float[np.ndarray, "1 _"], before: Float[np.ndarray, "1 _"], tolerance: float) -> bool:
    return after.shape == before.shape and bool(np.abs(after - before).max() <= tolerance * np.abs(before).max())


def _rescaled_embeddings(copy: SingleLayer) -> SingleLayer:
    net = copy.network
    factor = _factors(net.W_e[0])
    for table in (net.W_e, net.W_p):
        table.mul_(factor.to(table))
    for matrix in (net.W_q, net.W_k, net.W_v):
        matrix.div_(factor.to(matrix))
    return copy


def _other_coordinates(copy: Recordable) -> None:
    for table, _ in tables(copy):
        if not isinstance(table, nn.Embedding):
            raise Unsupported("Its word vectors are not in a module that could be followed by another.")
        places = [
            (part, name) for part in copy.network.modules() for name, child in part.named_children() if child is table
        ]
        rewritten = OtherCoordinates(table)
        for part, name in places:
            setattr(part, name, rewritten)


def _moved_values(copy: Recordable) -> None:
    def moved(heads: HeadWeights) -> HeadWeights:
        factor = _factors(heads.W[2])[:, None]
        # A value of a normed vector is about as large as its row of W_v is long.
        shift = heads.W[2].norm(dim=-1) * factor / 2
        W_o = heads.W_o / factor.repeat_interleave(heads.group, 0)[..., None]
        b_o = heads.b_o - torch.einsum("hd,hde->e", shift.repeat_interleave(heads.group, 0), W_o)
        W, b = (*heads.W[:2], heads.W[2] * factor[..., None]), (*heads.b[:2], heads.b[2] * factor + shift)
        return HeadWeights(W, b, W_o, b_o)

    def moved_layer(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        factor = _factors(weights["W_v"])[:, None]
        changed = {"W_v": weights["W_v"] * factor[..., None], "b_v": weights["b_v"] * factor}
        return changed | {"W_o": weights["W_o"] / factor[..., None]}

    _rewrite(copy, moved, moved_layer)


def _reversed_heads(copy: Recordable) -> None:
    def flipped(heads: HeadWeights) -> HeadWeights:
        return heads.taken(torch.arange(len(heads.W[2]), device=heads.W_o.device).flip(0))

    per_head = ("W_q", "W_k", "W_v", "W_o", "b_q", "b_k", "b_v")
    _rewrite(copy, flipped, lambda weights: {name: weights[name].flip(0) for name in per_head if name in weights})


def _split_head(copy: Recordable) -> None:
    def split(heads: HeadWeights) -> HeadWeights:
        n = len(heads.W[2])
        both = heads.taken(torch.cat([torch.arange(n), torch.zeros(1, dtype=torch.long)]).to(heads.W_o.device))
        W_o = both.W_o.clone()
        W_o[: heads.group] /= 2
        W_o[-heads.group :] /= 2
        return replace(both, W_o=W_o)

    def split_layer(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        n = len(weights["W_v"])
        per_head = [name for name in ("W_q", "W_k", "W_v", "W_o", "b_q", "b_k", "b_v") if name in weights]
        changed = {name: torch.cat([weights[name], weights[name][:1]]) for name in per_head}
        # A layer divides by the number of its heads.
        changed["W_o"] = changed["W_o"] * (n + 1) / n
        changed["W_o"][[0, n]] /= 2
        return changed

    _rewrite(copy, split, split_layer)
    for part in copy.network.modules():
        if isinstance(part, Layer | TransformerNetwork):
            part.config = replace(part.config, n_heads=part.config.n_heads + 1)


def _rewrite(
    copy: Recordable,
    change: Callable[[HeadWeights], HeadWeights],
    change_layer: Callable[[dict[str, Tensor]], dict[str, Tensor]],
) -> None:
    """Rewrites every attention module; raises an error if there is none that is known."""
    if isinstance(root_of(copy), Transformer):
        for layer in copy.network.layers:
            assert isinstance(layer, Layer)
            for name, weight in change_layer({name: weight.detach() for name, weight in layer.weights.items()}).items():
                layer.weights[name] = nn.Parameter(weight, layer.weights[name].requires_grad)
        return
    calls = record(copy, [_any_document(copy)]).calls
    places = list(heads_of(copy.network, {call.module: call.v.shape[-1] for call in calls}))
    if not places:
        raise Unsupported("The names of its projections are not known.")
    for heads, write in places:
        write(change(heads))


def _factors(like: Tensor) -> Tensor:
    """½, 1, 2, ½, … for each row: powers of two, so nothing is lost to rounding."""
    return (2.0 ** (torch.arange(len(like), device=like.device) % 3 - 1)).to(like)


def _tolerance(model: Recordable) -> float:
    """The rounding of a network of this precision, relative to the largest logit."""
    eps = max(torch.finfo(weight.dtype).eps for weight in model.network.parameters() if weight.is_floating_point())
    return min(max(100 * eps, 1e-10), 1e-4)


def _any_document(model: Recordable) -> Document:
    """A document that the model can read: text, token ids or an image."""
    root = root_of(model)
    if isinstance(root, TorchModule):
        ids = np.arange(6) % root._table.num_embeddings
        return Document("", ids, ("",) * 6, ((0, 0),) * 6, ids, ids >= 0)
    if isinstance(root, Transformer | EncoderClassifier | Writer) or model.network.main_input_name == "input_ids":
        return model.encode("a b c d e f")
    return model.encode(np.arange(32 * 32 * 3, dtype=np.uint32).astype(np.uint8).reshape(32, 32, 3))
