import sys
from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy.special import softmax

from heedful.errors import BadInput, MissingPackage
from heedful.explanations import Explanations
from heedful.explanations.refusal import Refusal
from tests.conftest import tiny_model
from tests.explanations.many import explained


def refused(n):
    items = tuple(Refusal(f"text {i}", "a reason", "lime") for i in range(n))
    return Explanations(items, tuple(f"id-{i}" for i in range(n)), ("no", "yes"), (0,) * n, (1,) * n, n, (None,) * n)


def test_explanations_are_a_sequence():
    explanations = refused(3)
    assert len(explanations) == 3
    assert explanations[-1].text == "text 2"
    assert [item.text for item in explanations[1:]] == ["text 1", "text 2"]
    assert explanations[1:].ids == ("id-1", "id-2")


def test_the_summary_counts_refusals_and_texts_that_were_not_reached():
    explanations = refused(2)
    assert repr(explanations) == "<explanations of 2 texts, 2 refused>"
    stopped = Explanations(explanations.items, explanations.ids, (), (None,) * 2, (None,) * 2, 9, (None,) * 2)
    assert repr(stopped) == "<explanations of 2 of 9 texts, 2 refused>"


def test_a_frame_has_a_row_per_unit_of_every_explained_text():
    explanations = explained()
    frame = explanations.to_frame()
    assert [*frame.columns[:8]] == ["id", "unit", "place", "score", "low", "high", "target", "output"]
    for name, item in zip(explanations.ids[:-1], explanations[:-1], strict=True):
        rows = frame[frame["id"] == name]
        assert rows["unit"].tolist() == [*item.units]
        assert rows["place"].tolist() == [*range(len(item.units))]
        assert rows["score"].tolist() == item.scores.tolist()
        assert (rows["output"] == item.output).all()
        assert (rows["target"] == rows["predicted"]).all()
    assert "id-7" not in set(frame["id"])
    assert explained("attention-mean").to_frame()["low"].isna().all() == (explained("attention-mean")[0].error is None)


def test_bounds_of_a_frame_are_the_interval():
    explanation = replace(explained()[0], error=np.full(8, 0.5))
    frame = Explanations((explanation,), ("a",), ("no",), (None,), (None,), 1, (None,)).to_frame()
    assert np.allclose(frame["high"] - frame["score"], 0.5)
    assert np.allclose(frame["score"] - frame["low"], 0.5)
    assert frame["label"].isna().all()


def test_mistakes_come_with_the_most_confident_first():
    explanations = explained()
    wrong = explanations.errors()
    assert set(wrong.ids) == {
        name
        for name, label, own in zip(explanations.ids, explanations.labels, explanations.predicted, strict=True)
        if label is not None and own is not None and label != own
    }
    sure = [softmax(row).max() for row in tiny_model()([item.document.text for item in wrong])]
    assert sure == sorted(sure, reverse=True)
    assert explained(target=1).errors().ids == wrong.ids


def test_labels_may_be_given_by_number_or_name():
    explanations = explained()
    names = ["negative" if number is None else explanations.classes[number] for number in explanations.labels]
    assert explanations.errors(names).ids == explanations.errors().ids
    assert explanations.errors(pandas.Series(names)).ids == explanations.errors().ids
    assert len(explanations.errors([*explanations.predicted[:-1], 0])) == 0
    assert explanations.errors([None] * 3 + ["negative"] + [float("nan")] * 4).ids == ("id-3",)


def test_unusable_labels_are_refused():
    with pytest.raises(BadInput, match="8 texts, 1 labels"):
        explained().errors([0])
    with pytest.raises(BadInput, match="did you mean 'negative'"):
        explained().errors(["negativ"] * 8)
    with pytest.raises(BadInput, match="labels of the texts are not known"):
        Explanations(refused(2).items, ("0", "1"), (), (None,) * 2, (None,) * 2, 2, (None,) * 2).errors()


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackage, match="pip install pandas"):
        explained().to_frame()


def test_shap_explanations_need_one_target():
    with pytest.raises(BadInput, match="give target=, one of: neutral, positive"):
        explained().to_shap()
    with pytest.raises(BadInput, match="There is no target 'positiv'"):
        explained().to_shap(target="positiv")
