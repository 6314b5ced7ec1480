"""The fingerprint of a network's weights and of what is changed in it, and a check that the weights are finite."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from torch import nn

from heedful.errors import BadInput
from heedful.models import Model


def fingerprint_of(network: nn.Module, classes: Sequence[str]) -> str:
    """A hash of the weights and of the names of classes and words."""
    digest = hashlib.sha256(repr(tuple(classes)).encode())
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        if not isinstance(tensor, torch.Tensor):
            # Quantised layers keep their weights packed.
            digest.update(repr(tensor).encode())
            continue
        bits = tensor.detach().cpu().contiguous()
        digest.update((bits.view(torch.uint8) if bits.dim() else bits.reshape(1).view(torch.uint8)).numpy().tobytes())
    return digest.hexdigest()[:16]


def hash_of(*tensors: torch.Tensor) -> str:
    """A hash of tensors: their types, shapes and numbers."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def check_weights(network: nn.Module) -> None:
    """Refuses a network whose weights are not all finite."""
    for name, weight in network.named_parameters():
        if weight.is_floating_point() and not weight.isfinite().all():
            raise BadInput(f"The model's weights are not all finite numbers ({name}); the checkpoint is damaged.")


_own: WeakKeyDictionary[Model, str] = WeakKeyDictionary()
"""The fingerprints of the weights of models that compute something else for a while."""


def own_fingerprint(model: Model) -> str:
    """The fingerprint of a model's weights, also while it has another one."""
    return _own.get(model, model.fingerprint)


@contextmanager
def other_fingerprint(model: Model, change: str) -> Iterator[None]:
    """Inside this context the model has another fingerprint, of its own and of the change to what it computes."""
    before, outermost = model.fingerprint, model not in _own
    _own.setdefault(model, before)
    model.fingerprint = hashlib.sha256(f"{before} {change}".encode()).hexdigest()[:16]
    try:
        yield
    finally:
        model.fingerprint = before
        if outermost:
            del _own[model]
