from dataclasses import replace
from itertools import permutations
from typing import final

import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.features.autoencoder import Rule
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary
from heedful.features.recovery import measure_ceiling, measure_recovery
from heedful.features.source import KnownSource
from heedful.features.synthetic import SMALL, SyntheticData, SyntheticFeatures

TINY = SyntheticData(
    SyntheticFeatures(n_features=9, d_e=5, n_roots=2, n_children=2, depth=1, rank=2, least_often=0.05, seed=3)
)


@final
class Separate(KnownSource):
    """Features that are coordinates, with activations of 1 to 2: the perfect dictionary is the identity."""

    d_e, rows_a_chunk, about = 6, 100, "coordinates"
    directions = torch.eye(6)

    def chunk(self, number):
        return self.sample(self.rows_a_chunk, -1, number)[1]

    def sample(self, n, seed=0, number=0):
        rng = np.random.default_rng((seed + 1, number))
        rows = (rng.random((n, 6)) < np.arange(1, 7) / 10) * rng.uniform(1, 2, (n, 6))
        return torch.from_numpy(rows).float(), torch.from_numpy(rows).float()


def dictionary_of(directions, threshold, b_dec=None):
    directions = torch.nn.functional.normalize(directions, dim=1)
    nothing, b_dec = torch.zeros(len(directions)), torch.zeros(directions.shape[1]) if b_dec is None else b_dec
    rule = Rule(torch.full((1, len(directions)), threshold))
    return Dictionary(directions, -directions @ b_dec, directions, b_dec, rule, Card("relu"), nothing, nothing)


def some_dictionary(width=4):
    rng = torch.Generator().manual_seed(0)
    mixed = TINY.directions[:width] + 0.4 * torch.randn(width, TINY.d_e, generator=rng)
    return dictionary_of(mixed, 1.5, TINY.bias)


