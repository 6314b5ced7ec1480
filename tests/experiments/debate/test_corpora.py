import pytest

from heedful.experiments.debate.corpora import CORPORA, QUICK, ShortReviews, SyntheticReviews, TwoNews
from heedful.models.vocabulary import split_plain


def test_synthetic_reviews_have_both_classes_in_every_split_and_no_text_twice():
    splits = [SyntheticReviews().examples(split) for split in ("train", "validation", "test")]
    for rows in splits:
        assert {row.label for row in rows} == {0, 1}
    texts = [row.text for rows in splits for row in rows]
    assert len(texts) == len({*texts})


@pytest.mark.slow
def test_reviews_are_short_and_a_share_is_part_of_the_training_texts_alone(data_folder):
    rows = ShortReviews().examples("test")
    assert max(len(split_plain(row.text)) for row in rows) == 400
    assert len(ShortReviews(0.25).examples("test")) == len(rows)
    whole, part = ShortReviews().examples("train"), ShortReviews(0.25).examples("train")
    assert len(part) == round(len(whole) / 4)
    assert {row.text for row in part} < {row.text for row in whole}


def test_news_keep_the_labels_of_world_and_business(data_folder):
    from heedful.datasets.ag_news import AgNews

    every = {row.text: AgNews.classes[row.label] for row in AgNews().examples("test")}
    rows = TwoNews().examples("test")
    assert all(every[row.text] == TwoNews.classes[row.label] for row in rows)
    assert len(rows) == 3800


def test_a_text_of_a_corpus_fits_into_its_model():
    for corpus in (QUICK["synthetic"], CORPORA["imdb"]):
        assert corpus.T_max > 1
    assert CORPORA["imdb"].T_max == 401
