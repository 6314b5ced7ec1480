from dataclasses import replace

import numpy as np
import pytest

from heedful.errors import Unsupported
from heedful.models.question import MaskValues, ask
from heedful.perturb.answers import Answers
from tests.families import build
from tests.metrics.masked_text import masked_text, value

TEXT = "good film was not bad but very dull"
KEEP = np.random.default_rng(0).random((12, 8)) < 0.5
KEEP[3], KEEP[4] = True, False


def texts(hole):
    return [masked_text(TEXT, set(np.flatnonzero(row).tolist()), hole) for row in KEEP]


@pytest.mark.parametrize(("absence", "hole"), [("replace", "neverseen"), ("delete", None), ("replace:plot", "plot")])
def test_they_are_the_model_s_to_thinned_texts_on_either_scale(tiny, absence, hole):
    logits = tiny(texts(hole))
    for scale in ("logit", "log-probability"):
        answers = Answers(ask(tiny, [TEXT], "positive", scale=scale), "word")
        on_log = logits[:, 1] - np.log(np.exp(logits).sum(axis=1))
        assert np.allclose(answers(KEEP, absence, "logit"), logits[:, 1], atol=1e-12)
        assert np.allclose(answers(KEEP, absence, "log-probability"), on_log, atol=1e-12)
        assert np.array_equal(answers(KEEP, absence), answers(KEEP, absence, scale))


def test_whole_empty_and_one_out_are_those_masks(tiny):
    answers = Answers(ask(tiny, [TEXT], "positive"), "word")
    everything = set(range(8))
    for absence, hole in (("replace", "neverseen"), ("delete", None)):
        assert answers.whole(absence) == pytest.approx(value(tiny, TEXT), abs=1e-12)
        assert answers.empty(absence) == pytest.approx(value(tiny, masked_text(TEXT, (), hole)), abs=1e-12)
        alone = [value(tiny, TEXT) - value(tiny, masked_text(TEXT, everything - {i}, hole)) for i in range(8)]
        assert np.allclose(answers.one_out(absence), alone, atol=1e-12)
    assert np.exp(answers.whole(scale="log-probability")) == pytest.approx(value(tiny, TEXT, "probability"))


def test_a_contrast_stays_one_on_either_scale(tiny):
    answers = Answers(ask(tiny, [TEXT], "positive", against="neutral"), "word")
    logits = tiny(texts("neverseen"))
    for scale in ("logit", "log-probability"):
        assert np.allclose(answers(KEEP, "replace", scale), logits[:, 1] - logits[:, 2], atol=1e-12)


def test_units_are_those_asked_for(tiny):
    answers = Answers(ask(tiny, ["good film , good story"], "positive"), "type")
    assert answers.n_units == 4
    alone = value(tiny, "film , story")
    assert answers(np.array([[False, True, True, True]]), "delete")[0] == pytest.approx(alone, abs=1e-12)


def test_a_keeping_question_is_asked_nothing_twice_and_confuses_no_scales(tiny):
    question = replace(ask(tiny, [TEXT], "positive"), mask_values=MaskValues())
    for _ in range(3):
        answers = Answers(question, "word")
        plain = Answers(ask(tiny, [TEXT], "positive"), "word")
        for absence in ("replace", "delete"):
            for scale in (None, "log-probability"):
                assert np.array_equal(answers(KEEP, absence, scale), plain(KEEP, absence, scale))
    assert question.mask_values.n_evaluated == 4 * len(np.unique(KEEP, axis=0))
    assert question.mask_values.n_requested == 3 * question.mask_values.n_evaluated


def test_a_bert_answers_as_its_texts_are_answered():
    model, text = build("bert"), "the film was not very good"
    answers = Answers(ask(model, [text], "good"), "word")
    keep = np.random.default_rng(1).random((10, 6)) < 0.5
    for absence, hole in (("replace", "[MASK]"), ("delete", None)):
        expected = [value(model, masked_text(text, set(np.flatnonzero(row).tolist()), hole)) for row in keep]
        assert np.allclose(answers(keep, absence), expected, atol=1e-9)


def test_a_word_cannot_be_blurred(tiny):
    with pytest.raises(Unsupported, match="blurred"):
        Answers(ask(tiny, [TEXT], "positive"), "word").whole("blur")
