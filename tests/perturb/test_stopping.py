"""Certificates: claims are true as often as they say, and cost no more than the budget."""

import numpy as np
import pytest
from scipy.stats import t

from heedful.errors import BadInput
from heedful.models.question import ask
from heedful.perturb.moments import Estimate
from heedful.perturb.rounds import Plan
from heedful.perturb.size_law import KnownLaw
from heedful.perturb.stopping import Goal, Pairs, certify, take_few
from heedful.perturb.sweep import Sweep

UNITS = ("good", "film", "good", "dull")
TEXT = "good film was very bad but bright and not dull"


def estimate_of(means, spread, n_pairs=40, seed=0):
    rng = np.random.default_rng(seed)
    return Estimate(np.array(means) + spread * rng.normal(size=(n_pairs, len(means))), 0.0, 1.0, 0.0)


@pytest.mark.parametrize("spread", [0.01, 3.0])
def test_signs_are_certain_where_student_s_interval_excludes_zero(spread):
    goal, estimate = Goal("signs", 2, 0.95, 1e-6, 66), estimate_of([2.0, 0.1, -3.0, 0.2], spread)
    reached, sentence, facts = goal.judge(estimate, UNITS)
    assert goal.n_looks == 2
    level = 1 - 0.05 / (4 * goal.n_looks)
    error = estimate.terms.std(axis=0, ddof=1) / np.sqrt(40)
    top = np.argsort(-np.abs(estimate.scores))[:2]
    certain = np.abs(estimate.scores[top]) > t.ppf(level, 39) * error[top]
    assert facts["certain_signs"] == certain.sum()
    assert reached == certain.all()
    assert ("certain at 95%" in sentence) == certain.any()


def test_claims_about_the_strongest_name_the_rivals():
    goal = Goal("top", 2, 0.95, 1e-6, 5000)
    reached, sentence, facts = goal.judge(estimate_of([2.0, 0.1, -3.0, 0.2], 0.01), UNITS)
    assert reached
    assert facts == {"certain_top": 2}
    assert "“good” (1)" in sentence
    reached, sentence, facts = goal.judge(estimate_of([2.0, 0.1, -3.0, 2.0], 0.5), UNITS)
    assert not reached
    assert facts == {"certain_top": 1}
    assert "not distinguishable from" in sentence


def test_wrong_claims_are_rarer_than_the_confidence_allows():
    goal, wrong = Goal("top", 1, 0.9, 1e-6, 66), 0
    for seed in range(400):
        estimate = estimate_of([1.0, 1.05, 0.0], 0.5, seed=seed)
        _, _, facts = goal.judge(estimate, ("a", "b", "c"))
        wrong += facts["certain_top"] == 1 and np.argmax(np.abs(estimate.scores)) != 1
    assert wrong <= 0.1 * 400


def test_every_mask_of_few_units_is_evaluated_for_a_certificate():
    plan, goal = Plan("lime", "auto", 2.5, 0.01, 1000), Goal("signs", 5, 0.95, 0.01, 1000)
    assert goal.lists(plan, 8)
    assert goal.listing(plan, 8).n_samples >= 2**8
    assert not goal.lists(plan, 9)
    assert goal.listing(plan, 9) is plan
    assert goal.needs_moments(plan, 9, free=True)


@pytest.mark.parametrize("budget", [40, 200])
def test_the_budget_is_kept_and_a_smaller_one_refused(tiny, budget):
    sweep = Sweep(ask(tiny, [TEXT], 1), 0, "word", "replace")
    pairs = Pairs(KnownLaw.shapley(10), sweep, np.random.default_rng(0))
    goal = Goal("signs", 10, 0.999999, 1e-12, budget)
    result = certify(goal, pairs, None, True, tuple(TEXT.split()))
    assert result.n_masks <= budget
    assert result.notes[0].kind == "budget"
    with pytest.raises(BadInput, match="at least 34 masks; it is 20"):
        certify(Goal("signs", 5, 0.95, 0.01, 20), pairs, None, True, tuple(TEXT.split()))


def test_few_masks_share_out_the_whole_difference(tiny):
    sweep = Sweep(ask(tiny, [TEXT], 1), 0, "word", "replace")
    pairs = Pairs(KnownLaw.shapley(10), sweep, np.random.default_rng(0))
    result = take_few(60, pairs, None, efficient=True)
    empty, whole = pairs.ends
    assert result.line.coefficients.sum() == pytest.approx(whole - empty, abs=1e-9)
    assert result.n_samples == 58
