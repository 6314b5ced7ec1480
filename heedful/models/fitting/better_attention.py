"""Losses for better attention: sharper, on human rationales, over states that differ and do not mix words.

Each is a function of a batch and is added to the cross-entropy with a weight λ.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from heedful.datasets import Example
from heedful.document import SPECIAL, Document
from heedful.document.rationale import marked_units
from heedful.errors import BadInput
from heedful.models.classic.network import ClassicNetwork
from heedful.models.fitting.batch import BatchLoss, FitBatch, cross_entropy

Marked = Bool[np.ndarray, "_"] | None
PENALTIES = ("entropy", "rationale", "diversity", "leak")
_TINY = 1e-30


def check_penalties(weights: Mapping[str, float]) -> None:
    """Refuses a negative weight of a loss."""
    for name, weight in weights.items():
        if not 0 <= weight < float("inf"):
            raise BadInput(f"{name} must be a number of at least 0; {weight} was given.")


def penalised(weights: Mapping[str, float], documents: Sequence[Document], examples: Sequence[Example]) -> BatchLoss:
    """Cross-entropy plus the losses whose weight is not 0, by their names; cross-entropy itself if there are none."""
    chosen = {name: weight for name, weight in weights.items() if weight}
    if not chosen:
        return cross_entropy
    terms: dict[str, BatchLoss] = {"entropy": entropy, "diversity": conicity, "leak": leak}
    if "rationale" in chosen:
        if all(example.rationale is None for example in examples):
            raise BadInput("These texts have no rationales; leave rationale at 0, or train on eraser-movies or sst.")
        terms["rationale"] = missed_rationale([*map(marked_tokens, documents, examples)])

    def loss(batch: FitBatch) -> Tensor:
        return cross_entropy(batch) + sum(weight * terms[name](batch) for name, weight in chosen.items())

    return loss


def entropy(batch: FitBatch) -> Float[Tensor, ""]:
    """H(α) / ln T, the mean over texts and heads, T being the number of tokens that can get attention: 1 is uniform.

    The usual objective for sparse attention, as in Nguyen et al., 2023, arXiv:2501.12775; an L1 penalty has no effect
    on weights that sum to 1.
    Differs from a plain entropy: divided by its maximum, so that long texts do not count more.
    """
    alpha = batch.attention
    # The logarithm of 0 has no gradient, and 0 · ln 0 is 0.
    H = -(alpha * alpha.clamp(min=_TINY).log()).sum(dim=-1)
    return (H / _seen(batch).sum(dim=1).clamp(min=2).log()[:, None]).mean()


def missed_rationale(marked: Sequence[Marked]) -> BatchLoss:
    """−ln of the attention on the words that people marked, the mean over the texts with a rationale.

        −ln Σ_{t marked} ᾱ_t,   ᾱ the mean of α over heads: a head may look elsewhere

    `marked` has an entry for each training text. Marked words that cannot get attention, such as those of the second
    text of a pair, are left out.
    Differs from Zhong et al. (2019), arXiv:1908.06870, who add KL(u ‖ α), u equal on all marked words: here one marked
    word is enough.
    """

    def loss(batch: FitBatch) -> Float[Tensor, ""]:
        alpha = batch.attention.mean(dim=1)
        inside = np.zeros(alpha.shape, dtype=bool)
        for place, row in zip(inside, batch.rows.tolist(), strict=True):
            own = marked[row]
            if own is not None:
                place[: len(own)] = own
        inside &= _seen(batch).cpu().numpy()
        share = torch.where(torch.from_numpy(inside).to(alpha.device), alpha, 0.0).sum(dim=1)
        with_rationale = torch.from_numpy(inside.any(axis=1)).to(alpha.device)
        missed = torch.where(with_rationale, -share.clamp(min=_TINY).log(), 0.0)
        return missed.sum() / with_rationale.sum().clamp(min=1)

    return loss


def marked_tokens(document: Document, example: Example) -> Marked:
    """The tokens of a document that people marked; None if nobody did, or not in the part that the model reads."""
    if example.rationale is None:
        return None
    try:
        units = marked_units(document, "token", example.rationale)
    except BadInput:
        return None
    marked = np.zeros(len(document.ids), dtype=bool)
    marked[document.words != SPECIAL] = units
    return marked


def conicity(batch: FitBatch) -> Float[Tensor, ""]:
    """The mean cosine of the hidden states of a text's words with their mean: 1 if all point the same way.

    Mohankumar et al., *Towards Transparent and Explainable Attention Models*, 2020, arXiv:2004.14243, Section 3.
    """
    h, seen = _states(batch), _seen(batch)
    mean = _mean_over(h, seen)
    return _mean_over(cosine_similarity(h, mean[:, None], dim=-1)[..., None], seen).mean()


def leak(batch: FitBatch) -> Float[Tensor, ""]:
    """Σ_t ‖h_t − h(x_t)‖² / Σ_t ‖h_t‖², the mean over texts: how much of its words' states comes from other words.

    h(x_t) is the state of the word read alone, as a text of one token. The sums are over the words of a text, since
    the ReLU of a convolution may make a single state zero.
    Reference: Tutek & Šnajder, *Staying True to Your Word*, 2020, arXiv:2005.09379.
    Differs from the paper: they tie h_t to the word vector itself, ‖h_t − x_t‖², which needs states of its size.
    """
    network, h, seen = batch.calls[-1].module, _states(batch), _seen(batch)
    assert isinstance(network, ClassicNetwork)
    words = batch.embeddings[seen][:, None]
    alone, _ = network.first(words, torch.ones(len(words), dtype=torch.long))
    moved = torch.zeros_like(h)
    moved[seen] = h[seen] - alone[:, 0]
    size = torch.where(seen[..., None], h, 0.0).square().sum(dim=(1, 2))
    return (moved.square().sum(dim=(1, 2)) / size.clamp(min=_TINY)).mean()


def _states(batch: FitBatch) -> Float[Tensor, "batch token d_out"]:
    """h_t: what the attention of a classic model averages."""
    return batch.calls[-1].v[:, 0]


def _seen(batch: FitBatch) -> Bool[Tensor, "batch token"]:
    """The tokens that can get attention."""
    call = batch.calls[-1]
    if call.mask is None:
        return torch.ones(len(call.k), call.k.shape[2], dtype=torch.bool, device=call.k.device)
    return call.mask[:, 0, 0]


def _mean_over(
    x: Float[Tensor, "batch token d_out"], seen: Bool[Tensor, "batch token"]
) -> Float[Tensor, "batch d_out"]:
    return torch.where(seen[..., None], x, 0.0).sum(dim=1) / seen.sum(dim=1, keepdim=True)
