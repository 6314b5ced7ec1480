import numpy as np
import pytest

from heedful.evaluation.disagreement import explain_disagreement
from tests.evaluation.disagreement.planted import FAR, asked, planted

REVIEW = "this film is a waste of time . the plot makes no sense , but i liked the music ."
ONE = {"good": ([0.0], [1.0]), "fine": ([0.0], [0.8])}


def found(model, text, **settings):
    """Which causes were found, and for which words."""
    causes = explain_disagreement(*asked(model, text, **settings)).causes
    return {(cause.name, cause.word) for cause in causes}


def words_with(name, model, text, **settings):
    return {word for cause, word in found(model, text, **settings) if cause == name}


def test_evidence_against_the_target_loses_its_sign_in_attention():
    model = planted({**ONE, "bad": ([1.0], [-1.0])}, T_max=4)
    assert words_with("sign lost", model, "good fine bad") == {"bad"}
    even = planted({**ONE, "bad": ([0.0], [-1.0])}, T_max=4)
    assert words_with("sign lost", even, "good fine bad") == {"bad"}
    assert words_with("sign lost", even, "good fine bad", target="negative") == {"good", "fine"}
    kind = planted({**ONE, "bad": ([1.0], [1.0])}, T_max=4)
    assert words_with("sign lost", kind, "good fine bad") == set()


def test_a_word_with_much_attention_and_no_value_is_killed():
    model = planted({**ONE, "the": ([1.0], [0.01])}, T_max=4)
    assert words_with("value killed", model, "good fine the") == {"the"}
    loud = planted({**ONE, "the": ([1.0], [0.5])}, T_max=4)
    assert words_with("value killed", loud, "good fine the") == set()
    unseen = planted({**ONE, "the": ([-3.0], [0.01])}, T_max=4)
    assert words_with("value killed", unseen, "good fine the") == set()


def test_heads_that_disagree_about_a_word_cancel():
    two = {"good": ([0.0, 0.0], [1.0, 1.0]), "fine": ([0.0, 0.0], [0.8, 0.8])}
    assert words_with("heads cancel", planted({**two, "odd": ([0.0, 0.0], [2.0, -1.9])}, 4), "good fine odd") == {"odd"}
    assert words_with("heads cancel", planted({**two, "odd": ([0.0, 0.0], [2.0, 1.9])}, 4), "good fine odd") == set()


def test_a_value_like_that_of_the_rest_is_typical():
    words = {"high": ([0.0], [1.0]), "low": ([0.0], [0.0])}
    model = planted({**words, "middle": ([1.0], [0.5])}, T_max=4)
    assert words_with("value typical", model, "high low middle") == {"middle"}
    _, (left_out,) = asked(model, "high low middle", ["leave-one-out"], absence="mask")
    assert abs(left_out.scores[2]) < 1e-9
    unlike = planted({**words, "middle": ([1.0], [0.9])}, T_max=4)
    assert words_with("value typical", unlike, "high low middle") == set()


def test_a_word_that_takes_all_attention_is_not_typical_for_being_the_average():
    model = planted({"high": ([9.0], [1.0]), "low": ([0.0], [-1.0]), "none": ([0.0], [0.0])}, T_max=4)
    assert words_with("value typical", model, "high low none") == set()


def test_a_replacement_with_the_same_effect_hides_the_word():
    words = {**ONE, "bad": ([1.0], [-1.0])}
    same = planted(words, T_max=4, replacement=([1.0], [-1.0]))
    causes = explain_disagreement(*asked(same, "good fine bad")).causes
    matching = [cause for cause in causes if cause.name == "replacement not neutral" and cause.word == "bad"]
    assert len(matching) == 1
    assert "by almost 0" in matching[0].sentence
    assert abs(matching[0].numbers["replaced"]) < 1e-9 < 0.5 < abs(matching[0].numbers["masked"])
    assert words_with("replacement not neutral", planted(words, T_max=4), "good fine bad") == set()


