"""Gradient checkpointing: layers are recomputed in the backward pass, which saves memory on long texts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.models.forward_patch import patched_forward


@contextmanager
def recomputing(network: nn.Module) -> Iterator[None]:
    """Inside this context a backward pass stores only each layer's input and recomputes the layer (one forward pass).

    The gradient must be computed with `backward()`; `torch.autograd.grad` does not support recomputed layers.
    """
    with patched_forward(_outermost(network), lambda layer: _again(layer.forward)):
        yield


def _outermost(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        yield from child.children() if isinstance(child, nn.ModuleList) else _outermost(child)


def _again(forward: Callable[..., Any]) -> Callable[..., Any]:
    def run(*inputs: Any, **named: Any) -> Any:
        if not inputs or not isinstance(inputs[0], Tensor):
            return forward(*inputs, **named)
        # Reentrant: the layer that is run again is the one whose gradient flows, so its attention passes by the hook.
        return checkpoint(
            lambda x: forward(x, *inputs[1:], **named), inputs[0], use_reentrant=True, preserve_rng_state=False
        )

    return run
