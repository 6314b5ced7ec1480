from heedful.experiments.reviews import _BAD, _GOOD, FIGURE_4, marked_reviews, reviews, synthetic_reviews
from heedful.models.vocabulary import split_plain


def test_the_review_of_figure_4_has_the_caption_s_sizes(paper):
    words = split_plain(FIGURE_4)
    assert (len(words), len(set(words))) == (99, 71)
    assert paper([FIGURE_4])[0].argmax() == 0


def test_synthetic_reviews_are_balanced_and_lean_to_their_side():
    made = synthetic_reviews(200, seed=3)
    assert sum(review.label for review in made) == 100
    lean = 0
    for review in made:
        words = split_plain(review.text)
        good, bad = (sum(word in side for word in words) for side in (_GOOD, _BAD))
        assert good + bad > 0
        lean += (good > bad) == review.label if good != bad else 0
    assert lean > 150


def test_the_same_seed_makes_the_same_reviews():
    assert synthetic_reviews(20, seed=1) == synthetic_reviews(20, seed=1) != synthetic_reviews(20, seed=2)
    assert synthetic_reviews(20, seed=1)[:10] == synthetic_reviews(10, seed=1)


def test_the_words_of_the_label_s_side_are_marked():
    for example, review in zip(marked_reviews(20, seed=1), synthetic_reviews(20, seed=1), strict=True):
        assert (example.text, example.label) == review
        side = (_BAD, _GOOD)[example.label]
        marked = [example.text[start:end] for start, end in example.rationale]
        assert marked == [word for word in split_plain(example.text) if word in side] != []


def test_without_data_reviews_are_synthetic(monkeypatch):
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    assert reviews(6, seed=1) == ("synthetic", synthetic_reviews(6, seed=1))


def test_with_data_reviews_are_real_and_distinct_draws(data_folder):
    origin, drawn = reviews(50, seed=1)
    assert origin == "IMDB"
    assert len({review.text for review in drawn}) >= 49
    assert reviews(50, seed=1)[1] == drawn
