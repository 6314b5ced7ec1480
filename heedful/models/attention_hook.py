"""One attention hook for every model: it gives access to q, k, v and mask of each attention call, and may change it.

A listener gets every call and returns the output that the layer continues with: `call.output()` changes nothing.
Maps are never stored; they are computed from q and k on request, a few rows at a time.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from threading import RLock
from typing import Literal, final
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from heedful.errors import Unsupported

Kind = Literal["self", "cross", "source", "back"]
"""Self-attention of the model or its decoder, attention from there to the source (an encoder, or regions of an image),
self-attention of the source, and attention of the source back to the model: co-attention."""

_CELLS = 4_000_000

ONE_THREAD = RLock()
"""Held while a network runs or is copied, and while a tokenizer works: their hooks, switches and options are shared by
all threads. One lock for all networks, since some of the switches are torch's own."""


@final
@dataclass(frozen=True, eq=False)
class Attended:
    """One layer's attention, softmax(scale · q kᵀ + mask) v, before its heads are joined.

    A mask of numbers is added; in a boolean mask False hides a key. `causal` hides every key after its query.
    """

    module: nn.Module
    q: Float[Tensor, "batch head query d_att"]
    k: Float[Tensor, "batch head key d_att"]
    v: Float[Tensor, "batch head key d_out"]
    mask: Tensor | None
    causal: bool
    scale: float
    kind: Kind = "self"

    def output(self) -> Float[Tensor, "batch head query d_out"]:
        """The output of the unchanged model."""
        return scaled_dot_product_attention(
            self.q, self.k, self.v, attn_mask=self.mask, is_causal=self.causal, scale=self.scale
        )

    def rows(self, queries: Int[Tensor, "row"]) -> Float[Tensor, "batch head row key"]:
        """The attention of some queries, in single precision at least."""
        q, k = (x if x.dtype == torch.float64 else x.float() for x in (self.q[:, :, queries], self.k))
        scores = q @ k.transpose(-1, -2) * self.scale
        if self.causal:
            later = torch.arange(k.shape[2], device=k.device) > queries[:, None]
            scores = scores.masked_fill(later, -inf)
        if self.mask is not None:
            mask = self.mask if self.mask.shape[-2] == 1 else self.mask[..., queries, :]
            scores = scores.masked_fill(~mask, -inf) if mask.dtype == torch.bool else scores + mask
        if self.mask is None:
            return torch.softmax(scores, dim=-1)
        # A padded query may see no key, and a softmax over no key is not a number.
        blind = (scores == -inf).all(dim=-1, keepdim=True)
        return torch.softmax(scores.masked_fill(blind, 0.0), dim=-1).masked_fill(blind, 0.0)

    def maps(self) -> Float[Tensor, "batch head query key"]:
        """The whole matrices at once."""
        return self.rows(torch.arange(self.q.shape[2], device=self.q.device))

    def portions(self, wanted: Float[Tensor, "batch query"] | None = None) -> Iterator[Int[Tensor, "row"]]:
        """All queries, or those with a weight in some text, in portions whose rows take at most 16 MB."""
        queries = (
            torch.arange(self.q.shape[2], device=self.q.device) if wanted is None else wanted.any(0).nonzero()[:, 0]
        )
        n_cells = self.q.shape[0] * self.q.shape[1] * self.k.shape[2]
        yield from queries.split(max(1, _CELLS // n_cells))

    def pulled(self, r: Float[Tensor, "batch query"]) -> Float[Tensor, "batch head key"]:
        """Σ_s r_s A_{s,t}: the attention to each key, summed over queries with weights r."""
        pulled = r.new_zeros(*self.q.shape[:2], self.k.shape[2])
        for queries in self.portions(r):
            rows = self.rows(queries)
            pulled += torch.einsum("bs,bhst->bht", r[:, queries].to(rows), rows).to(r)
        return pulled

    def detached(self) -> "Attended":
        """The same call without gradients."""
        q, k, v = (x.detach() for x in (self.q, self.k, self.v))
        mask = None if self.mask is None else self.mask.detach()
        return Attended(self.module, q, k, v, mask, self.causal, self.scale, self.kind)


Listener = Callable[[Attended], Tensor]
_listeners: dict[nn.Module, Listener] = {}
_projections: WeakKeyDictionary[nn.Module, Callable[[], Tensor]] = WeakKeyDictionary()


def attend(call: Attended) -> Float[Tensor, "batch head query d_out"]:
    """Computes an attention call, by its listener if it has one; every model's attention goes through here."""
    listener = _listeners.get(call.module)
    return call.output() if listener is None else listener(call)


def is_heard(module: nn.Module) -> bool:
    """Whether a listener gets the attention calls of this module."""
    return module in _listeners


@contextmanager
def heard(network: nn.Module, listener: Listener) -> Iterator[None]:
    """Inside this context the listener gets each attention call of the network that goes through `attend`."""
    # By module, not by thread: a layer that is run again for its gradient may run in autograd's own thread.
    modules = list(network.modules())
    with ONE_THREAD:
        before = {module: _listeners[module] for module in modules if module in _listeners}
        try:
            _listeners.update(dict.fromkeys(modules, listener))
            yield
        finally:
            for module in modules:
                _listeners.pop(module, None)
            _listeners.update(before)


def keep_projection(module: nn.Module, weight: Callable[[], Float[Tensor, "head d_out d_e"]]) -> None:
    """Registers the output projection of an attention module."""
    _projections[module] = weight


def projection(call: Attended) -> Float[Tensor, "head d_out d_e"]:
    """The output projection W_O of a layer, head by head: v W_O is the output of a head for one key."""
    if call.module not in _projections:
        raise Unsupported(f"The output projection of {type(call.module).__name__} could not be found.")
    return _projections[call.module]().unflatten(0, (call.q.shape[1], -1))


@contextmanager
def still(network: nn.Module) -> Iterator[None]:
    """Inside this context the network has no dropout and its weights have no gradient; both are restored afterwards.

    Other threads wait at its entry: every pass of a network runs inside of it. A small network runs on one core.
    """
    with ONE_THREAD, _one_core(network):
        training = [module for module in network.modules() if module.training]
        trainable = [weight for weight in network.parameters() if weight.requires_grad]
        try:
            for module in training:
                module.training = False
            for weight in trainable:
                weight.requires_grad_(False)
            yield
        finally:
            for module in training:
                module.training = True
            for weight in trainable:
                weight.requires_grad_(True)


SMALL = 20_000_000
"""The number of weights below which a network runs on one core, unless OMP_NUM_THREADS says otherwise."""
_sizes: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


@contextmanager
def _one_core(network: nn.Module) -> Iterator[None]:
    """Inside this context torch computes with one thread if the network is small.

    The threads of a small network wait for each other in every operation, and many times longer beside other work.
    """
    n_threads = torch.get_num_threads()
    if n_threads == 1 or "OMP_NUM_THREADS" in os.environ or not is_small(network):
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def is_small(network: nn.Module) -> bool:
    """Whether the network has fewer than `SMALL` weights."""
    if network not in _sizes:
        _sizes[network] = sum(weight.numel() for weight in network.parameters())
    return _sizes[network] < SMALL
