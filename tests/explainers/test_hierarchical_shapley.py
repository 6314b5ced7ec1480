import warnings
from itertools import product

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.explainers import configure
from heedful.explainers.run import run_explainer
from heedful.models.budget import Budget
from heedful.models.question import ask
from heedful.perturb.hierarchy import halves
from heedful.target import Target
from tests.explainers.test_exact import forwards
from tests.families import build, texts_for
from tests.theory.test_exact import brute_shapley

TEXT = "good film . not very dull but bright !"
LONG = "a very good film . the plot was bad , but not dull !"


def tree_of(split, units):
    """Nested pairs down to single units."""
    return int(units[0]) if len(units) == 1 else tuple(tree_of(split, half) for half in split(units))


def orders_of(tree):
    """Every order in which the tree can be read, each pair either way round."""
    if isinstance(tree, int):
        return [[tree]]
    ways = [(a, b) for a in orders_of(tree[0]) for b in orders_of(tree[1])]
    return [one for a, b in ways for one in (a + b, b + a)]


def by_all_orders(tree, value):
    """Winter's value as he defines it: the mean gain over all orders that keep the tree's parts together."""
    orders = orders_of(tree)
    scores = np.zeros(len(orders[0]))
    for order in orders:
        for place, unit in enumerate(order):
            scores[unit] += value[frozenset(order[: place + 1])] - value[frozenset(order[:place])]
    return scores / len(orders)


def linkage(tree, n_units):
    """The tree as scipy and shap write it: a row a join, of the two parts, their distance and their size."""
    rows = []

    def join(node):
        if isinstance(node, int):
            return node, 1
        (one, n_one), (other, n_other) = map(join, node)
        rows.append([one, other, 1.0, n_one + n_other])
        return n_units + len(rows) - 1, n_one + n_other

    join(tree)
    return np.array(rows, dtype=float)


@pytest.mark.parametrize("unit", ["word", "type", "sentence"])
def test_scores_are_the_mean_over_all_orders_that_keep_the_tree(tiny, unit):
    z, f = forwards(tiny, TEXT, unit, 1)
    value = {frozenset(np.flatnonzero(row).tolist()): answer for row, answer in zip(z, f, strict=True)}
    tree = tree_of(halves(tiny.encode(TEXT), unit), np.arange(z.shape[1]))
    explanation = heedful.explain(tiny, TEXT, "hierarchical-shapley", target=1, unit=unit)
    assert np.allclose(explanation.scores, by_all_orders(tree, value), atol=1e-12)
    assert (explanation.error == 0).all()
    assert explanation.facts["spread_share"] == 0
    assert explanation.notes == tiny.encode(TEXT).notes


@pytest.mark.slow
def test_scores_are_those_of_shap_s_partition_explainer(tiny):
    document, target = tiny.encode(LONG), Target(1, "positive")
    tree = tree_of(halves(document, "word"), np.arange(14))

    def f(masks):
        keep = np.concatenate([np.ones((len(masks), 1)), np.asarray(masks)], axis=1) > 0.5
        return tiny.masked(document, target, keep, "replace")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import shap

        masker = shap.maskers.Partition(np.zeros((1, 14)), clustering=linkage(tree, 14))
        theirs = shap.PartitionExplainer(f, masker)(np.ones((1, 14)), max_evals=10_000, silent=True)
    ours = heedful.explain(tiny, LONG, "hierarchical-shapley", target=1)
    assert np.allclose(ours.scores, theirs.values[0], atol=1e-9)
    assert ours.facts["empty"] == pytest.approx(theirs.base_values[0])


@pytest.mark.parametrize("absence", ["replace", "delete", "mask"])
@pytest.mark.parametrize("budget", [2, 3, 4, 10, 61, 500])
def test_scores_share_out_the_whole_difference_within_the_budget(tiny, budget, absence):
    explanation = heedful.explain(tiny, LONG, "hierarchical-shapley", target=1, budget=budget, absence=absence)
    empty = tiny.masked(tiny.encode(LONG), Target(1, "positive"), np.eye(1, 15, dtype=bool), absence)[0]
    assert explanation.scores.sum() == pytest.approx(explanation.output - empty, abs=1e-9)
    assert explanation.facts["masks"] <= budget
    reached = explanation.facts["masks"] == explanation.facts["masks_for_all"]
    assert (explanation.error is not None) == reached == (explanation.facts["spread_share"] == 0)
    assert reached or f"budget={explanation.facts['masks_for_all']} would reach every word." in explanation.notes[-1]


