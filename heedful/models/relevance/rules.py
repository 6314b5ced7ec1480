"""Layer-wise relevance propagation as a modified backward pass that carries g = R / x, relevance over value.

Means, selections, permutations and constant factors then propagate relevance by the chain rule, R_i = Σ_j x_i ∂y_j/∂x_i
R_j / y_j, and a tensor that is used twice receives both relevances. Every other operation has its own rule. The rules
replace calls of torch functions, so no model's code is copied. The tables of rules have the names of their sources:

    z-plus        Chefer, Gur & Wolf, *Transformer Interpretability Beyond Attention Visualization*, 2021,
                  arXiv:2012.09838
    conservative  Ali et al., *XAI for Transformers: Better Explanations through Conservative Propagation*, 2022,
                  arXiv:2202.07304
    attnlrp       Achtibat et al., *AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for Transformers*, 2024,
                  arXiv:2402.05602
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, final

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

Propagation = Literal["conservative", "attnlrp", "z-plus"]
Run = Callable[[], Tensor]
Bilinear = Callable[[Tensor, Tensor], Tensor]
Rule = Callable[[Any, Any, Any], Any]
"""Takes a torch function and its arguments; returns None where the chain rule is enough."""

_TINY = 1e-9


def over(a: Tensor, b: Tensor) -> Tensor:
    """a / b, and 0 where |b| is at most 10⁻⁹, the constant of the authors' code."""
    nonzero = b.abs() > _TINY
    return torch.where(nonzero, a / torch.where(nonzero, b, 1), 0)


def _needs_gradient(x: object) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


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
    return keep_coordinates(args[0], partial(func, *args, **kept)) if args else None


def keep_coordinates(x: Any, run: Run) -> Any:
    """The result of `run`, whose coordinates each pass their relevance to the same coordinate of x."""
    return _Same.apply(x, run) if _needs_gradient(x) else None


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
    """An elementwise product of two tensors, as in a gated layer: half of the relevance to each, Eqs. (6)–(10)."""
    if named or len(args) != 2 or not all(map(_needs_gradient, args)):
        return None
    u, v = args
    return u * v.detach() / 2 + u.detach() * v / 2


def _layer_norm(func: Any, args: Any, named: Any) -> Any:
    """A layer norm whose standard deviation is held fixed: linear, as its mean is; its bias gets its own relevance."""

    def bound(
        x: Tensor, shape: Sequence[int], weight: Any = None, _bias: Any = None, eps: float = 1e-5, *_others: Any
    ) -> Any:
        if not _needs_gradient(x):
            return None
        axes = tuple(range(-len(shape), 0))
        scale = (x.detach().var(dim=axes, correction=0, keepdim=True) + eps).rsqrt()
        scale = scale if weight is None else scale * weight.detach()
        linear = (x - x.mean(dim=axes, keepdim=True)) * scale
        return linear + (func(*args, **named) - linear).detach()

    return bound(*args, **{"_bias" if name == "bias" else name: value for name, value in named.items()})


def _everywhere(*names: str) -> dict[Any, Rule]:
    places = functional, torch, torch.Tensor
    return {getattr(place, name): _elementwise for name in names for place in places if name in dir(place)}


_PRODUCTS = dict.fromkeys((torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__), _multiply)
_SUMS = torch.add, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__radd__
_MATRICES = torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.addmm
_BENT = ("relu", "gelu", "silu", "elu", "leaky_relu", "tanh", "sigmoid", "mish", "rms_norm")


def propagation_rules(propagation: Propagation, of_a_text: tuple[int, ...]) -> dict[Any, Rule]:
    """The functions that have a rule; `of_a_text` are the axes of a hidden state that belong to one text.

    Linear maps, their biases and skip connections have none, unless by z-plus: LRP-ε, in the limit ε → 0, shares their
    relevance by contribution as the chain rule does.
    """
    rules = _PRODUCTS | _everywhere(*_BENT)
    if propagation != "z-plus":
        return rules | dict.fromkeys((functional.layer_norm, torch.layer_norm), _layer_norm)
    rules |= {functional.linear: _linear, torch.einsum: _einsum} | dict.fromkeys(_MATRICES, _matmul)
    return rules | _everywhere("layer_norm") | dict.fromkeys(_SUMS, partial(_add, of_a_text))
