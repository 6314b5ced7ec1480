"""Games of documents against masked forward passes, for every set of units."""

from itertools import product

import numpy as np
import pytest
import torch

from heedful.errors import BadInput, Unsupported
from heedful.models.pooling import Pooling
from heedful.models.question import ask
from heedful.perturb.exact_game import fitted_values, games_of
from tests.explainers.test_exact import forwards
from tests.families import build
from tests.theory.test_exact import all_subsets, brute_lime, brute_shapley

TEXT = "good film was not dull"


@pytest.mark.parametrize("unit", ["word", "type"])
def test_a_game_has_the_value_of_the_masked_text_for_every_set(tiny, unit):
    z, f = forwards(tiny, TEXT, unit, 1)
    game = games_of(ask(tiny, [TEXT], 1), unit, "replace", 1, "the test")
    masks, values = all_subsets(game)
    by_mask = {tuple(row): value for row, value in zip(masks.tolist(), values, strict=True)}
    differences = np.array([by_mask[tuple(row)] for row in z.tolist()]) - f
    # The game leaves out the bias, which is the same for all sets.
    assert np.ptp(differences) < 1e-9


@pytest.mark.parametrize("measure", ["shapley", "lime"])
def test_values_of_a_surrogate_are_those_of_all_sets(measure):
    rng = np.random.default_rng(0)
    s, w = rng.normal(size=(2, 6))
    z = np.array(list(product([0, 1], repeat=5)))
    g = np.hstack([z, np.ones((32, 1))]) * np.exp(s)
    f = g @ w / g.sum(axis=1)
    s_gone, w_gone = torch.full((1, 1, 6), -torch.inf).double(), torch.zeros(1, 1, 6).double()
    pooling = Pooling(torch.from_numpy(s)[None, None], torch.from_numpy(w)[None, None], s_gone, w_gone)
    values, error = fitted_values(pooling, measure)
    expected = brute_shapley(z, f) if measure == "shapley" else brute_lime(z, f, 25.0, 1.0, 5000)
    assert np.abs(values[0] - expected).max() <= error[0] + 1e-9


def test_models_and_absences_without_a_game_are_refused(tiny):
    with pytest.raises(Unsupported, match="needs attention pooling"):
        games_of(ask(build("bert"), [TEXT], 0), "word", "replace", 1, "the test")
    with pytest.raises(Unsupported, match="does not support absence 'delete'"):
        games_of(ask(tiny, [TEXT], 1), "word", "delete", 1, "the test")
    with pytest.raises(BadInput, match="needs at least 2 words; the document has 1"):
        games_of(ask(tiny, ["good"], 1), "word", "replace", 2, "the test")
