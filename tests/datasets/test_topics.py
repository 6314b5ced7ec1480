"""Documents of ten topics: how they are drawn, and that nothing predicts the left-out word better than `best`."""

import numpy as np
import pytest

from heedful.datasets.topics import Topics
from heedful.errors import BadInput


def topic_of():
    return {word: topic for topic, words in enumerate(Topics().words) for word in words}


def test_topics_share_no_word_and_each_word_is_one_word_of_a_model():
    from heedful.models.vocabulary import split_plain

    words = [word for row in Topics().words for word in row]
    assert len(set(words)) == 100
    assert {len(row) for row in Topics().words} == {10}
    assert split_plain(" ".join(words)) == words


def test_splits_have_their_sizes_are_the_same_every_time_and_share_no_text():
    splits = {split: Topics().examples(split) for split in ("train", "validation", "test")}
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 4_000, "validation": 1_000, "test": 1_000}
    assert Topics().examples("test") == splits["test"]
    assert Topics(text_seed=1).examples("test") != splits["test"]
    assert len({example.text for rows in splits.values() for example in rows}) > 5_990
    assert {len(example.text.split()) for example in splits["train"]} == {60}


@pytest.mark.parametrize("concentration", [0.1, 2.0])
def test_shares_of_topics_in_a_text_have_the_moments_of_dirichlet_multinomial_draws(concentration):
    topics = topic_of()
    rows = [[topics[word] for word in e.text.split()] for e in Topics(concentration=concentration).examples("train")]
    shares = np.array([np.bincount(row, minlength=10) for row in rows]) / 60
    assert shares.mean(axis=0) == pytest.approx(0.1, abs=0.02)
    # Var(n_k / n) = p (1 − p) (n + a) / (n (1 + a)) with a = K α.
    a = 10 * concentration
    assert shares.var(axis=0).mean() == pytest.approx(0.09 * (60 + a) / (60 * (1 + a)), rel=0.05)


def test_the_best_probabilities_are_those_of_a_posterior_that_is_drawn():
    data, topics = Topics(length=6, concentration=0.5), topic_of()
    text = data.examples("test")[0].text
    counts = np.bincount([topics[word] for word in text.split()], minlength=10)
    # Shares drawn before the text is read, weighted by how probable they make it.
    shares = np.random.default_rng(0).dirichlet(np.full(10, 0.5), 400_000)
    weights = np.prod(shares**counts, axis=1)
    np.testing.assert_allclose(data.best([text])[0], weights @ shares / weights.sum(), atol=0.02)


def test_the_best_probabilities_are_calibrated_on_the_labels():
    data = Topics()
    examples = [*data.examples("train")]
    best = data.best([example.text for example in examples])
    right = best.argmax(axis=1) == [example.label for example in examples]
    assert right.mean() == pytest.approx(best.max(axis=1).mean(), abs=4 * np.sqrt(0.25 / len(examples)))
    sure = best.max(axis=1) > 0.9
    assert right[sure].mean() == pytest.approx(best[sure].max(axis=1).mean(), abs=0.03)


def test_settings_that_draw_nothing_are_refused():
    for settings in ({"length": 0}, {"concentration": 0.0}, {"text_seed": -1}):
        with pytest.raises(BadInput, match="Topics needs length ≥ 1"):
            Topics(**settings)
