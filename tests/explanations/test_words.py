import numpy as np
import pandas
import pytest

import heedful
from heedful.errors import BadInput
from heedful.explanations import Explanations
from heedful.explanations.words import one_kind, word_occurrences, word_scores
from heedful.statistics.intervals import mean_intervals
from tests.explanations.many import explained
from tests.families import build


def by_pandas(explanations, column=None):
    """Mean, mean |score|, count and texts of each word, from the table of units."""
    frame = explanations.to_frame()
    frame["word"], frame["size"] = frame["unit"].str.lower(), frame["score"].abs()
    frame["outcome"] = np.where(frame["predicted"] == frame["label"], "right", "wrong")
    keys = ["word", "target", *([column] if column else [])]
    texts = frame.groupby([*keys, "id"])[["score", "size"]].mean()
    table = texts.groupby(keys).mean()
    table["count"], table["n_texts"] = frame.groupby(keys).size(), texts.groupby(keys).size()
    return table.sort_index()


@pytest.mark.parametrize(("by", "column"), [(None, None), ("class", "predicted"), ("error", "outcome")])
@pytest.mark.parametrize("target", [None, 1])
def test_words_are_those_of_pandas(by, column, target):
    explanations = explained(target=target)
    table = explanations.global_words(by).set_index(["word", "target", *([column] if column else [])]).sort_index()
    expected = by_pandas(explanations, column)
    assert table.index.tolist() == expected.index.tolist()
    for name, other in (("mean", "score"), ("mean_abs", "size"), ("count", "count"), ("n_texts", "n_texts")):
        assert np.allclose(table[name], expected[other], rtol=1e-12)


def test_intervals_are_over_texts_and_missing_below_five():
    rows = {row.word: row for row in word_scores(explained(target=1))}
    values = [
        np.mean(occurrences["film"])
        for occurrences in map(word_occurrences, explained(target=1)[:7])
        if occurrences["film"]
    ]
    assert len(values) == rows["film"].n_texts == 5
    low, high = mean_intervals(np.array([values]))
    assert (rows["film"].low, rows["film"].high) == (low[0], high[0])
    assert all(np.isnan(row.low) for row in rows.values() if row.n_texts < 5)


def test_the_strongest_words_come_first_and_rare_ones_can_be_left_out():
    rows = word_scores(explained(), min_texts=3)
    assert [row.mean_abs for row in rows] == sorted((row.mean_abs for row in rows), reverse=True)
    assert {row.n_texts for row in rows} == {3, 4}


def test_from_fifty_texts_on_a_word_needs_five():
    few = explained(target=1)[:7]
    items, ids = few.items + few.items[:1] * 42, tuple(map(str, range(50)))
    for n in (49, 50):
        many = Explanations((*items, few[1])[:n], ids[:n], few.classes, (0,) * n, (0,) * n, n, (None,) * n)
        words = {row.word for row in word_scores(many)}
        frequent = {row.word for row in word_scores(many, min_texts=5)}
        assert words == (frequent if n == 50 else {row.word for row in word_scores(few)})
        assert frequent < {row.word for row in word_scores(few)}


def test_unsigned_methods_are_labelled():
    assert not explained("attention-mean").global_words()["signed"].any()
    assert explained().global_words()["signed"].all()


def test_tokens_are_summed_to_words():
    explanation = heedful.explain(build("bert"), "an Unbelievable film", "leave-one-out", unit="token")
    (first,) = np.flatnonzero(explanation.document.words[explanation.document.words >= 0] == 1)[:1]
    parts = explanation.scores[first : len(explanation.units) - 1]
    assert len(parts) > 1
    assert word_occurrences(explanation)["unbelievable"] == [pytest.approx(parts.sum())]


def test_occurrences_are_kept_apart_and_sentences_refused():
    explanation = explained()[0]
    assert word_occurrences(explanation)["good"] == explanation.scores[[3, 6]].tolist()
    with pytest.raises(BadInput, match='unit="word"'):
        word_occurrences(explanation.to("sentence"))


def test_what_cannot_be_averaged_is_refused():
    one, two = explained(), explained("attention-mean")
    mixed = Explanations((one[0], two[1]), ("0", "1"), one.classes, (0, 0), (0, 0), 2, (None, None))
    with pytest.raises(BadInput, match="different methods"):
        one_kind(mixed)
    with pytest.raises(BadInput, match='by must be None, "class" or "error"'):
        one.global_words("label")
    unlabelled = Explanations(one.items, one.ids, one.classes, (None,) * 8, one.predicted, 8, one.confidence)
    with pytest.raises(BadInput, match="labels of the texts are not known"):
        unlabelled.global_words("error")


def test_no_texts_have_no_words():
    assert isinstance(explained()[:0].global_words(), pandas.DataFrame)
    assert len(explained()[:0].global_words("class")) == 0
