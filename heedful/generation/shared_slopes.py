"""Gradients of every token that a language model wrote, from as few passes as there are chunks of tokens."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.document import Document
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.language import first_tokens

if TYPE_CHECKING:
    from heedful.generation.continuation import Continuation

_MOST, _MEMORY = 16, 64_000_000
"""The most groups whose gradients come from one pass, and the bytes that these gradients may take."""

Slopes = tuple[Float[Tensor, "group row"], Float[Tensor, "group row token d_e"]]
"""Values of some groups at some embeddings, and their gradients there."""


@final
@dataclass(eq=False)
class SlopeCache:
    """The gradients of one chunk of groups, by the model's fingerprint and the embeddings they were taken at."""

    first: int = -1
    slopes: dict[tuple[str, Document, bytes], Slopes] = field(default_factory=dict)


def every_slope(
    model: "Continuation", cache: SlopeCache, group: int, e: Float[Tensor, "row token d_e"], document: Document
) -> tuple[Float[Tensor, "row"], Float[Tensor, "row token d_e"]]:
    """The value of a group at some embeddings and its gradient; those of the groups next to it are kept."""
    n_chunk = max(1, min(_MOST, _MEMORY // (e.numel() * e.element_size())))
    first = group - group % n_chunk
    if cache.first != first:
        cache.first, cache.slopes = first, {}
    # By bytes, as NumPy has no bfloat16.
    key = model.fingerprint, document, e.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    if key not in cache.slopes:
        cache.slopes[key] = _chunk(model, range(first, min(first + n_chunk, len(model.classes))), e, document)
    values, slopes = cache.slopes[key]
    return values[group - first], slopes[group - first]


def _chunk(
    model: "Continuation", groups: Sequence[int], e: Float[Tensor, "row token d_e"], document: Document
) -> Slopes:
    """The gradient of each group: one backward pass through the head for all, and one batched pass below it.

    A token's value depends on the state before the head at its own position alone, so the gradients there come from one
    pass. They are then the starting vectors of the others. What is written after the chunk is not read.
    """
    n_written = model.n_written(document)
    members = [range(n_written) if model.groups is None else model.groups[group] for group in groups]
    start, end = min(map(min, members)), max(map(max, members)) + 1
    n_read = len(document.ids) - n_written + end
    short = first_tokens(document, n_read)
    inputs = e[:, :n_read].detach().requires_grad_()
    with _states(model.base.head) as seen:
        tokens = model.token_values(inputs, [short] * len(e), None, end - start)
    states = seen[-1]
    (at_head,) = torch.autograd.grad(tokens.sum(), states, retain_graph=True)
    member = torch.zeros(len(members), tokens.shape[1], dtype=tokens.dtype, device=tokens.device)
    for row, positions in zip(member, members, strict=True):
        row[[position - start for position in positions]] = 1.0
    # A head may be given more positions than are read.
    weights = torch.nn.functional.pad(member, (at_head.shape[1] - tokens.shape[1], 0)).to(at_head)
    seeds = weights[:, None, :, None] * at_head
    (slopes,) = torch.autograd.grad(states, inputs, seeds, is_grads_batched=True)
    values = torch.einsum("rt,gt->gr", tokens.detach(), member)
    slopes = torch.nn.functional.pad(slopes, (0, 0, 0, e.shape[1] - n_read))
    return (values, slopes) if model.foil is None else _less_foil(model, groups, e, values, slopes)


def _less_foil(
    model: "Continuation",
    groups: Sequence[int],
    e: Float[Tensor, "row token d_e"],
    values: Float[Tensor, "group row"],
    slopes: Float[Tensor, "group row token d_e"],
) -> Slopes:
    """The same less the values of the second text, whose shared tokens have the embeddings of the first."""
    foil = model.foil
    assert foil is not None
    theirs, slopes_there = _chunk(foil.model, groups, foil.embeddings(e), foil.document)
    origin = torch.tensor(foil.origin, device=e.device)
    shared = origin >= 0
    slopes = slopes.index_add(2, origin[shared], slopes_there[:, :, shared], alpha=-1.0)
    return values - theirs, slopes


@contextmanager
def _states(head: nn.Module) -> Iterator[list[Tensor]]:
    """Inside this context the inputs of the head are kept."""
    seen: list[Tensor] = []
    with ONE_THREAD:
        handle = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            yield seen
        finally:
            handle.remove()
