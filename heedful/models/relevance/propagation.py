"""A backward pass through a network that carries relevance over value instead of derivatives."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.overrides import TorchFunctionMode

from heedful.models.attention_hook import ONE_THREAD, Attended
from heedful.models.forward_patch import patched_forward
from heedful.models.relevance.rules import Propagation, Rule, keep_coordinates, over, propagation_rules


@contextmanager
def propagating(network: nn.Module, n_texts: int, propagation: Propagation = "z-plus") -> Iterator[None]:
    """Inside this context a backward pass through the network carries g = R / x; it starts from R / logits.

    Attention propagates relevance where the listener returns `attended(call)`. Enter it before `recomputing`. Several
    texts must lie along the first axis of every hidden state; a single text may have any layout.
    """
    rules = propagation_rules(propagation, (0, 1, 2) if n_texts == 1 else (1, 2))
    # A layer that is run again for its gradient runs outside this mode, so each layer enters its own.
    layers = [layer for part in network.modules() if isinstance(part, nn.ModuleList) for layer in part]
    elementwise = {module for module in network.modules() if _is_elementwise(module)}
    if propagation != "z-plus":
        elementwise = {module for module in elementwise if not isinstance(module, nn.LayerNorm)}

    def keep(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        if module in elementwise and inputs and output.shape == inputs[0].shape:
            return keep_coordinates(inputs[0], output.detach().clone)
        return None

    with ONE_THREAD:
        handle = nn.modules.module.register_module_forward_hook(keep)
        try:
            with patched_forward(layers, lambda layer: _with_rules(layer.forward, rules)), _Rules(rules):
                yield
        finally:
            handle.remove()


def attended(call: Attended, propagation: Propagation = "z-plus") -> Float[Tensor, "batch head query d_out"]:
    """The call's output; its relevance goes half to A and half to v, and that of A half to q and half to k.

    Both are products whose factors have equal sums, so the normalisation of Eqs. (6)–(10) gives each half. The
    softmax passes relevance on unchanged (z-plus) or by its derivative (attnlrp). Where A is held fixed (conservative),
    v gets all relevance.
    """
    out = _Attention.apply(call.q, call.k, call.v, call.detached(), propagation)
    assert isinstance(out, Tensor)
    return out


def map_relevance(
    rows: Float[Tensor, "batch head row key"],
    g: Float[Tensor, "batch head row d_out"],
    v: Float[Tensor, "batch head key d_out"],
) -> Float[Tensor, "batch head row key"]:
    """The relevance of some rows of A from the g of their outputs: ½ A ⊙ g vᵀ."""
    return rows * (g.to(rows) @ v.to(rows).transpose(-1, -2)) / 2


def _is_elementwise(module: nn.Module) -> bool:
    """Whether it is a norm or a non-linearity, which passes the relevance of each output to the same input."""
    if any(True for _ in module.children()):
        return False
    kind = type(module)
    return "Norm" in kind.__name__ or kind.__module__ in ("torch.nn.modules.activation", "transformers.activations")


def _with_rules(forward: Callable[..., Any], rules: Mapping[Any, Rule]) -> Callable[..., Any]:
    def run(*inputs: Any, **named: Any) -> Any:
        with _Rules(rules):
            return forward(*inputs, **named)

    return run


@final
class _Attention(Function):
    """softmax(scale · q kᵀ) v, a few queries at a time; a constant factor of the scores changes no relevance."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, call: Attended, propagation: Propagation) -> Tensor:  # noqa: ARG004
        ctx.call, ctx.propagation = call, propagation
        return call.output()

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> tuple[Tensor | None, ...]:
        (g,), call, fixed = gs, ctx.call, ctx.propagation == "conservative"
        g_q, g_k, g_v = (torch.zeros_like(x) for x in (call.q, call.k, call.v))
        relevant = (g != 0).any(dim=-1, keepdim=True)
        for queries in call.portions(relevant.any(dim=1)[..., 0].to(g)):
            # Padding may attend to no key: its row is NaN, and it gets no relevance.
            rows = torch.where(relevant[:, :, queries], call.rows(queries), 0)
            q, k, g_rows = call.q[:, :, queries].to(rows), call.k.to(rows), g[:, :, queries].to(rows)
            g_v += (rows.transpose(-1, -2) @ g_rows / (1 if fixed else 2)).to(g_v)
            if fixed:
                continue
            share = map_relevance(rows, g_rows, call.v)
            if ctx.propagation == "z-plus":
                share = over(share, q @ k.transpose(-1, -2)) / 2
            else:
                share = (share - rows * share.sum(dim=-1, keepdim=True)) * call.scale / 2
            g_q[:, :, queries] = (share @ k).to(g_q)
            g_k += (share.transpose(-1, -2) @ q).to(g_k)
        return g_q, g_k, g_v, None, None


@final
class _Rules(TorchFunctionMode):
    """Applies the rules to calls of torch functions, in passes with gradients."""

    def __init__(self, rules: Mapping[Any, Rule]) -> None:
        self.rules = rules

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        rule = self.rules.get(func) if torch.is_grad_enabled() else None
        ruled = None if rule is None else rule(func, args, named)
        return func(*args, **named) if ruled is None else ruled
