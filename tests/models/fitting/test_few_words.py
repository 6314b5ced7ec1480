import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.experiments.reviews import synthetic_reviews

REVIEWS = [(review.text, review.label) for review in synthetic_reviews(200, 0)]


def test_the_words_are_those_most_correlated_with_the_class():
    model = heedful.few_words(REVIEWS, 5)
    words = sorted({word for text, _ in REVIEWS for word in text.split() if word.isalpha()})
    labels = [label for _, label in REVIEWS]
    present = {word: [word in text.split() for text, _ in REVIEWS] for word in words}
    often = {word: row for word, row in present.items() if 2 <= sum(row) < 200}
    strength = {word: abs(np.corrcoef(row, labels)[0, 1]) for word, row in often.items()}
    least = sorted(strength.values())[-5]
    assert len(model.gold) == 5
    assert all(strength[word] >= least - 1e-12 for word in model.gold)


def test_the_model_reads_these_words_and_nothing_else():
    model = heedful.few_words(REVIEWS, 3)
    empty = model(["zzz"])
    assert (model(["some other text , with The In it"]) == empty).all() or "the" in model.gold
    one, two = model.gold[:2]
    both, first, second = (model([text]) - empty for text in (f"{one} x {two}", one.upper(), f"{two} {two}"))
    assert both == pytest.approx(first + second, abs=1e-12)
    assert (abs(both) > 0).all()
    scores = dict(heedful.explain(model, f"{one} x {two}", "leave-one-out", target=1).top(3))
    assert scores == pytest.approx({one: first[0, 1], two: second[0, 1], "x": 0}, abs=1e-12)


def test_trust_knows_the_gold_words_and_recall_beats_the_random_control():
    model = heedful.few_words(REVIEWS)
    report = heedful.trust(model, REVIEWS, "leave-one-out", ["gold-recall"], n=12, unit="type", k=3, progress=None)
    values = {
        name: [d.values[name]["gold-recall"] for d in report.documents if d.values]
        for name in ("leave-one-out", "random")
    }
    assert np.mean(values["leave-one-out"]) > 0.9 > 0.5 > np.mean(values["random"])
    for document in report.documents:
        if document.values:
            gold = [unit in model.gold for unit in document.units]
            top = np.argsort(-np.abs(document.scores["leave-one-out"]), kind="stable")[:3]
            expected = sum(gold[i] for i in top) / sum(gold)
            assert document.values["leave-one-out"]["gold-recall"] == pytest.approx(expected)


def test_it_is_loaded_by_name(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\n" + "".join(f"{t.replace(',', ' ')},{y}\n" for t, y in REVIEWS), encoding="utf-8")
    model = heedful.load(f"few-words:{path}")
    assert model.gold == heedful.few_words([(t.replace(",", " "), y) for t, y in REVIEWS]).gold
    assert "logistic regression on 10 words" in model.description


@pytest.mark.parametrize(
    ("data", "n", "sentence"),
    [
        (REVIEWS, 0, "1 to 1,000 words"),
        ([("a text", 1), ("another", 1)], 5, "two classes; the given texts has 1"),
        ([("a", 0), ("a", 1)], 5, "two classes|No word"),
    ],
)
def test_what_cannot_be_fitted_is_refused(data, n, sentence):
    with pytest.raises(BadInput, match=sentence):
        heedful.few_words(data, n)
