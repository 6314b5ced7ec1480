"""Temporarily replaces the `forward` of some modules of a network."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from heedful.models.attention_hook import ONE_THREAD


@contextmanager
def patched_forward(modules: Iterable[nn.Module], patch: Callable[[nn.Module], Callable[..., Any]]) -> Iterator[None]:
    """Inside this context each module runs `patch(module)` instead of its `forward`; afterwards it is restored."""
    patched = list(modules)
    with ONE_THREAD:
        before = {module: vars(module)["forward"] for module in patched if "forward" in vars(module)}
        try:
            for module in patched:
                module.forward = patch(module)
            yield
        finally:
            for module in patched:
                vars(module).pop("forward", None)
            for module, forward in before.items():
                module.forward = forward
