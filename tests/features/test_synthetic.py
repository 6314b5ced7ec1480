from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.features import synthetic
from heedful.features.synthetic import SMALL, STANDARD, SyntheticData, SyntheticFeatures, nearly_orthogonal

TINY = SyntheticFeatures(
    n_features=40, d_e=8, n_roots=2, n_children=3, depth=2, rank=4, correlation=0.3, least_often=0.05, seed=1
)


def parent_of(features, feature):
    """Trees are numbered level by level, and the children of a level in the order of their parents."""
    level = next(i for i, start in enumerate(features.starts[1:]) if feature < start)
    return features.starts[level - 1] + (feature - features.starts[level]) // features.n_children if level else None


def one_by_one(data, n, rng):
    """The activations of n rows by the definition: every feature is drawn, then trees take away what is not allowed."""
    features = data.features
    drawn, tree = features.compensated(), range(features.starts[-1])
    parents = {f: parent_of(features, f) for f in tree}
    loadings, _ = features.copula()
    loadings = loadings.numpy()
    loadings /= np.sqrt(1 + (loadings**2).sum(axis=1, keepdims=True))
    own = np.sqrt(1 - (loadings**2).sum(axis=1))
    limits = torch.distributions.Normal(0, 1).icdf(torch.from_numpy(1 - drawn)).numpy()
    gaussian = rng.normal(size=(n, features.rank)) @ loadings.T + own * rng.normal(size=(n, features.n_features))
    strength = np.maximum(data.means.numpy() + data.deviations.numpy() * rng.normal(size=gaussian.shape), 0)
    activations = np.where(gaussian > limits, strength, 0)
    children = {f: [child for child in tree if parents[child] == f] for f in tree}
    for row in activations:
        for f in tree:
            if parents[f] is not None:
                row[f] *= row[parents[f]] / float(data.means[parents[f]])
            active = [child for child in children[f] if row[child] > 0]
            if row[f] > 0 and len(active) > 1:
                winner = rng.choice(active)
                row[[child for child in active if child != winner]] = 0
    return activations


def test_activations_are_distributed_as_when_features_are_drawn_one_by_one():
    data, n = SyntheticData(TINY), 10_000
    ours, theirs = data.sample(n)[0].numpy(), one_by_one(data, n, np.random.default_rng(0))
    assert np.abs((ours > 0).mean(axis=0) - (theirs > 0).mean(axis=0)).max() < 5 * np.sqrt(0.25 * 2 / n)
    assert np.abs(ours.mean(axis=0) - theirs.mean(axis=0)).max() < 5 * theirs.std(axis=0).max() * np.sqrt(2 / n)
    assert np.abs(np.corrcoef(ours.T) - np.corrcoef(theirs.T)).max() < 6 * np.sqrt(2 / n)


def test_a_child_is_active_only_with_its_parent_and_without_its_siblings():
    activations = SyntheticData(SMALL).sample(2_000)[0].numpy() > 0
    for level in range(1, SMALL.depth + 1):
        starts = SMALL.starts
        siblings = activations[:, starts[level] : starts[level + 1]].reshape(len(activations), -1, SMALL.n_children)
        parents = activations[:, starts[level - 1] : starts[level]]
        assert siblings.sum(axis=2).max() == 1
        assert not siblings.any(axis=2)[~parents].any()


def test_rows_are_sums_of_directions_and_the_bias():
    data = SyntheticData(SMALL)
    activations, rows = data.sample(300)
    expected = activations.double() @ data.directions.double() + data.bias.double()
    assert (rows - expected).abs().max() < 1e-5
    assert data.bias.norm() == pytest.approx(0.5)


def test_the_standard_configuration_has_the_published_numbers(monkeypatch):
    monkeypatch.setattr(synthetic, "nearly_orthogonal", lambda vectors, n_steps: vectors)
    active = SyntheticData(STANDARD).sample(2_048)[0] > 0
    assert STANDARD.starts == [0, 128, 640, 2_688, 10_880]
    assert float(active.sum(dim=1).float().mean()) == pytest.approx(34, abs=1)
    # "the L0 of the first 4096 features" is 25.
    assert float(active[:, :4096].sum(dim=1).float().mean()) == pytest.approx(25, abs=0.7)
    synthetic.directions_of.cache_clear()


def test_firing_probabilities_follow_zipf_and_are_compensated_for_the_tree():
    base = STANDARD.probabilities()
    assert (base[0], base[-1]) == pytest.approx((0.4, 5e-4))
    assert np.all(np.diff(base) < 0)
    drawn, others = STANDARD.compensated(), base[129:132].sum()
    assert drawn[128] == pytest.approx(base[128] / base[0] * (1 + others / base[0]))
    assert (drawn[0], drawn[-1]) == (base[0], base[-1])
    assert (drawn <= 1).all()


def test_chunks_depend_on_seed_and_number_alone():
    data = SyntheticData(SMALL, seed=5, rows_a_chunk=64)
    first, second = data.chunk(0), data.chunk(1)
    assert torch.equal(SyntheticData(SMALL, seed=5, rows_a_chunk=64).chunk(1), second)
    assert first.shape == second.shape == (64, data.d_e)
    for other in (second, SyntheticData(SMALL, seed=6, rows_a_chunk=64).chunk(0), data.sample(64, seed=5)[1]):
        assert not torch.equal(first, other)


def test_chunks_of_more_than_one_portion_are_complete(monkeypatch):
    monkeypatch.setattr(synthetic, "PORTION", 50)
    assert len(SyntheticData(SMALL, rows_a_chunk=130).chunk(0)) == 130
    activations, rows = SyntheticData(SMALL).sample(70)
    assert len(activations) == len(rows) == 70


def test_steps_of_orthogonalisation_follow_autograd():
    vectors = torch.randn(30, 10, generator=torch.Generator().manual_seed(0))
    x = torch.nn.functional.normalize(vectors, dim=1).requires_grad_()
    optimiser = torch.optim.Adam([x], lr=3e-4)
    for _ in range(5):
        optimiser.zero_grad()
        gram, off = x @ x.T, ~torch.eye(30, dtype=torch.bool)
        (gram[off].square().sum() + 30 * (gram.diagonal() - 1).square().sum()).backward()
        optimiser.step()
    expected = torch.nn.functional.normalize(x.detach(), dim=1)
    assert (nearly_orthogonal(vectors, 5) - expected).abs().max() < 1e-6


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match=r"16 trees of depth 2 have 336 features; n_features is 300"):
        replace(SMALL, n_features=300)
    with pytest.raises(BadInput, match="rank"):
        replace(SMALL, correlation=0.5)
