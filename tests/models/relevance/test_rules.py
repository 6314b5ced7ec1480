import pytest
import torch
from torch import nn
from torch.nn import functional

from heedful.models.attention_hook import still
from heedful.models.relevance.propagation import propagating
from heedful.models.relevance.rules import over, propagation_rules


def relevance(network, x, rule):
    """x · g for the sum of the outputs."""
    x = x.clone().requires_grad_()
    with still(network), propagating(network, len(x), rule):
        y = network(x)
        y.backward(torch.ones_like(y))
    return (x * x.grad).detach(), y.detach()


@pytest.mark.parametrize("affine", [True, False])
def test_a_layer_norm_with_a_fixed_deviation_is_linear(affine):
    torch.manual_seed(0)
    norm = nn.LayerNorm(5, elementwise_affine=affine).double()
    if affine:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    deviation = (x.var(dim=-1, correction=0, keepdim=True) + norm.eps).sqrt()
    R, y = relevance(norm, x, "conservative")
    fixed = x.clone().requires_grad_()
    linear = (fixed - fixed.mean(dim=-1, keepdim=True)) / deviation * (norm.weight.detach() if affine else 1)
    assert torch.allclose(R, fixed * torch.autograd.grad(linear.sum(), fixed)[0])
    bias = 6 * float(norm.bias.detach().sum()) if affine else 0
    assert float(R.sum()) + bias == pytest.approx(float(y.sum()))


class Written(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way

    def forward(self, x):
        return self.way(x)


@pytest.mark.parametrize(
    "way",
    [
        lambda x: functional.layer_norm(x, (4,), eps=0.5),
        lambda x: functional.layer_norm(x, normalized_shape=(4,), bias=torch.arange(4.0).double(), eps=0.5),
        lambda x: torch.layer_norm(x, (4,), None, None, 0.5),
        lambda x: functional.layer_norm(x, [3, 4], None, None, 0.5),
    ],
)
def test_a_norm_is_found_however_it_is_called(way):
    x = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    R, y = relevance(Written(way), x, "attnlrp")
    constant = way(torch.zeros_like(x)).sum()
    assert float(R.sum() + constant) == pytest.approx(float(y.sum()))


def test_a_non_linearity_keeps_each_coordinate_and_a_product_is_halved():
    x = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    R, y = relevance(Written(functional.gelu), x, "conservative")
    assert torch.allclose(R, y)
    R, y = relevance(Written(lambda x: x * (2 * x)), x, "conservative")
    assert torch.allclose(R, y)


def test_only_z_plus_has_rules_for_linear_maps_and_sums():
    assert functional.linear in propagation_rules("z-plus", (1, 2))
    for rule in ("conservative", "attnlrp"):
        assert not {functional.linear, torch.add, torch.matmul} & set(propagation_rules(rule, (1, 2)))
    assert over(torch.tensor(1.0), torch.tensor(1e-12)) == 0
