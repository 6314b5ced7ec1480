"""Terms add up: to every score, and to every difference of two."""

from itertools import combinations

import numpy as np
import pytest

import heedful
from heedful.evaluation.disagreement import explain_disagreement
from heedful.evaluation.disagreement.accounts import TERMS, difference_terms, removal_kind, total
from tests.conftest import tiny_model
from tests.evaluation.disagreement.planted import asked

TEXT = "good film , not dull ! a very bad film"
METHODS = (
    *(
        "attention-mean",
        "attention-sum",
        "attention-last",
        "rollout",
        "gradient-x-input",
        "leave-one-out",
        "lime-exact",
    ),
    *("lime-limit", "shapley-exact", "banzhaf-exact", "lime", "shapley-sampled", "hierarchical-shapley", "occlusion"),
)


@pytest.mark.slow
@pytest.mark.parametrize("absence", ["replace", "mask", "mean", "zero", "replace:story"])
@pytest.mark.parametrize("unit", ["word", "type"])
def test_terms_sum_to_the_scores_of_every_signed_method(unit, absence):
    model = tiny_model(1)
    question, explanations = asked(model, TEXT, METHODS, unit=unit, absence=absence, n_samples=50)
    accounts = explain_disagreement(question, explanations).accounts
    assert set(accounts) == set(METHODS)
    for explanation in explanations:
        if explanation.signed:
            assert np.abs(total(accounts[explanation.method]) - explanation.scores).max() < 1e-9
        else:
            # Attention at fair value is attention, times what makes it weigh as much as the values do.
            ratio = total(accounts[explanation.method]) / explanation.scores
            assert np.allclose(ratio, ratio[0], atol=1e-9)
        assert set(accounts[explanation.method]) <= set(TERMS)


def test_terms_sum_where_words_are_deleted_and_on_the_papers_model(paper):
    names = ["attention-mean", "gradient-x-input", "gradient-theorem", "leave-one-out", "lime"]
    question, explanations = asked(paper, TEXT, names, absence="delete", n_samples=200, reduce="x-input")
    accounts = explain_disagreement(question, explanations).accounts
    for explanation in explanations[1:]:
        assert np.abs(total(accounts[explanation.method]) - explanation.scores).max() < 1e-9
    assert "moving up" in accounts["leave-one-out"]
    assert "replacement" not in accounts["leave-one-out"]


def test_a_log_probability_bends_and_its_terms_sum_too(tiny):
    names = ["attention-mean", "gradient-x-input", "leave-one-out", "shapley-sampled"]
    question, explanations = asked(tiny, TEXT, names, scale="log-probability")
    accounts = explain_disagreement(question, explanations).accounts
    for explanation in explanations[1:]:
        assert np.abs(total(accounts[explanation.method]) - explanation.scores).max() < 1e-9
    assert np.abs(accounts["leave-one-out"]["bend"]).max() > 1e-3
    assert "bend" not in accounts["gradient-x-input"]


def test_leaving_one_out_is_the_contribution_less_what_the_others_say_with_its_attention(tiny):
    question, explanations = asked(tiny, TEXT, ["leave-one-out"], absence="mask")
    disagreement = explain_disagreement(question, explanations)
    terms = disagreement.accounts["leave-one-out"]
    contribution = terms["attention"] + terms["value"] + terms["cancelling"] + terms["sign"]
    assert np.allclose(contribution, disagreement.evidence.passed.contribution, atol=1e-12)
    assert (terms["cancelling"] <= 1e-12).all()
    assert np.allclose(terms["sign"], np.minimum(0, 2 * contribution), atol=1e-12)
    assert terms["value"].sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("signed", [True, False])
def test_terms_between_two_methods_sum_to_the_difference_of_what_is_compared(tiny, signed):
    names = ["attention-mean", "gradient-x-input", "leave-one-out", "lime-exact", "shapley-exact"]
    accounts = explain_disagreement(*asked(tiny, TEXT, names)).accounts
    for one, other in combinations(names, 2):
        a, b = (total(accounts[name]) if signed else np.abs(total(accounts[name])) for name in (one, other))
        terms = difference_terms(accounts[one], accounts[other], signed)
        assert np.abs(total(terms) - (b - a)).max() < 1e-9
    by_size = difference_terms(accounts["attention-mean"], accounts["leave-one-out"], signed=False)
    against = total(accounts["leave-one-out"]) < 0
    contribution = np.sum([accounts["leave-one-out"][name] for name in ("attention", "value", "cancelling", "sign")], 0)
    # Where sizes are compared, a side that both the value and the loss are on is no difference.
    assert np.abs(by_size["side"][against == (contribution < 0)]).max() < 1e-12


def test_a_bag_has_the_same_accounts_without_a_gradient():
    bag = heedful.Bag(
        [[2.0, 0.0, 1.0], [0.5, 1.0, 0.0]],
        [[1.0, -1.0, 0.5], [0.2, -0.3, 2.0]],
        names=["one", "two", "three"],
        gone_scores=[[0.0, 0.1, 0.2], [0.0, 0.1, 0.2]],
        gone_values=[[0.3, 0.2, 0.1], [0.1, -0.2, 0.3]],
    )
    question, explanations = asked(
        bag, bag.text, ["attention-mean", "leave-one-out", "lime-exact", "shapley-exact"], None
    )
    disagreement = explain_disagreement(question, explanations)
    assert disagreement.exact
    for explanation in explanations[1:]:
        assert np.abs(total(disagreement.accounts[explanation.method]) - explanation.scores).max() < 1e-9


def test_methods_that_remove_units_declare_it():
    single = {name for name in heedful.methods() if removal_kind(name) == "single"}
    joint = {name for name in heedful.methods() if removal_kind(name) == "joint"}
    assert single == {"leave-one-out"}
    assert joint >= {"lime", "lime-exact", "occlusion", "shapley-exact", "shapley-sampled", "banzhaf-exact"}
    assert removal_kind("an imported method") is None
