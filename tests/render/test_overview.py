import numpy as np
import pytest

from heedful.explanations import Explanations
from heedful.explanations.words import WordScores
from heedful.render.overview import TargetWords, classes_of, overview
from heedful.statistics.intervals import wilson
from tests.explanations.many import explained


def test_the_sentences_count_texts_refusals_and_right_answers():
    explanations = explained()
    sentences = " ".join(overview(explanations, 5)[0])
    right = sum(label == own for label, own in zip(explanations.labels[:-1], explanations.predicted[:-1], strict=True))
    low, high = wilson(right, 7)
    assert "Explanations of 8 texts, 1 refused, explained by leave-one-out." in sentences
    assert f"right on {right} of 7 labelled texts: {right / 7:.1%} [{low:.1%}, {high:.1%}]" in sentences
    assert "Refused, 1 text: Lime needs at least 2 words" in sentences
    assert "on the logit scale" in sentences
    assert "unsigned" in overview(explained("attention-mean"), 5)[0][0]


def test_words_are_of_their_own_target_and_mistakes_of_any_text():
    _, targets, mistakes = overview(explained(), 4)
    frame = explained().to_frame()
    for target in targets:
        rows = frame[frame["target"] == target.target]
        assert target.n_texts == rows["id"].nunique()
        assert len(target.words) == 4
        assert {row.word for row in target.words} <= set(rows["unit"].str.lower())
        wrong = rows[rows["predicted"] != rows["label"]]
        assert target.n_wrong == wrong["id"].nunique()
        for row in target.wrong:
            assert wrong[wrong["unit"].str.lower() == row.word]["id"].nunique() == row.n_texts
    assert mistakes.ids == explained().errors().ids


def test_texts_without_labels_or_words_have_an_overview_too():
    one = explained()
    unlabelled = Explanations(one.items, one.ids, one.classes, (None,) * 8, one.predicted, 8, one.confidence)
    assert not any("labelled" in sentence for sentence in overview(unlabelled, 5)[0])
    sentences = tuple(item if item.refused else item.to("sentence") for item in one)
    _, targets, _ = overview(
        Explanations(sentences, one.ids, one.classes, one.labels, one.predicted, 8, one.confidence), 5
    )
    assert all(target.words == [] for target in targets)
    assert overview(one[:0], 5)[1] == []


def test_many_reasons_are_cut():
    items = tuple(type(explained()[7])(f"t{n}", f"reason {n}", "lime") for n in range(9))
    sentences, _, _ = overview(Explanations(items, tuple("abcdefghi"), (), (None,) * 9, (None,) * 9, 9, (None,) * 9), 5)
    assert len(sentences) == 5
    assert "6 other reasons" in sentences[-1]


def test_the_axis_holds_zero_and_every_interval():
    row = WordScores("a", "yes", "", -0.5, 0.5, -0.9, np.nan, 5, 5)
    assert TargetWords("yes", 5, [row], 0, []).axis == (-0.9, pytest.approx(0.0, abs=1e-8))


def test_the_classes_of_a_text_are_named():
    explanations = explained()
    assert classes_of(explanations, 2).startswith("predicted positive, label neutral, f(positive) = +0.529")
    assert classes_of(explanations, 7) == ""
