import numpy as np
import pytest

import heedful
from benchmarks.straightforward import Straightforward
from heedful.errors import BadInput
from tests.theorems.test_exact import brute_lime, brute_shapley
from tests.theorems.test_theorem_5_1 import lime_by_all_subsets

TEXT = "good film was good but the plot was dull"


def forwards(model, text, unit, label):
    """f on every subset of the units, by forward passes of the replaced texts."""
    document = model.encode(text)
    unit_of = document.unit_of(unit)[1:]
    d = document.n_units(unit)
    z = np.array([[(n >> j) & 1 for j in range(d)] for n in range(2**d)])
    words = np.array(document.pieces[1:])
    texts = [" ".join(np.where(row[unit_of] == 1, words, "neverseen")) for row in z]
    return z, Straightforward(model).predict(texts)[:, label]


@pytest.mark.parametrize("unit", ["word", "type"])
def test_exact_values_are_those_of_all_subsets(tiny, unit):
    z, f = forwards(tiny, TEXT, unit, 1)
    lime, shapley = (heedful.explain(tiny, TEXT, m, target=1, unit=unit) for m in ("lime-exact", "shapley-exact"))
    assert np.allclose(lime.scores, brute_lime(z, f, 25.0, 1.0, 5000), atol=1e-9)
    assert np.allclose(shapley.scores, brute_shapley(z, f), atol=1e-9)


def test_the_limit_is_lime_s_line_through_all_subsets(tiny):
    text = "good film , not dull story !"
    line, _ = lime_by_all_subsets(tiny, text, 1)
    assert np.allclose(heedful.explain(tiny, text, "lime-limit", target=1).scores, line, atol=1e-9)


def test_sampled_lime_scatters_around_the_exact_one(paper):
    text = "this film is a waste of time . the plot makes no sense , but i liked the music ."
    exact = heedful.explain(paper, text, "lime-exact", unit="type")
    runs = [heedful.explain(paper, text, "lime", unit="type", seed=seed) for seed in range(30)]
    mean = np.mean([run.scores for run in runs], axis=0)
    spread = np.std([run.scores for run in runs], axis=0, ddof=1) / 30**0.5
    assert np.abs(mean - exact.scores).max() < 4 * spread.max()
    assert np.mean([np.abs(run.scores - exact.scores) <= run.error for run in runs]) > 0.9
    assert exact.error.max() < 1e-6


def test_shapley_values_of_a_review_sum_to_the_difference(paper):
    text = "a truly wonderful film with a terrible ending , bad actors and good music . " * 15
    empty = paper([" ".join(["neverseen"] * len(text.split()))])[0, 1]
    for tolerance, slack in ((1e-6, 1e-5), (1e-9, 1e-9)):
        explanation = heedful.explain(paper, text, "shapley-exact", target=1, tolerance=tolerance)
        assert explanation.error.max() <= tolerance
        assert explanation.scores.sum() == pytest.approx(explanation.output - empty, abs=slack)
        assert explanation.facts["empty"] == pytest.approx(empty, abs=1e-12)


def test_one_word_is_too_few_for_a_line(tiny):
    with pytest.raises(BadInput, match="lime-exact needs at least 2 words; the document has 1."):
        heedful.explain(tiny, "good", "lime-exact")
