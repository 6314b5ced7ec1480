import torch

from heedful.features.autoencoder.topk import RowTopK, largest_of_rows
from tests.features.autoencoder.examples import rows, weights_of


def test_a_row_has_k_active_features_or_as_many_as_are_above_zero():
    pre = torch.tensor([[3.0, 1.0, 2.0, -1.0], [-1.0, 4.0, -2.0, -3.0], [-1.0, -4.0, -2.0, -3.0]])
    expected = torch.tensor([[3.0, 0.0, 2.0, 0.0], [0.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert torch.equal(largest_of_rows(pre, 2), expected)


def test_it_adds_no_penalty_and_its_rule_is_k():
    kind, x = RowTopK(k=3), rows()
    weights = weights_of(kind)
    to = kind.directions(weights)
    assert kind.encode(x, weights, to, 1.0).penalty is None
    assert kind.rule(weights, torch.zeros(0)).k == 3
