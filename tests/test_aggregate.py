import numpy as np

from heedful.aggregate import sum_to, unit_scores


def test_parts_are_summed_and_special_tokens_left_out():
    assert sum_to(np.array([-1, 0, 1, 0]), 3, np.array([9.0, 1.0, 2.0, 3.0])).tolist() == [4.0, 2.0, 0.0]


def test_what_words_special_tokens_and_padding_receive_is_everything(tiny):
    document = tiny.encode("good film good")
    scores = np.random.default_rng(0).random(16)
    words, apart = unit_scores(document, "type", scores)
    assert words.tolist() == [scores[1] + scores[3], scores[2]]
    assert apart == {"[cls]": scores[0], "padding": scores[4:].sum()}
