from dataclasses import replace

import numpy as np
import pytest

from heedful.errors import Unsupported
from heedful.models.question import MaskValues, ask
from heedful.perturb.document_values import DocumentValues
from tests.families import build
from tests.metrics.masked_text import masked_text, value

TEXT = "good film was not bad but very dull"
KEEP = np.random.default_rng(0).random((12, 8)) < 0.5
KEEP[3], KEEP[4] = True, False


def texts(hole):
    return [masked_text(TEXT, set(np.flatnonzero(row).tolist()), hole) for row in KEEP]


@pytest.mark.parametrize(("absence", "hole"), [("replace", "neverseen"), ("delete", None), ("replace:plot", "plot")])
def test_values_equal_the_outputs_for_masked_texts_on_either_scale(tiny, absence, hole):
    logits = tiny(texts(hole))
    for scale in ("logit", "log-probability"):
        values = DocumentValues(ask(tiny, [TEXT], "positive", scale=scale), "word")
        on_log = logits[:, 1] - np.log(np.exp(logits).sum(axis=1))
        assert np.allclose(values(KEEP, absence, "logit"), logits[:, 1], atol=1e-12)
        assert np.allclose(values(KEEP, absence, "log-probability"), on_log, atol=1e-12)
        assert np.array_equal(values(KEEP, absence), values(KEEP, absence, scale))


def test_whole_empty_and_one_out_are_those_masks(tiny):
    values = DocumentValues(ask(tiny, [TEXT], "positive"), "word")
    everything = set(range(8))
    for absence, hole in (("replace", "neverseen"), ("delete", None)):
        assert values.whole(absence) == pytest.approx(value(tiny, TEXT), abs=1e-12)
        assert values.empty(absence) == pytest.approx(value(tiny, masked_text(TEXT, (), hole)), abs=1e-12)
        alone = [value(tiny, TEXT) - value(tiny, masked_text(TEXT, everything - {i}, hole)) for i in range(8)]
        assert np.allclose(values.one_out(absence), alone, atol=1e-12)
    assert np.exp(values.whole(scale="log-probability")) == pytest.approx(value(tiny, TEXT, "probability"))


def test_a_contrast_stays_one_on_either_scale(tiny):
    values = DocumentValues(ask(tiny, [TEXT], "positive", against="neutral"), "word")
    logits = tiny(texts("neverseen"))
    for scale in ("logit", "log-probability"):
        assert np.allclose(values(KEEP, "replace", scale), logits[:, 1] - logits[:, 2], atol=1e-12)


def test_units_are_those_requested(tiny):
    values = DocumentValues(ask(tiny, ["good film , good story"], "positive"), "type")
    assert values.n_units == 4
    alone = value(tiny, "film , story")
    assert values(np.array([[False, True, True, True]]), "delete")[0] == pytest.approx(alone, abs=1e-12)


def test_stored_values_are_reused_and_scales_are_kept_separate(tiny):
    question = replace(ask(tiny, [TEXT], "positive"), mask_values=MaskValues())
    for _ in range(3):
        values = DocumentValues(question, "word")
        plain = DocumentValues(ask(tiny, [TEXT], "positive"), "word")
        for absence in ("replace", "delete"):
            for scale in (None, "log-probability"):
                assert np.array_equal(values(KEEP, absence, scale), plain(KEEP, absence, scale))
    assert question.mask_values.n_evaluated == 4 * len(np.unique(KEEP, axis=0))
    assert question.mask_values.n_requested == 3 * question.mask_values.n_evaluated


def test_values_of_a_bert_equal_its_outputs_for_masked_texts():
    model, text = build("bert"), "the film was not very good"
    values = DocumentValues(ask(model, [text], "good"), "word")
    keep = np.random.default_rng(1).random((10, 6)) < 0.5
    for absence, hole in (("replace", "[MASK]"), ("delete", None)):
        expected = [value(model, masked_text(text, set(np.flatnonzero(row).tolist()), hole)) for row in keep]
        assert np.allclose(values(keep, absence), expected, atol=1e-9)


def test_a_word_cannot_be_blurred(tiny):
    with pytest.raises(Unsupported, match="blurred"):
        DocumentValues(ask(tiny, [TEXT], "positive"), "word").whole("blur")
