"""The catalogue of methods, their settings, and the way from numbers of tokens and draws to an explanation."""

import numpy as np
import pytest
from scipy import stats

import heedful
from heedful.errors import UnknownName
from heedful.explainers import configure, methods, settings_of
from heedful.explainers.gradient import GradientL1
from heedful.explainers.lime import Lime
from heedful.models.question import ask

TEXT = "good film , good story"


def test_the_catalogue_has_each_method_under_its_name():
    assert methods()["lime"] is Lime
    assert {method.name for method in methods().values()} == set(methods())


def test_each_method_gets_the_settings_that_it_has():
    settings = settings_of(["lime", "gradient-l1"], {"n_samples": 50, "unit": "token"})
    assert settings == {"lime": {"n_samples": 50, "unit": "token"}, "gradient-l1": {"unit": "token"}}
    assert configure("lime", {"n_samples": 50}) == Lime(n_samples=50)


def test_a_method_or_a_setting_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match="no method 'limes'; did you mean 'lime'"):
        settings_of(["lime", "limes"], {})
    with pytest.raises(UnknownName, match="no setting 'seed'"):
        settings_of(["gradient-l1"], {"seed": 1})


def test_tokens_are_summed_to_units_and_special_tokens_are_separate(tiny):
    question = ask(tiny, [TEXT])
    row = np.zeros((1, tiny.network.config.T_max))
    row[0, :7] = [100.0, 1.0, 2.0, 4.0, 8.0, 16.0, 0.5]
    (words,) = GradientL1().from_tokens(question, row, {"backwards": 1})
    (types,) = GradientL1(unit="type").from_tokens(question, row, {"backwards": 1})
    assert words.scores.tolist() == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert dict(zip(types.units, types.scores, strict=True)) == {"good": 9.0, "film": 2.0, ",": 4.0, "story": 16.0}
    assert types.facts == {"forwards": 1, "[cls]": 100.0, "padding": 0.5, "backwards": 1}


def test_draws_are_averaged_with_student_s_interval_of_each_unit(tiny):
    draws = np.random.default_rng(0).standard_normal((9, tiny.network.config.T_max))
    explanation = GradientL1(unit="type").from_passes(ask(tiny, [TEXT]), 0, draws)
    good = draws[:, 1] + draws[:, 4]
    low, high = stats.t.interval(0.95, len(good) - 1, loc=good.mean(), scale=stats.sem(good))
    assert explanation.units[0] == "good"
    assert explanation.scores[0] == pytest.approx(good.mean())
    assert explanation.error[0] == pytest.approx((high - low) / 2)
    assert explanation.facts["backwards"] == 9


def test_an_explanation_says_how_it_was_made(tiny):
    explanation = heedful.explain(tiny, TEXT, "lime", target="positive", n_samples=50, unit="type")
    assert explanation.method == "lime"
    assert explanation.settings["n_samples"] == 50
    assert explanation.model == tiny.fingerprint
    assert explanation.output == pytest.approx(float(tiny([TEXT])[0][1]))
