import pytest
import torch
from torch import nn

from heedful.errors import BadInput
from heedful.models.fingerprint import check_weights, fingerprint_of


def test_a_fingerprint_changes_with_every_weight_and_name():
    network = nn.Linear(3, 2)
    first = fingerprint_of(network, ["a", "b"])
    assert fingerprint_of(network, ["a", "b"]) == first != fingerprint_of(network, ["a", "c"])
    with torch.no_grad():
        network.bias[1] += 1e-6
    assert fingerprint_of(network, ["a", "b"]) != first


def test_weights_that_are_not_finite_are_refused():
    network = nn.Linear(3, 2)
    check_weights(network)
    with torch.no_grad():
        network.weight[0, 0] = torch.inf
    with pytest.raises(BadInput, match="weight"):
        check_weights(network)
