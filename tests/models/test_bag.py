from itertools import product

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from tests.theory.test_exact import brute_shapley


def answers(s, w, s_gone, w_gone, z):
    """softmax pooling written out, head by head."""
    total = 0.0
    for h in range(len(s)):
        scores = np.where(z, s[h], s_gone[h])
        alpha = np.exp(scores - scores.max())
        total += alpha @ np.where(z, w[h], w_gone[h]) / alpha.sum()
    return total / len(s)


def test_a_bag_s_exact_values_are_those_of_all_subsets():
    rng = np.random.default_rng(0)
    s, w, s_gone, w_gone = rng.standard_normal((4, 2, 7))
    bag = heedful.Bag(s, w, gone_scores=s_gone, gone_values=w_gone)
    z = np.array(list(product([0, 1], repeat=7)))
    f = np.array([answers(s, w, s_gone, w_gone, row == 1) for row in z])
    assert bag([bag.text])[0, 0] == pytest.approx(f[-1], abs=1e-12)
    assert np.allclose(heedful.explain(bag, bag.text, "shapley-exact").scores, brute_shapley(z, f), atol=1e-10)
    assert np.allclose(heedful.explain(bag, bag.text, "shapley-sampled").scores, brute_shapley(z, f), atol=1e-10)


def test_an_item_without_a_name_is_never_removed():
    rng = np.random.default_rng(0)
    s, w = rng.standard_normal((2, 1, 5))
    names = ["left lung", None, "right lung", "heart", "spine"]
    bag = heedful.Bag(s, w, names=names)
    explanation = heedful.explain(bag, bag.text, "shapley-exact")
    assert explanation.units == ("left lung", "right lung", "heart", "spine")
    z = np.array(list(product([0, 1], repeat=4)))
    gone = np.full((1, 5), -np.inf)
    f = np.array([answers(s, w, gone, w, np.insert(row == 1, 1, True)) for row in z])
    assert np.allclose(explanation.scores, brute_shapley(z, f), atol=1e-10)


def test_compare_runs_every_method_that_fits():
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((4, 6))
    bag = heedful.Bag(numbers[0], numbers[1], gone_scores=numbers[2], gone_values=numbers[3])
    names = {e.method for e in heedful.compare(bag, bag.text, "all").explanations}
    assert {"attention-mean", "leave-one-out", "lime", "lime-exact", "shapley-exact", "shapley-sampled"} <= names


def test_several_classes_are_explained_one_at_a_time():
    rng = np.random.default_rng(0)
    s, w = rng.standard_normal((2, 5)), rng.standard_normal((3, 2, 5))
    bag = heedful.Bag(s, w, gone_scores=s * 0, gone_values=w * 0, classes=["a", "b", "c"])
    b, c = (heedful.explain(bag, bag.text, "shapley-exact", target=name).scores for name in "bc")
    contrast = heedful.explain(bag, bag.text, "shapley-exact", target="b", against="c").scores
    assert np.allclose(contrast, b - c, atol=1e-10)


def test_an_error_above_the_tolerance_is_noted():
    """Scores 1,000 apart: sets without the strongest item have a denominator that no double holds beside it."""
    s, w = np.random.default_rng(0).standard_normal((2, 6))
    bag = heedful.Bag(300 * s, w, gone_scores=s * 0, gone_values=s * 0)
    explanation = heedful.explain(bag, bag.text, "shapley-exact")
    assert explanation.error.max() > 1e-6
    assert "more than the tolerance" in explanation.notes[-1]


def test_a_bag_that_cannot_be_emptied_is_refused():
    bag = heedful.Bag([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(BadInput, match="With every unit removed, nothing is left to attend to"):
        heedful.explain(bag, bag.text, "shapley-exact")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"scores": [1.0, 2.0], "values": [1.0]}, "incompatible shapes"),
        ({"scores": [1.0, np.nan], "values": [1.0, 2.0]}, "finite numbers"),
        ({"scores": [1.0, 2.0], "values": [1.0, 2.0], "names": ["a"]}, "one name for each"),
        ({"scores": [1.0, 2.0], "values": [1.0, 2.0], "names": ["a", " "]}, "Every item needs a name"),
        ({"scores": [1.0, 2.0], "values": [1.0, 2.0], "gone_scores": [1.0, 2.0]}, "must be given together"),
    ],
)
def test_bags_that_make_no_sense_are_refused(given, sentence):
    with pytest.raises(BadInput, match=sentence):
        heedful.Bag(**given)


def test_unsupported_uses_of_a_bag_are_refused():
    bag = heedful.Bag([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(BadInput, match="explain its `text`"):
        heedful.explain(bag, "something else", "attention-mean")
    with pytest.raises(Unsupported, match="give replace or mask"):
        heedful.explain(bag, bag.text, "leave-one-out", absence="zero")
