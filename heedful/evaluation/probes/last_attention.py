"""The last layer's attention in one document: its weights, and the output under other weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.document import SPECIAL, Document
from heedful.errors import Unsupported
from heedful.models.attention_hook import Attended, still
from heedful.models.budget import PASS_MEMORY
from heedful.models.recording import Recordable, record
from heedful.target import Returns, log_probabilities

_MOST_CLASSES = 10
"""Slopes are computed for at most this number of classes, the most probable ones."""
_NEAR = 1e-4
"""Logits that differ by less than this share of their range are equal up to rounding."""
LINEAR_CLASSES = _MOST_CLASSES


@final
@dataclass(frozen=True, eq=False)
class LastAttention:
    """The attention that the read-out position of the last layer gives to each token, and its effect on the logits.

    Where nothing but a linear map follows, as in models of one layer, the logits are linear in these weights, and the
    output under any others is known without a forward pass. Where the output is read from several positions, `alpha` is
    their mean, and other weights are reached by multiplying every row by the same factors.
    """

    model: Recordable
    document: Document
    alpha: Float[np.ndarray, "head token"]
    is_word: Bool[np.ndarray, "token"]
    """Tokens of words; special tokens and padding keep their attention in every test."""
    logits: Float[np.ndarray, "classes"]
    classes: Int[np.ndarray, "class"]
    """The classes whose slopes are known, the predicted one first."""
    slopes: Float[np.ndarray, "class head token"]
    """The slope of each logit in each weight, at the model's own attention."""
    layer: int
    is_linear: bool = False

    def under(self, weights: Float[np.ndarray, "variant head token"]) -> Float[np.ndarray, "variant classes"]:
        """The logits with other weights in the last layer. Each head's weights must sum to the sum of its own."""
        if self.is_linear:
            ordered = np.empty_like(self.slopes)
            ordered[self.classes] = self.slopes
            return self.logits + np.einsum("cht,vht->vc", ordered, weights - self.alpha)
        factors = np.where(self.alpha > 0, weights / np.where(self.alpha > 0, self.alpha, 1.0), 0.0)
        n = max(1, PASS_MEMORY // self.model.bytes_a_document(self.alpha.shape[1]))
        return np.concatenate([self._passes(factors[start : start + n]) for start in range(0, len(factors), n)])

    def _passes(self, factors: Float[np.ndarray, "variant head token"]) -> Float[np.ndarray, "variant classes"]:
        def edit(layer: int, maps: Float[Tensor, "batch head query key"]) -> Tensor:
            if layer != self.layer:
                return maps
            changed = maps * torch.from_numpy(factors).to(maps)[:, :, None]
            return changed / changed.sum(dim=-1, keepdim=True).clamp(min=1e-30)

        return self.model.edited([self.document] * len(factors), edit)

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
        """The attention of each head among the words, which sums to 1."""
        return self.alpha[:, self.is_word] / np.maximum(self.mass[:, None], 1e-300)

    @property
    def tokens(self) -> Int[np.ndarray, "word"]:
        """The positions of the words' tokens."""
        return np.flatnonzero(self.is_word)


def as_distribution(logits: Float[np.ndarray, "*row classes"], returns: Returns) -> Float[np.ndarray, "*row outcome"]:
    """The distribution over classes; of a single logit that of no and yes."""
    p = np.exp(log_probabilities(logits, returns))
    if p.shape[-1] == 1:
        return np.concatenate([1 - p, p], axis=-1)
    return p / p.sum(axis=-1, keepdims=True)


def check_readable(model: Recordable, document: Document) -> None:
    """Refuses a model whose output is not read from attention over the document's own tokens."""
    if model.n_sources([document]):
        raise Unsupported("This model reads one text and writes another; the probes need a model of one text.")
    if model.returns not in ("logits", "probabilities", "log-probabilities"):
        raise Unsupported(
            f"The probes compare probabilities of classes, but this model returns {model.returns}; wrap a classifier."
        )


def last_attention(model: Recordable, document: Document, is_linear: bool | None = None) -> LastAttention:
    """The last layer's attention in a document. Whether the logits are linear in it is tested unless it is known."""
    with torch.no_grad():
        recording = record(model, [document])
        places = [number for number, call in enumerate(recording.calls) if call.kind == "self"]
        if not places:
            raise Unsupported("No attention was computed in this model, so there is nothing to probe.")
        readout = model.readout([document])
        call = recording.calls[places[-1]]
        alpha = call.pulled(readout.to(call.k))[0].double().cpu().numpy()
    logits = recording.logits[0].double().cpu().numpy()
    classes = np.argsort(-logits, kind="stable")[:_MOST_CLASSES]
    slopes = _slopes(model, document, places[-1], classes.tolist(), readout)
    slopes = np.where(alpha > 0, slopes / np.where(alpha > 0, alpha, 1.0), 0.0)
    is_word = np.zeros(alpha.shape[1], dtype=bool)
    is_word[: len(document.ids)] = document.words != SPECIAL
    is_word &= (alpha > 0).any(axis=0)
    attention = LastAttention(model, document, alpha, is_word, logits, classes, slopes, places[-1])
    if is_linear is None:
        is_linear = len(logits) <= _MOST_CLASSES and bool((readout > 0).sum() == 1) and _predicts(attention)
    return LastAttention(model, document, alpha, is_word, logits, classes, slopes, places[-1], is_linear)


def _slopes(
    model: Recordable, document: Document, last: int, classes: Sequence[int], readout: Float[Tensor, "batch query"]
) -> Float[np.ndarray, "class head token"]:
    """α_t ∂f/∂α_t of each class, Σ_s A_{s,t} ∇o_s · v_t: of the read-out row, or of all rows that are read."""
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
        maps = call.rows(wanted)[0].double()
        for index in classes:
            (gradient,) = torch.autograd.grad(logits[index], out, retain_graph=True)
            effect = gradient[0, :, wanted].double() @ call.v[0].double().transpose(-1, -2)
            rows.append((maps * effect).sum(dim=1))
    return torch.stack(rows).detach().cpu().numpy()


def _predicts(attention: LastAttention) -> bool:
    """Whether the slopes predict the logits under uniform attention and under attention to one word."""
    n = int(attention.is_word.sum())
    if n < 2:
        return False
    variants = np.stack([np.full((len(attention.alpha), n), 1 / n), np.eye(n)[[0] * len(attention.alpha)]])
    variants = attention.moved(0.9 * variants + 0.1 * attention.shares)
    actual = attention.under(variants)
    linear = LastAttention(**{**vars(attention), "is_linear": True}).under(variants)
    size = max(float(np.ptp(actual, axis=0).max()), float(np.abs(actual - attention.logits).max()), 1e-12)
    return bool(np.abs(actual - linear).max() <= _NEAR * max(size, float(np.abs(actual).max()) * 1e-3))
