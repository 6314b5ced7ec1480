"""The last layer's attention in one document: its weights, and the output under other weights."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, Unsupported
from heedful.models.attention_hook import Attended, still
from heedful.models.budget import PASS_MEMORY
from heedful.models.layered import Derived
from heedful.models.recording import Recordable, record
from heedful.target import Returns, log_probabilities

_MOST_CLASSES = 10
"""Slopes are computed for at most this number of classes, the most probable ones."""
_NEAR = 1e-4
"""Logits that differ by less than this share of their range are equal up to rounding."""
_ADDING = re.compile(
    "torch::autograd::AccumulateGrad|(Add|Alias|Cat|Clone|Expand|Mean|Neg|Permute|ReshapeAlias|Select|Slice|Squeeze|"
    "Stack|Sub|Sum|T|ToCopy|Transpose|UnsafeView|Unsqueeze|View)Backward"
)
_PRODUCTS = re.compile("(Addmm|Baddbmm|Bmm|Mm|Mul|Mv)Backward")
"""Operations of torch's graph that are linear in their inputs, and those that are if one factor is constant."""


@final
@dataclass(frozen=True, eq=False)
class LastAttention:
    """The attention that the read-out position of the last layer gives to each token, and its effect on the logits.

    Where nothing but a linear map follows, as in models of one layer, the logits are linear in these weights, and the
    output under any others is known without a forward pass. Where the output is read from several positions, `alpha` is
    their mean, and other weights are approached by multiplying every row by the same factors and dividing it by its
    sum, so that their mean is only nearly the requested one.
    """

    model: Recordable
    document: Document
    alpha: Float[np.ndarray, "head token"]
    is_word: Bool[np.ndarray, "token"]
    """Tokens of words that can be attended to; special tokens and padding keep their attention in every test."""
    logits: Float[np.ndarray, "classes"]
    classes: Int[np.ndarray, "class"]
    """The classes whose slopes are known, the predicted one first."""
    slopes: Float[np.ndarray, "class head token"]
    """The slope of each logit in each weight, at the model's own attention."""
    layer: int
    n_read: int = 1
    """The number of positions that the output is read from."""
    is_linear: bool = False

    def under(self, weights: Float[np.ndarray, "variant head token"]) -> Float[np.ndarray, "variant classes"]:
        """The logits with other weights in the last layer. Each head's weights must sum to the sum of its own."""
        if self.is_linear:
            ordered = np.empty_like(self.slopes)
            ordered[self.classes] = self.slopes
            return self.logits + np.einsum("cht,vht->vc", ordered, weights - self.alpha)
        n = max(1, PASS_MEMORY // self.model.bytes_a_document(self.alpha.shape[1]))
        return np.concatenate([self._passes(weights[start : start + n]) for start in range(0, len(weights), n)])

    def _passes(self, weights: Float[np.ndarray, "variant head token"]) -> Float[np.ndarray, "variant classes"]:
        factors = np.where(self.alpha > 0, weights / np.where(self.alpha > 0, self.alpha, 1.0), 0.0)

        def edit(layer: int, maps: Float[Tensor, "batch head query key"]) -> Tensor:
            if layer != self.layer:
                return maps
            if self.n_read == 1:
                # Rows that are not read have no effect.
                return torch.from_numpy(weights).to(maps)[:, :, None].expand_as(maps)
            changed = maps * torch.from_numpy(factors).to(maps)[:, :, None]
            return changed / changed.sum(dim=-1, keepdim=True).clamp(min=1e-30)

        return self.model.edited([self.document] * len(weights), edit)

    def probabilities(self, logits: Float[np.ndarray, "*row classes"]) -> Float[np.ndarray, "*row outcome"]:
        """The distribution over classes; of a single logit that of no and yes."""
        return as_distribution(logits, self.model.returns)

    def moved(self, shares: Float[np.ndarray, "*row head word"]) -> Float[np.ndarray, "*row head token"]:
        """The weights whose shares among the words are these, each head's attention to words unchanged."""
        weights = np.broadcast_to(self.alpha, (*shares.shape[:-1], self.alpha.shape[-1])).copy()
        weights[..., self.is_word] = shares * self.mass[:, None]
        return weights

    @property
    def mass(self) -> Float[np.ndarray, "head"]:
        """The attention that each head gives to words."""
        return self.alpha[:, self.is_word].sum(axis=1)

    @property
    def shares(self) -> Float[np.ndarray, "head word"]:
        """The attention of each head among the words, which sums to 1; equal in a head that gives them none."""
        n, mass = int(self.is_word.sum()), self.mass[:, None]
        return np.where(mass > 0, self.alpha[:, self.is_word] / np.where(mass > 0, mass, 1.0), 1 / max(n, 1))

    @property
    def tokens(self) -> Int[np.ndarray, "word"]:
        """The positions of the words' tokens."""
        return np.flatnonzero(self.is_word)

    @property
    def margins(self) -> tuple[Float[np.ndarray, "rival head token"], Float[np.ndarray, "rival"]]:
        """The predicted class's logit less each other's: the slopes of these margins in every weight, and the margins.

        Of a single output, its distance from where the decision changes, positive on its own side.
        """
        logits = self.logits[self.classes]
        if len(logits) > 1:
            return self.slopes[:1] - self.slopes[1:], logits[0] - logits[1:]
        even = {"probabilities": 0.5, "log-probabilities": np.log(0.5)}.get(self.model.returns, 0.0)
        side = 1.0 if logits[0] > even else -1.0
        return side * self.slopes, side * (logits - even)


def as_distribution(logits: Float[np.ndarray, "*row classes"], returns: Returns) -> Float[np.ndarray, "*row outcome"]:
    """The distribution over classes; of a single logit that of no and yes."""
    p = np.exp(log_probabilities(logits, returns))
    if p.shape[-1] == 1:
        return np.concatenate([1 - p, p], axis=-1)
    return p / p.sum(axis=-1, keepdims=True)


def check_readable(model: Recordable, document: Document) -> None:
    """Refuses a model whose output is not read from attention over the document's own tokens."""
    if isinstance(model, Derived):
        raise Unsupported("The probes read a model's own output; give the model itself, not one made from it.")
    if model.n_sources([document]):
        raise Unsupported("This model reads one text and writes another; the probes need a model of one text.")
    if model.returns not in ("logits", "probabilities", "log-probabilities"):
        raise Unsupported(
            f"The probes compare probabilities of classes, but this model returns {model.returns}; wrap a classifier."
        )


def last_attention(model: Recordable, document: Document) -> LastAttention:
    """The last layer's attention in a document, and whether the logits are linear in it."""
    with torch.no_grad():
        recording = record(model, [document])
        places = [number for number, call in enumerate(recording.calls) if call.kind == "self"]
        if not places:
            raise Unsupported("No attention was computed in this model, so there is nothing to probe.")
        readout = model.readout([document])
        call = recording.calls[places[-1]]
        # Without scores every key that is not hidden gets attention; the model's own may be rounded to 0.
        blank = replace(call, q=torch.zeros_like(call.q))
        alpha, visible = (one.pulled(readout.to(call.k))[0].double().cpu().numpy() for one in (call, blank))
    logits = recording.logits[0].double().cpu().numpy()
    if not (np.isfinite(logits).all() and np.isfinite(alpha).all()):
        raise BadInput("The model's output or attention is not a finite number, so it cannot be probed.")
    classes = np.argsort(-logits, kind="stable")[:_MOST_CLASSES]
    slopes, follows_linearly = _slopes(model, document, places[-1], classes.tolist(), readout)
    is_word = np.zeros(alpha.shape[1], dtype=bool)
    is_word[: len(document.ids)] = document.words != SPECIAL
    is_word &= (visible > 0).any(axis=0)
    n_read = int((readout > 0).sum())
    last = LastAttention(model, document, alpha, is_word, logits, classes, slopes, places[-1], n_read)
    linear = replace(last, is_linear=n_read == 1 and len(logits) <= _MOST_CLASSES and follows_linearly)
    return linear if linear.is_linear and _predicts(linear, last) else last


def _slopes(
    model: Recordable, document: Document, last: int, classes: Sequence[int], readout: Float[Tensor, "batch query"]
) -> tuple[Float[np.ndarray, "class head token"], bool]:
    """∂f/∂α_t of each class, ∇o · v_t, and whether what follows is linear.

    Where several rows s are read with weights r_s, Σ_s A_{s,t} ∇o_s · (v_t − o_s) / Σ_s r_s A_{s,t} + Σ_s ∇o_s · o_s:
    the weights of a token are multiplied alike in all rows, and every row is divided by its sum.
    """
    layers, kept = count(), []

    def note(call: Attended) -> Tensor:
        if next(layers) != last:
            return call.output()
        out = call.output().detach().requires_grad_()
        kept.append((call.detached(), out))
        return out

    with torch.enable_grad(), still(model.network), model.listening(note):
        logits = model.forward(model.embed([document]).detach(), [document])[0]
        call, out = kept[0]
        rows = []
        wanted = (readout[0] > 0).nonzero()[:, 0]
        maps, values, own = (x[0].double() for x in (call.rows(wanted), call.v, out[:, :, wanted]))
        total = torch.einsum("s,hst->ht", readout[0, wanted].to(maps), maps)
        # Of one row the shares are 1, also where attention is rounded to 0.
        shares = torch.where(total > 0, maps.transpose(0, 1) / total.where(total > 0, 1.0), float(len(wanted) == 1))
        for index in classes:
            (gradient,) = torch.autograd.grad(logits[index], out, retain_graph=True)
            gradient = gradient[0, :, wanted].double()
            level = (gradient * own).sum(dim=-1, keepdim=True)
            effect = gradient @ values.transpose(-1, -2) - level
            rows.append((shares.transpose(0, 1) * effect).sum(dim=1) + level.sum(dim=1))
        return torch.stack(rows).detach().cpu().numpy(), is_affine(logits)


def is_affine(output: Tensor) -> bool:
    """Whether all operations between the inputs that need a gradient and the output are known to be linear."""
    nodes, seen = [output.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        kind, inputs = node.name().rstrip("0123456789"), [other for other, _ in node.next_functions]
        product = _PRODUCTS.fullmatch(kind) and None in inputs[-2:]
        if not (product or _ADDING.fullmatch(kind) or (kind == "DivBackward" and inputs[1] is None)):
            return False
        nodes += inputs
    return True


def _predicts(linear: LastAttention, last: LastAttention) -> bool:
    """Whether the slopes predict the logits under uniform attention and under attention to one word.

    A second check: a program may switch between linear maps in a way that torch's graph does not show.
    """
    n = int(last.is_word.sum())
    if n < 2:
        return False
    variants = np.stack([np.full((len(last.alpha), n), 1 / n), np.eye(n)[[0] * len(last.alpha)]])
    variants = last.moved(0.9 * variants + 0.1 * last.shares)
    actual = last.under(variants)
    size = max(float(np.ptp(actual, axis=0).max()), float(np.abs(actual - last.logits).max()), 1e-12)
    error = np.abs(actual - linear.under(variants)).max()
    return bool(error <= _NEAR * max(size, float(np.abs(actual).max()) * 1e-3))
