from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.family import build
from heedful.metrics import measure
from heedful.metrics.infidelity import Infidelity
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of, masked_text, sets_of, value

TEXT = "good film was not bad but very dull and a bright story ?"
SCORES = np.random.default_rng(0).standard_normal(13)


@pytest.mark.parametrize(("absence", "hole"), [("replace", "neverseen"), ("delete", None)])
def test_it_is_the_mean_squared_error_over_sets(tiny, absence, hole):
    evaluation = evaluation_of(tiny, TEXT, SCORES)
    metric = Infidelity(absence=absence, n_sets=40)
    result = {
        scaling: measure(replace(metric, scaling=scaling), evaluation) for scaling in ("none", "optimal", "relative")
    }
    sets = sets_of(evaluation, absence)
    # None was drawn twice, so that what was asked says how often each counts.
    assert len(sets) == 40
    everything = set(range(13))
    lost = [value(tiny, TEXT) - value(tiny, masked_text(TEXT, everything - gone, hole)) for gone in sets]
    message = [sum(SCORES[list(gone)]) for gone in sets]

    def error(factor):
        return sum((factor * s - change) ** 2 for s, change in zip(message, lost, strict=True)) / 40

    assert result["none"] == pytest.approx(error(1.0), abs=1e-12)
    factors = np.linspace(-3, 3, 60_001)
    best = factors[np.argmin([error(factor) for factor in factors])]
    # The grid is as fine as 1e-4, and at its best an error is flat.
    assert result["optimal"] <= error(best) <= result["optimal"] + 1e-6
    nothing = sum(change**2 for change in lost) / 40
    assert result["relative"] == pytest.approx(result["optimal"] / nothing if best > 0 else 1.0)


def test_sizes_are_uniform_and_every_unit_goes_equally_often():
    evaluation = evaluation_of(linear(), " ".join(f"w{number}" for number in range(40)), np.ones(40))
    measure(Infidelity(n_sets=8_000), evaluation)
    sets = sets_of(evaluation, "replace")
    sizes = np.bincount([len(gone) for gone in sets], minlength=41)
    # Of the sets of one unit, and of all but one, there are 40; they were asked once.
    assert sizes[0] == sizes[40] == 0
    assert chisquare(sizes[3:38]).pvalue > 0.001
    middle = [gone for gone in sets if len(gone) == 20]
    often = np.bincount(np.concatenate([list(gone) for gone in middle]), minlength=40)
    assert abs(often / len(middle) - 0.5).max() < 4 * 0.5 / len(middle) ** 0.5


def test_all_methods_meet_the_same_sets_and_a_seed_draws_others(tiny):
    one, other, seeded = (evaluation_of(tiny, TEXT, scores) for scores in (SCORES, SCORES[::-1], SCORES))
    for evaluation, seed in ((one, 0), (other, 0), (seeded, 1)):
        measure(Infidelity(seed=seed), evaluation)
    assert sets_of(one, "replace") == sets_of(other, "replace") != sets_of(seeded, "replace")


def test_true_scores_of_a_sum_are_perfect_at_any_scale_except_unscaled():
    text, weights = "w0 w20 w1 w9 w8", np.array([1 / 2, 0, -7 / 9, -3, 49 / 18])
    evaluation, twice = evaluation_of(linear(), text, weights), evaluation_of(linear(), text, 2 * weights)
    for scaling in ("none", "optimal", "relative"):
        assert measure(Infidelity(scaling=scaling), evaluation) == pytest.approx(0, abs=1e-12)
    assert measure(Infidelity(scaling="optimal"), twice) == pytest.approx(0, abs=1e-12)
    assert measure(Infidelity(), twice) == pytest.approx(0, abs=1e-12)
    # (2Σ − Σ)² is Σ², what there is without any explanation.
    none = evaluation_of(linear(), text, np.zeros(5))
    published = measure(Infidelity(scaling="none"), twice)
    assert published == pytest.approx(measure(Infidelity(scaling="none"), none))
    assert published > 1


def test_no_explanation_and_one_with_all_signs_wrong_are_at_one():
    text, weights = "w0 w20 w1 w9 w8", np.array([1 / 2, 0, -7 / 9, -3, 49 / 18])
    assert measure(Infidelity(), evaluation_of(linear(), text, np.zeros(5))) == 1
    assert measure(Infidelity(), evaluation_of(linear(), text, -weights)) == 1


def test_two_words_are_enough_and_one_is_not(tiny):
    assert np.isfinite(measure(Infidelity(), evaluation_of(tiny, "dull film", [1.0, 2.0])))
    with pytest.raises(Unsupported, match=r"^infidelity needs at least 2 units; the text has 1\.$"):
        measure(Infidelity(), evaluation_of(tiny, "dull", [1.0]))


def test_where_no_removal_moves_anything_only_a_share_is_unknown():
    evaluation = evaluation_of(linear(), "w30 w31 w32", [1.0, -2.0, 3.0])
    assert measure(Infidelity(scaling="optimal"), evaluation) == 0
    with pytest.raises(Unsupported, match=r"^infidelity is undefined: no removal changes the output\.$"):
        measure(Infidelity(), evaluation)


def test_a_method_without_sign_is_refused(tiny):
    with pytest.raises(Unsupported, match=r"^infidelity: this metric needs signed scores"):
        measure(Infidelity(), evaluation_of(tiny, TEXT, np.abs(SCORES), signed=False))


def test_settings_that_cannot_be_are_refused_in_a_sentence():
    with pytest.raises(BadInput, match=r"^infidelity needs n_sets ≥ 2; 1 was given\.$"):
        Infidelity(n_sets=1)
    with pytest.raises(UnknownName, match="^There is no absence 'vanish'"):
        Infidelity(absence="vanish")
    with pytest.raises(UnknownName, match="^There is no scaling 'half'"):
        build(Infidelity, "infidelity", {"scaling": "half"})