def test_the_number_of_masks_is_the_declared_one(tiny):
    needed = heedful.explain(tiny, LONG, "hierarchical-shapley", budget=2).facts["masks_for_all"]
    enough, short = (heedful.explain(tiny, LONG, "hierarchical-shapley", budget=needed - less) for less in (0, 1))
    assert enough.facts["masks"] == needed
    assert enough.error is not None
    assert short.error is None


def test_words_of_a_part_that_was_not_split_share_its_value(tiny):
    z, f = forwards(tiny, TEXT, "sentence", 1)
    sentences = brute_shapley(z, f)
    explanation = heedful.explain(tiny, TEXT, "hierarchical-shapley", target=1, budget=4)
    assert np.allclose(explanation.scores, np.repeat(sentences / [3, 6], [3, 6]), atol=1e-12)
    assert explanation.facts["spread_share"] == 1
    assert "100% of the value is spread evenly" in explanation.notes[-1]


def test_the_largest_value_is_split_first():
    model = heedful.wrap(lambda texts: np.array([[0.0, "good" in text] for text in texts]), classes=["no", "yes"])
    words = ["the"] * 64
    words[37] = "good"
    explanation = heedful.explain(model, " ".join(words), "hierarchical-shapley", target=1, budget=300)
    assert explanation.facts["masks_for_all"] == 2 + 2 * sum(4**depth for depth in range(6))
    assert np.allclose(explanation.scores, np.arange(64) == 37)
    assert explanation.error is None


def test_of_a_sum_over_words_the_scores_are_the_terms():
    def f(texts):
        weights = {"good": 3.0, "film": 1.0, "bad": -2.0, "dull": -0.5}
        return np.array([[0.0, sum(weights.get(word, 0.0) for word in text.split())] for text in texts])

    model = heedful.wrap(f, classes=["no", "yes"])
    explanation = heedful.explain(model, "good film . bad , dull plot !", "hierarchical-shapley", target=1)
    assert np.allclose(explanation.scores, [3, 1, 0, -2, 0, -0.5, 0, 0], atol=1e-12)


@pytest.mark.parametrize("family", ["bert", "bart", "vit"])
def test_every_family_has_the_values_over_all_orders(family):
    model, given = build(family), texts_for(family)[1]
    document = model.encode(given)
    unit = "word" if document.picture is None else "patch"
    unit_of, d = document.unit_of(unit), document.n_units(unit)
    tree = tree_of(halves(document, unit), np.arange(d))
    explanation = heedful.explain(model, given, "hierarchical-shapley", unit=unit, target=0)
    # A leaf's contexts: every part that was split off on the way down to it is there or not, each with chance ½.
    for leaf in (0, d - 1):
        aside, node = [], tree
        while not isinstance(node, int):
            one, other = node
            if leaf in orders_of(one)[0]:
                aside, node = [*aside, orders_of(other)[0]], one
            else:
                aside, node = [*aside, orders_of(one)[0]], other
        z = np.zeros((2 ** len(aside), d), dtype=bool)
        for row, chosen in enumerate(product([False, True], repeat=len(aside))):
            for part, there in zip(aside, chosen, strict=True):
                z[row, part] = there
        with_it = z | (np.arange(d) == leaf)
        keep = np.concatenate([with_it, z])[:, unit_of] | (unit_of < 0)
        f = model.masked(document, Target(0, explanation.target.name), keep, "replace")
        assert explanation.scores[leaf] == pytest.approx((f[: len(z)] - f[len(z) :]).mean(), abs=1e-6)


def test_a_budget_below_two_is_refused(tiny):
    with pytest.raises(BadInput, match="at least 2 masks; 1 was given"):
        heedful.explain(tiny, TEXT, "hierarchical-shapley", budget=1)


def test_a_user_who_stops_it_has_what_was_split_until_then(tiny):
    def stopping(after):
        def stop(done, _):
            if done >= after:
                raise KeyboardInterrupt

        question = ask(tiny, [LONG], 1, budget=Budget(memory=1, watch=stop))
        return run_explainer(configure("hierarchical-shapley", {}), question)[0]

    explanation = stopping(40)
    whole = heedful.explain(tiny, LONG, "hierarchical-shapley", target=1)
    assert explanation.scores.sum() == pytest.approx(whole.scores.sum(), abs=1e-9)
    assert explanation.error is None
    assert (
        explanation.notes[-2]
        == f"Stopped by the user after {explanation.facts['masks']} of {whole.facts['masks']} masks."
    )
    assert explanation.facts["masks"] < whole.facts["masks"]
    with pytest.raises(KeyboardInterrupt):
        stopping(1)
