"""Results of many texts; what users see of them is in test_explain.py."""

import numpy as np
import pandas as pd

import heedful
from heedful.datasets.texts import texts_of
from heedful.explainers import configure
from heedful.explainers.many_texts import ManyTexts
from heedful.models.budget import Budget

TEXTS = ["good film", "", "zzz", "a dull plot", "bad"]


def many(model, method="attention-mean", target=None, **settings):
    budget = Budget.of(None, 10, lambda *_: None)
    return ManyTexts(model, configure(method, settings), texts_of(TEXTS), target, None, "logit", budget)


def test_some_places_are_explained_and_put_in_order(tiny):
    results = list(many(tiny, target=[1, 0, 1, 0, 1]).explain([4, 3, 1], first=True))
    assert {result.place for result in results} == {1, 3, 4}
    collected = many(tiny).collect(results)
    assert collected.ids == ("1", "3", "4")
    assert [item.refused for item in collected] == [True, False, False]
    assert collected[1].target.index == 0
    assert collected.n_texts == 5


def test_later_texts_may_all_be_refused(tiny):
    assert [result.item.refused for result in many(tiny).explain([1], first=False)] == [True]


def test_methods_with_many_passes_go_one_by_one_and_share_the_seconds(tiny):
    assert many(tiny, "lime").one_by_one
    assert many(tiny, "integrated-gradients").one_by_one
    assert not many(tiny, "gradient-l1").one_by_one
    assert many(tiny).share.seconds == 2


def test_a_cell_that_is_no_text_keeps_its_place_and_loses_no_other(tiny):
    explanations = heedful.explain(tiny, pd.DataFrame({"text": ["a good film", 5, "bad film"]}), "leave-one-out")
    assert [item.refused for item in explanations] == [False, True, False]
    assert "int was given" in explanations[1].reason


def test_the_surest_mistake_is_that_of_the_largest_probability_not_of_the_largest_logit():
    def close_or_clear(texts):
        return np.array([[5.0, 4.9] if "close" in text else [2.0, -2.0] for text in texts])

    for returns in ("logits", "scores"):
        model = heedful.wrap(close_or_clear, classes=["no", "yes"], returns=returns)
        explanations = heedful.explain(model, ["a close one", "a clear one"], "leave-one-out", label=[1, 1])
        assert explanations.errors().ids == ("1", "0")


def test_many_bad_texts_before_the_first_good_one_lose_nothing(tiny):
    explanations = heedful.explain(tiny, [""] * 130 + ["good film"], "attention-mean")
    assert len(explanations.refusals) == 130
    assert not explanations[130].refused
