"""Layer-wise relevance propagation as a modified backward pass that carries g = R / x, relevance over value.

Means, selections, permutations and constant factors then propagate relevance by the chain rule, R_i = Σ_j x_i ∂y_j/∂x_i
R_j / y_j, and a tensor that is used twice receives both relevances. Every other operation has its own rule. The rules
replace calls of torch functions, so no model's code is copied.

Reference: Chefer, Gur & Wolf, *Transformer Interpretability Beyond Attention Visualization*, 2021, arXiv:2012.09838.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from heedful.models.attention_hook import ONE_THREAD, Attended
from heedful.models.forward_patch import patched_forward

Run = Callable[[], Tensor]
Bilinear = Callable[[Tensor, Tensor], Tensor]
Rule = Callable[[Any, Any, Any], Any]
"""Takes a torch function and its arguments; returns None where the chain rule is enough."""

_TINY = 1e-9


def over(a: Tensor, b: Tensor) -> Tensor:
    """a / b, and 0 where |b| is at most 10⁻⁹, the constant of the authors' code."""
    nonzero = b.abs() > _TINY
    return torch.where(nonzero, a / torch.where(nonzero, b, 1), 0)


@contextmanager
def propagating(network: nn.Module, n_texts: int) -> Iterator[None]:
    """Inside this context a backward pass through the network carries g = R / x; it starts from R / logits.

    Attention propagates relevance where the listener returns `attended(call)`. Enter it before `recomputing`. Several
    texts must lie along the first axis of every hidden state; a single text may have any layout.
    """
    rules = _table((0, 1, 2) if n_texts == 1 else (1, 2))
    # A layer that is run again for its gradient runs outside this mode, so each layer enters its own.
    layers = [layer for part in network.modules() if isinstance(part, nn.ModuleList) for layer in part]
    elementwise = {module for module in network.modules() if _is_elementwise(module)}

    def keep(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        if module in elementwise and inputs and _needs_gradient(inputs[0]) and output.shape == inputs[0].shape:
            return _Same.apply(inputs[0], output.detach().clone)
        return None

    with ONE_THREAD:
        handle = nn.modules.module.register_module_forward_hook(keep)
        try:
            with patched_forward(layers, lambda layer: _with_rules(layer.forward, rules)), _Rules(rules):
                yield
        finally:
            handle.remove()


def attended(call: Attended) -> Float[Tensor, "batch head query d_out"]:
    """The call's output; its relevance goes half to A and half to v, and that of A half to q and half to k.

    Both are products whose factors have equal sums, so the normalisation of Eqs. (6)–(10) gives each half. The
    softmax passes relevance on unchanged.
    """
    out = _Attention.apply(call.q, call.k, call.v, call.detached())
    assert isinstance(out, Tensor)
    return out


def map_relevance(
    rows: Float[Tensor, "batch head row key"],
    g: Float[Tensor, "batch head row d_out"],
    v: Float[Tensor, "batch head key d_out"],
) -> Float[Tensor, "batch head row key"]:
    """The relevance of some rows of A from the g of their outputs: ½ A ⊙ g vᵀ."""
    return rows * (g.to(rows) @ v.to(rows).transpose(-1, -2)) / 2


def _needs_gradient(x: object) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


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
class _Positive(Function):
    """A linear map y = f(x, w) + b, of which only positive contributions count, Eqs. (4) and (5).

        R_i = Σ_j (x_i w_ji)⁺ / Z_j R_j,   Z_j = Σ_i (x_i w_ji)⁺

    so that g_i = Σ_j (w_ji⁺ if x_i > 0 else w_ji⁻) R_j / Z_j, without a division by x. The bias gets none.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, f: Bilinear, transposed: Bilinear, run: Run) -> Tensor:
        y = run()
        ctx.save_for_backward(x, w, y)
        ctx.maps = f, transposed
        return y

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> tuple[Tensor | None, ...]:
        (g,), (x, w, y) = gs, ctx.saved_tensors
        f, transposed = ctx.maps
        up, down = w.clamp(min=0), w.clamp(max=0)
        share = over(y * g, f(x.clamp(min=0), up) + f(x.clamp(max=0), down))
        g_x = torch.where(x > 0, transposed(share, up), transposed(share, down))
        return torch.where(x == 0, 0, g_x), None, None, None, None


@final
class _Same(Function):
    """An operation that keeps the relevance of each coordinate: R_in = R_out, so g_in = g y / x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, run: Run) -> Tensor:
        y = run()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> tuple[Tensor | None, ...]:
        (g,), (x, y) = gs, ctx.saved_tensors
        return over(g * y, x), None


