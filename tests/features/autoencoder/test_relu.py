import pytest

from heedful.features.autoencoder.relu import Relu
from tests.features.autoencoder.examples import active_of, rows, weights_of


@pytest.mark.parametrize(("share", "risen"), [(0.0, 0.0), (0.05, 0.5), (0.1, 1.0), (0.7, 1.0)])
def test_the_penalty_rises_over_the_ramp(share, risen):
    kind, x = Relu(sparsity=3.0, ramp=0.1), rows()
    weights = weights_of(kind)
    to = kind.directions(weights)
    penalty = kind.encode(x, weights, to, share).penalty
    assert float(penalty) == pytest.approx(risen * 3.0 * active_of(kind, x, weights).sum(axis=1).mean())


def test_without_a_ramp_the_penalty_is_whole_from_the_start():
    kind, x = Relu(sparsity=3.0, ramp=0.0), rows()
    weights = weights_of(kind)
    to = kind.directions(weights)
    penalty = kind.encode(x, weights, to, 0.0).penalty
    assert float(penalty) == pytest.approx(3.0 * active_of(kind, x, weights).sum(axis=1).mean())