def test_replacing_and_deleting_differ_only_where_positions_count(paper):
    model = planted({**ONE, "bad": ([1.0], [-1.0])}, T_max=4, replacement=([0.5], [0.3]))
    evidence = explain_disagreement(*asked(model, "good fine bad")).evidence
    assert np.allclose(evidence.losses["replace"], evidence.losses["delete"], atol=1e-12)
    assert words_with("masking law", model, "good fine bad") == set()
    replaced, deleted = (
        asked(paper, REVIEW, ["leave-one-out"], absence=absence)[1][0].scores for absence in ("replace", "delete")
    )
    causes = [cause for cause in explain_disagreement(*asked(paper, REVIEW)).causes if cause.name == "masking law"]
    assert causes
    for cause in causes:
        assert cause.numbers["replaced"] == pytest.approx(replaced[cause.unit], abs=1e-9)
        assert cause.numbers["deleted"] == pytest.approx(deleted[cause.unit], abs=1e-9)


def test_the_query_path_is_found_at_cls_where_its_embedding_makes_the_query():
    model = planted({**ONE, "bad": ([1.0], [-1.0])}, T_max=4)
    assert ("query path", "[cls]") in found(model, "good fine bad")
    with_bias = planted({**ONE, "bad": ([1.0], [-1.0])}, T_max=4)
    # The same query, but from a bias that no embedding feeds.
    with_bias.network.b_q.data.copy_(with_bias.network.W_q.data[:, :, 2])
    with_bias.network.W_q.data.zero_()
    assert np.allclose(with_bias(["good fine bad"]), model(["good fine bad"]))
    assert ("query path", "[cls]") not in found(with_bias, "good fine bad")


def test_the_attention_path_dominates_the_gradient_where_the_value_is_zero():
    words = {"good": ([0.0], [1.0]), "dull": ([2.0], [0.0])}
    assert words_with("attention path", planted(words, T_max=3), "good dull") == {"dull"}
    # With scores of zero there is no way from the embedding to the score.
    flat = {word: ([0.0], values) for word, (_, values) in words.items()}
    assert words_with("attention path", planted(flat, T_max=3), "good dull") == set()


def test_company_is_found_where_others_hide_a_word():
    # Two words share what one would carry alone, so leaving out one of them shows little.
    twins = {"good": ([4.0], [1.0]), "great": ([4.0], [1.0]), "plain": ([0.0], [0.0])}
    model = planted(twins, T_max=4, cls=([0.0], [0.0]))
    assert {"good", "great"} <= words_with("company", model, "good great plain")
    alone = planted(twins, T_max=4, cls=([0.0], [0.0]))
    assert "good" not in words_with("company", alone, "good plain plain")


def test_a_probability_near_its_end_is_saturated():
    sure = planted({"good": ([0.0], [9.0]), "fine": ([0.0], [7.0]), "bad": ([0.0], [-2.0])}, T_max=4)
    assert ("saturation", "") in found(sure, "good fine bad")
    unsure = planted({**ONE, "bad": ([0.0], [-1.0])}, T_max=4)
    assert ("saturation", "") not in found(unsure, "good fine bad")
    bent = found(sure, "good fine bad", scale="log-probability", names=["attention-mean", "leave-one-out"])
    assert ("saturation", "") in bent
    assert {word for cause, word in bent if cause == "saturation"} - {""} != set()


@pytest.mark.parametrize("text", ["good", "good good good"])
def test_texts_without_contrast_have_no_cause_that_needs_one(text):
    model = planted({"good": ([FAR / 10], [1.0])}, T_max=4)
    names = {name for name, _ in found(model, text, names=["attention-mean", "leave-one-out"])}
    assert names <= {"query path", "value typical"}


def test_sentences_contain_the_numbers(tiny):
    for cause in explain_disagreement(*asked(tiny, "good film , not dull ! a very bad plot")).causes:
        assert cause.sentence.endswith(".")
        assert cause.size >= 0
        assert all(np.isfinite(value) for value in cause.numbers.values())
