from math import cos, pi, radians, sin

import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.features import fit
from heedful.features.recovery import measure_recovery
from heedful.features.superposition import ToyModel, ToyRows, ToySettings, train_toy

TETRAHEDRON = [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]


def toy_of(W, probability=0.1):
    W = torch.tensor(W, dtype=torch.float32)
    return ToyModel(ToySettings(W.shape[0], W.shape[1], probability), W, torch.zeros(len(W)), 0.0)


def polygon(n):
    return [[cos(2 * pi * i / n), sin(2 * pi * i / n)] for i in range(n)]


def test_regular_shapes_have_their_dimensionality():
    for W, share in ((polygon(5), 2 / 5), ([[2, 0], [-2, 0]], 1 / 2), (TETRAHEDRON, 3 / 4), (np.eye(3), 1)):
        assert toy_of(W).dimensionality.tolist() == pytest.approx([share] * len(W), abs=1e-6)


def test_dimensionality_and_squares_per_dimension_are_their_formulas():
    W = np.random.default_rng(0).normal(size=(6, 3))
    W[4] = 0
    toy = toy_of(W)
    for i, own in enumerate(W):
        length = sum(x * x for x in own)
        shared = sum(sum(a * b for a, b in zip(own, other, strict=True)) ** 2 for other in W)
        assert float(toy.dimensionality[i]) == pytest.approx(length**2 / shared if length else 0, rel=1e-4)
    assert toy.squares_per_dimension == pytest.approx((W**2).sum() / 3, rel=1e-5)


def test_a_feature_is_recoverable_if_it_is_stored_sparse_and_apart():
    # Alone in 0.9⁴ = 0.66 of its rows; in 0.8⁴ = 0.41.
    assert toy_of(polygon(5), 0.1).recoverable.all()
    assert not toy_of(polygon(5), 0.2).recoverable.any()
    # 0.98 is the cosine of 11.5°: two features 22° apart share directions near both, two 24° apart do not.
    for angle, apart in ((22, False), (24, True)):
        W = [[1, 0], [cos(radians(angle)), sin(radians(angle))], [-1, 0], [0, -0.4]]
        assert toy_of(W).recoverable.tolist() == [apart, apart, True, False]
    # A feature that is hardly stored shares no ray and takes no row.
    assert toy_of([[1, 0], [0.1, 0], [0, 1]], 0.5).recoverable.tolist() == [True, False, True]


def test_rows_are_sums_of_features_as_often_active_as_asked():
    toy = toy_of(polygon(5), 0.2)
    data = ToyRows(toy)
    activations, rows = data.sample(20_000)
    expected = activations.double() @ data.directions.double()
    assert (rows - expected).abs().max() < 1e-6
    assert (activations > 0).double().mean().item() == pytest.approx(0.2, abs=0.005)
    assert 0 <= float(activations.min()) <= float(activations.max()) <= 1
    assert activations[activations > 0].mean().item() == pytest.approx(0.5, abs=0.01)


def test_chunks_depend_on_seed_and_number_alone():
    toy = toy_of(polygon(5), 0.5)
    data = ToyRows(toy, seed=3, rows_a_chunk=50)
    assert torch.equal(data.chunk(1), ToyRows(toy, seed=3, rows_a_chunk=50).chunk(1))
    for other in (data.chunk(0), ToyRows(toy, seed=4, rows_a_chunk=50).chunk(1), data.sample(50, seed=3, number=1)[1]):
        assert other.shape == (50, 2)
        assert not torch.equal(other, data.chunk(1))
    other = toy_of([*polygon(4), [0.0, 2.0]], 0.5)
    assert ToyRows(toy).about != ToyRows(other).about


def test_what_is_always_active_is_stored_like_principal_components():
    toy = train_toy(ToySettings(4, 2, 1.0, 0.5, n_starts=1, n_steps=1_000, batch_size=128, learning_rate=0.03))
    # Features of variance 1/12 that weigh I_i: the first principal directions of diag(√I_i) are the first coordinates.
    x = np.random.default_rng(0).uniform(size=(20_000, 4)) * np.sqrt(0.5 ** np.arange(4))
    values, vectors = np.linalg.eigh(np.cov(x.T))
    span = vectors[:, values.argsort()[-2:]]
    own = np.linalg.qr(toy.W.double().numpy())[0]
    assert np.linalg.svd(span.T @ own, compute_uv=False).min() > 0.98
    assert toy.stored.tolist() == [True, True, False, False]


def test_the_loss_is_that_of_the_outputs_and_the_best_start_is_kept():
    settings = ToySettings(3, 2, 0.3, 0.8, n_starts=3, n_steps=60, batch_size=64)
    toy = train_toy(settings)
    rng = np.random.default_rng(5)
    x = (rng.random((100_000, 3)) < 0.3) * rng.random((100_000, 3))
    W, b = toy.W.double().numpy(), toy.b.double().numpy()
    outputs = np.maximum(x @ W @ W.T + b, 0)
    assert toy.loss == pytest.approx((0.8 ** np.arange(3) * (x - outputs) ** 2).sum(axis=1).mean(), rel=0.03)
    again = train_toy(settings)
    assert torch.equal(toy.W, again.W)
    assert toy.loss == again.loss


def test_the_pentagon_is_recovered_from_its_rows():
    data = ToyRows(toy_of(polygon(5), 0.1), rows_a_chunk=8_192)
    settings = {"n_rows": 400_000, "batch_size": 512, "learning_rate": 0.01}
    dictionary = fit(data, 10, "topk", progress=False, k=1, **settings)
    cosines = data.directions.double().numpy() @ dictionary.directions.T
    assert cosines.max(axis=1).min() >= 0.98
    assert measure_recovery(dictionary, data, 1_000).mcc >= 0.98


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="d_e must be at least 1; 0 was given"):
        ToySettings(d_e=0)
    with pytest.raises(BadInput, match="probability and decay"):
        ToySettings(probability=0.0)
    with pytest.raises(BadInput, match="seed"):
        ToySettings(seed=-1)
