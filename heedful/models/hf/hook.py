"""The attention hook for Hugging Face models: heedful's own attention implementation, enabled inside a context.

A mask function must be registered under the same name: without it transformers drops causal masks silently.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask
from transformers.pytorch_utils import Conv1D

from heedful.errors import Unsupported
from heedful.models.attention_hook import ONE_THREAD, Attended, Kind, Listener, attend, heard, keep_projection

_NAME = "heedful"
_CROSS = ("cross", "encoder_attn", "EncDecAttention")


_kinds: WeakKeyDictionary[nn.Module, Kind] = WeakKeyDictionary()


def _note_kinds(network: PreTrainedModel) -> None:
    """Stores which attention modules belong to the encoder, and which attend from decoder to encoder."""
    encoder = set(network.get_encoder().modules())
    for name, module in network.named_modules():
        _kinds[module] = "source" if module in encoder else "cross" if any(mark in name for mark in _CROSS) else "self"


@contextmanager
def listening(network: Any, listener: Listener) -> Iterator[None]:
    """Inside this context `listener` gets every attention call of the network; the network is restored afterwards."""
    n_heard = 0

    def count(call: Attended) -> Tensor:
        nonlocal n_heard
        n_heard += 1
        return listener(call)

    with ONE_THREAD:
        if network.config.is_encoder_decoder:
            _note_kinds(network)
        projections = nullcontext() if network in _projected else _finding_projections(network)
        with _own_implementation(network), heard(network, count), projections:
            yield
    if not n_heard:
        kind = type(getattr(network, "module", network)).__name__
        raise Unsupported(
            f"The attention of {kind} cannot be recorded: it does not use transformers' attention "
            "interface. Gradient and perturbation methods still work."
        )


@contextmanager
def _own_implementation(network: nn.Module) -> Iterator[None]:
    """Inside this context the network's attention is computed by `hooked_attention`."""
    AttentionInterface.register(_NAME, hooked_attention)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    configs = {id(config): config for config in _configs(network)}.values()
    before = [(config, config._attn_implementation_internal) for config in configs]
    try:
        for config, _ in before:
            config._attn_implementation_internal = _NAME
        yield
    finally:
        _outputs.clear()
        for config, implementation in before:
            config._attn_implementation_internal = implementation


def _configs(network: nn.Module) -> Iterator[Any]:
    for module in network.modules():
        if isinstance(module, PreTrainedModel):
            waiting = [module.config]
            while waiting:
                config = waiting.pop()
                yield config
                waiting += [part for name in config.sub_configs if (part := getattr(config, name)) is not None]


def hooked_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    kind: Kind | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attention with the signature that transformers requires; raises an error for variants that are not supported."""
    for name in ("softcap", "s_aux"):
        if others.get(name) is not None:
            raise Unsupported(f"{type(module).__name__} uses {name} in its attention, which heedful does not support.")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(causal) and attention_mask is None and query.shape[2] > 1
    mask = attention_mask
    if position_bias is not None:
        mask = position_bias
        if causal:
            n_queries, n_keys = query.shape[2], key.shape[2]
            seen = torch.ones(n_queries, n_keys, dtype=torch.bool, device=query.device).tril(n_keys - n_queries)
            mask, causal = mask.masked_fill(~seen, float("-inf")), False
        elif attention_mask is not None and attention_mask.dtype == torch.bool:
            mask = mask.masked_fill(~attention_mask, float("-inf"))
        elif attention_mask is not None:
            mask = mask + attention_mask
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    call = Attended(module, query, key, value, mask, causal, scale, kind or _kinds.get(module, "self"))
    joined = attend(call).transpose(1, 2).contiguous()
    _outputs[joined.untyped_storage().data_ptr()] = module
    return joined, None


_outputs: dict[int, nn.Module] = {}
_projected: WeakSet[nn.Module] = WeakSet()
"""Networks whose output projections are registered."""


@contextmanager
def _finding_projections(network: nn.Module) -> Iterator[None]:
    """Finds the output projection of every attention module: the linear map that reads its output.

    A pass that ran to its end has found them all.
    """

    def look(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if isinstance(module, nn.Linear | Conv1D) and inputs and isinstance(inputs[0], Tensor):
            attention = _outputs.pop(inputs[0].untyped_storage().data_ptr(), None)
            if attention is not None:
                transposed = isinstance(module, nn.Linear)
                keep_projection(attention, lambda: module.weight.T if transposed else module.weight)

    handles = [
        nn.modules.module.register_module_forward_pre_hook(look),
        network.register_forward_hook(lambda *_: _projected.add(network)),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
