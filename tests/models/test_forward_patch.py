import pytest
import torch
from torch import nn

from heedful.models.forward_patch import patched_forward


def test_a_patch_lasts_as_long_as_its_block_and_own_forwards_come_back():
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    own = network[1].forward
    network[1].forward = lambda x: own(x) + 1
    x = torch.ones(1, 2)
    before = network(x)
    with patched_forward(network, lambda layer: lambda x: 0 * layer.weight[0] + x):
        assert torch.equal(network(x), x)
    assert torch.equal(network(x), before)
    with pytest.raises(RuntimeError), patched_forward(network, lambda _: torch.linalg.inv):
        network(x)
    assert torch.equal(network(x), before)
    assert "forward" not in vars(network[0])
    assert "forward" in vars(network[1])