def all_rows(data, n, seed):
    parts = [data.sample(n // 20, seed, number) for number in range(20)]
    return (torch.cat(each).double().numpy() for each in zip(*parts, strict=True))


def f1_by_hand(said, true):
    hit = sum(1 for a, b in zip(said, true, strict=True) if a and b)
    precision, recall = hit / max(1, said.sum()), hit / max(1, true.sum())
    return (2 * precision * recall / (precision + recall) if hit else 0.0), precision, recall


def test_the_numbers_are_those_of_the_definitions():
    dictionary = some_dictionary()
    result, (active, rows) = measure_recovery(dictionary, TINY, 400, seed=7), all_rows(TINY, 400, 7)
    codes = dictionary.encode(rows)
    cosines = np.abs(dictionary.directions @ TINY.directions.double().numpy().T)
    each = [f1_by_hand(codes[:, j] > 0, active[:, cosines[j].argmax()] > 0) for j in range(dictionary.width)]
    assert (result.f1.value, result.precision.value, result.recall.value) == pytest.approx(np.mean(each, axis=0))
    assert result.f1_of_each == pytest.approx([f1 for f1, _, _ in each])
    pairs = permutations(range(cosines.shape[1]), dictionary.width)
    assert result.mcc == pytest.approx(max(cosines[range(len(pair)), pair].mean() for pair in pairs))
    assert result.uniqueness == len({*cosines.argmax(axis=1).tolist()}) / dictionary.width
    assert (result.l0.value, result.true_l0.value) == pytest.approx(((codes > 0).sum() / 400, (active > 0).sum() / 400))
    left = ((rows - dictionary.decode(codes)) ** 2).sum()
    assert result.explained_variance.value == pytest.approx(1 - left / ((rows - rows.mean(axis=0)) ** 2).sum())


def test_a_dictionary_of_the_truth_is_perfect():
    result = measure_recovery(dictionary_of(torch.eye(6), 0.5), Separate(), 1_000)
    assert (result.f1.value, result.mcc, result.uniqueness, result.explained_variance.value) == pytest.approx((1,) * 4)
    assert result.l0 == result.true_l0
    assert result.matches.tolist() == [0, 1, 2, 3, 4, 5]


def test_features_that_are_never_active_are_dead_and_have_an_f1_of_zero():
    dictionary = dictionary_of(torch.eye(6), 0.5)
    dictionary = replace(dictionary, b_enc=torch.tensor([0.0, -9, 0, 0, 0, -9]))
    result = measure_recovery(dictionary, Separate(), 1_000)
    assert result.dead_share.value == pytest.approx(1 / 3)
    assert result.f1_of_each == pytest.approx([1, 0, 1, 1, 1, 0])
    assert result.f1.value == pytest.approx(2 / 3)


def test_two_features_with_one_direction_are_not_unique():
    doubled = torch.cat([torch.eye(6)[:3], torch.eye(6)[:1]])
    assert measure_recovery(dictionary_of(doubled, 0.5), Separate(), 1_000).uniqueness == pytest.approx(3 / 4)


def test_the_batch_size_changes_no_number():
    results = [measure_recovery(some_dictionary(), TINY, 3_000, batch_size=size).as_dict() for size in (64, 1_024)]
    assert results[0].keys() == results[1].keys()
    for name, number in results[0].items():
        values = [list(each[name].values()) if isinstance(number, dict) else each[name] for each in results]
        assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_intervals_cover_the_value_of_many_rows():
    dictionary = some_dictionary()
    truth = measure_recovery(dictionary, TINY, 100_000, seed=99)
    each = [measure_recovery(dictionary, TINY, 1_000, seed=seed) for seed in range(25)]
    for name in ("f1", "precision", "recall", "l0", "true_l0", "explained_variance"):
        covered = [getattr(one, name).low <= getattr(truth, name).value <= getattr(one, name).high for one in each]
        assert sum(covered) >= 21, name


def test_probes_reach_the_ceiling_of_separate_features():
    result = measure_ceiling(Separate(), 3, 2_000, n_steps=300, batch_size=500)
    assert result.features.tolist() == [5, 4, 3]
    assert result.f1.value > 0.98


def test_probes_are_as_good_as_logistic_regressions():
    """The reference is a regression to convergence on 20,000 rows, with the best threshold on the measured ones."""
    data = SyntheticData(SMALL)
    result = measure_ceiling(data, 12, 10_000, batch_size=512)
    active, rows = (torch.cat(each) for each in zip(*(data.sample(5_000, 1, n) for n in range(6)), strict=True))
    one = torch.cat([rows, torch.ones(len(rows), 1)], dim=1)
    for place in (0, 11):
        true = active[:, result.features[place]] > 0
        weights = torch.zeros(65, requires_grad=True)
        optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

        def loss(true=true, weights=weights, optimiser=optimiser):
            optimiser.zero_grad()
            value = torch.nn.functional.binary_cross_entropy_with_logits(one[:20_000] @ weights, true[:20_000].float())
            value.backward()
            return value

        optimiser.step(loss)
        score = (one[20_000:] @ weights).detach()
        best = max(f1_by_hand((score > limit).numpy(), true[20_000:].numpy())[0] for limit in torch.linspace(-3, 3, 13))
        assert result.f1_of_each[place] > best - 0.02


def test_the_text_names_every_number_with_its_interval():
    result = measure_recovery(some_dictionary(), TINY, 200)
    for name in ("F1", "precision", "recall", "MCC", "uniqueness", "L0", "explained variance", "dead share"):
        assert name in str(result)
    assert f"[{result.f1.low:.4g}, {result.f1.high:.4g}]" in str(result)


def test_too_few_rows_and_too_many_features_are_refused():
    with pytest.raises(BadInput, match="at least 20 rows; n_rows is 10"):
        measure_recovery(some_dictionary(), TINY, 10)
    with pytest.raises(BadInput, match="6 features are active in 1,000 rows; n_features is 7"):
        measure_ceiling(Separate(), 7, 1_000)
