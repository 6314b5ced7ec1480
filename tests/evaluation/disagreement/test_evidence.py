import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax

from heedful.evaluation.disagreement.evidence import Evidence, Passed, at_fair_value, probability, tangent
from heedful.target import Target

LOGITS = np.array([0.3, -1.2, 2.0])


def passed() -> Passed:
    rng = np.random.default_rng(0)
    attention, size = rng.random(6), rng.random(6)
    return Passed(attention / attention.sum(), size, size - 0.2, rng.normal(size=6), rng.random(6))


@pytest.mark.parametrize("returns", ["logits", "independent-logits"])
@pytest.mark.parametrize("scale", ["logit", "log-probability", "probability"])
@pytest.mark.parametrize("against", [None, 2])
def test_the_tangent_is_the_gradient_of_the_target_in_the_logits(scale, against, returns):
    target = Target(1, "b", against, scale, returns)
    numeric = approx_fprime(LOGITS, lambda logits: float(target.of(logits[None])[0]), 1e-7)
    assert tangent(target, LOGITS) == pytest.approx(numeric, abs=1e-6)


def test_the_tangent_of_a_single_logit_is_that_of_the_logarithm_of_a_sigmoid():
    target = Target(0, "yes", scale="log-probability")
    assert tangent(target, np.array([0.7])) == pytest.approx([1 - expit(0.7)], rel=1e-12)


def test_the_probability_is_scipys_softmax_or_sigmoid():
    for index in range(3):
        assert probability(Target(index, ""), LOGITS) == pytest.approx(softmax(LOGITS)[index], rel=1e-12)
        multi_label = Target(index, "", returns="independent-logits")
        assert probability(multi_label, LOGITS) == pytest.approx(expit(LOGITS)[index], rel=1e-12)
    assert probability(Target(0, ""), np.array([-0.4])) == pytest.approx(expit(-0.4), rel=1e-12)
    # No overflow of exp.
    assert probability(Target(0, ""), np.array([1000.0, 0.0])) == 1.0
    assert probability(Target(0, "", returns="scores"), LOGITS) is None


def test_attention_at_fair_value_keeps_proportions_and_the_sum_of_sizes():
    evidence = passed()
    assert evidence.fair.sum() == pytest.approx(evidence.gross.sum(), rel=1e-12)
    assert evidence.fair / evidence.fair[0] == pytest.approx(evidence.attention / evidence.attention[0], rel=1e-12)
    assert at_fair_value(7 * evidence.attention, evidence.gross) == pytest.approx(evidence.fair, rel=1e-12)
    assert at_fair_value(np.zeros(3), np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_the_level_is_the_larger_of_the_output_and_the_sum_of_sizes():
    inner = passed()
    total = sum(inner.gross.tolist())
    assert Evidence(True, 0.1, inner).level == pytest.approx(total, rel=1e-12)
    assert Evidence(True, -2 * total, inner).level == pytest.approx(2 * total, rel=1e-12)
    assert Evidence(False, -0.3).level == 0.3