@final
class _Skip(Function):
    """A skip connection u + v: each gets its share, u g and v g, scaled per text by Eqs. (6)–(10).

    R̄_u = R_u · |ΣR_u| / (|ΣR_u| + |ΣR_v|) · ΣR / ΣR_u.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, of_a_text: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(u, v)
        ctx.of_a_text = of_a_text
        return u + v

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> tuple[Tensor | None, ...]:
        (g,), (u, v) = gs, ctx.saved_tensors
        g = torch.where(u + v == 0, 0, g)
        a, b = ((x * g).sum(dim=ctx.of_a_text, keepdim=True) for x in (u, v))
        whole = over(a + b, a.abs() + b.abs())
        return g * whole * a.sign(), g * whole * b.sign(), None


@final
class _Product(Function):
    """An elementwise product of two tensors, as in a gated layer: half of the relevance to each, Eqs. (6)–(10)."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(u, v)
        return u * v

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> tuple[Tensor, Tensor]:
        (g,), (u, v) = gs, ctx.saved_tensors
        return (g * v / 2).sum_to_size(u.shape), (g * u / 2).sum_to_size(v.shape)


@final
class _Attention(Function):
    """softmax(scale · q kᵀ) v, a few queries at a time; a constant factor of the scores changes no relevance."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, call: Attended) -> Tensor:  # noqa: ARG004
        ctx.call = call
        return call.output()

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> tuple[Tensor | None, ...]:
        (g,), call = gs, ctx.call
        g_q, g_k, g_v = (torch.zeros_like(x) for x in (call.q, call.k, call.v))
        relevant = (g != 0).any(dim=-1, keepdim=True)
        for queries in call.portions(relevant.any(dim=1)[..., 0].to(g)):
            # Padding may attend to no key: its row is NaN, and it gets no relevance.
            rows = torch.where(relevant[:, :, queries], call.rows(queries), 0)
            q, k, g_rows = call.q[:, :, queries].to(rows), call.k.to(rows), g[:, :, queries].to(rows)
            share = over(map_relevance(rows, g_rows, call.v), q @ k.transpose(-1, -2)) / 2
            g_q[:, :, queries] = (share @ k).to(g_q)
            g_k += (share.transpose(-1, -2) @ q).to(g_k)
            g_v += (rows.transpose(-1, -2) @ g_rows / 2).to(g_v)
        return g_q, g_k, g_v, None


def _linear(func: Any, args: Any, named: Any) -> Any:
    if len(args) < 2:
        return None
    return _positive(args[0], args[1], functional.linear, torch.matmul, partial(func, *args, **named))


def _matmul(func: Any, args: Any, named: Any) -> Any:
    if named or len(args) < 2 or args[-1].dim() != 2:
        return None
    return _positive(args[-2], args[-1], torch.matmul, lambda share, w: share @ w.T, partial(func, *args))


def _einsum(func: Any, args: Any, named: Any) -> Any:
    pattern = args[0].replace(" ", "") if len(args) == 3 and isinstance(args[0], str) else ""
    if "." in pattern or "->" not in pattern:
        return None
    inputs, output = pattern.split("->")
    of_x, of_w = inputs.split(",")
    if not set(of_x) <= {*output, *of_w}:
        return None
    forth, back = partial(torch.einsum, pattern), partial(torch.einsum, f"{output},{of_w}->{of_x}")
    return _positive(args[1], args[2], forth, back, partial(func, *args, **named))


def _positive(x: Any, w: Any, f: Bilinear, transposed: Bilinear, run: Run) -> Any:
    return _Positive.apply(x, w, f, transposed, run) if _needs_gradient(x) and not _needs_gradient(w) else None


def _elementwise(func: Any, args: Any, named: Any) -> Any:
    kept = {name: value for name, value in named.items() if name != "inplace"}
    return _Same.apply(args[0], partial(func, *args, **kept)) if args and _needs_gradient(args[0]) else None


def _add(of_a_text: tuple[int, ...], func: Any, args: Any, named: Any) -> Any:
    terms = [x for x in args if _needs_gradient(x)]
    if named or not terms:
        return None
    if len(terms) == 1:
        # A bias gets no relevance, whether a linear map adds it or the model does.
        return _Same.apply(terms[0], partial(func, *args)) if _shape(args) == terms[0].shape else None
    u, v = terms
    # Sums of other shapes, as in rotary positions, are not skip connections: the chain rule is enough.
    return _Skip.apply(u, v, of_a_text) if u.shape == v.shape and u.dim() == 3 else None


def _shape(args: Iterable[Any]) -> torch.Size:
    return torch.broadcast_shapes(*(x.shape for x in args if isinstance(x, Tensor)))


def _multiply(func: Any, args: Any, named: Any) -> Any:  # noqa: ARG001
    return _Product.apply(*args) if not named and len(args) == 2 and all(map(_needs_gradient, args)) else None


def _table(of_a_text: tuple[int, ...]) -> dict[Any, Rule]:
    """The functions that have a rule; `of_a_text` are the axes of a hidden state that belong to one text."""
    add = partial(_add, of_a_text)
    rules: dict[Any, Rule] = {functional.linear: _linear, torch.einsum: _einsum}
    rules |= dict.fromkeys((torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.addmm), _matmul)
    rules |= dict.fromkeys((torch.add, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__radd__), add)
    rules |= dict.fromkeys((torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__), _multiply)
    for name in ("relu", "gelu", "silu", "elu", "leaky_relu", "tanh", "sigmoid", "mish", "layer_norm", "rms_norm"):
        rules |= {
            getattr(place, name): _elementwise for place in (functional, torch, torch.Tensor) if name in dir(place)
        }
    return rules


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
