import torch
from torch import nn

from heedful.models.relevance.propagation import propagating
from heedful.models.relevance.rules import over


def test_relevance_of_a_positive_linear_map_is_shared_by_contribution():
    layer = nn.Linear(3, 1, bias=False)
    x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -1.0, 2.0]]))
    layer.weight.requires_grad_(False)
    with propagating(nn.Sequential(layer), 1):
        y = layer(x)
        (g,) = torch.autograd.grad(y, x, grad_outputs=1 / y.detach())
    relevance = (x * g).detach()[0]
    assert torch.allclose(relevance, torch.tensor([1 / 7, 0.0, 6 / 7]))
    assert over(torch.tensor(1.0), torch.tensor(0.0)) == 0
