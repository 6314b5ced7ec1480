import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, HeedfulError, UnknownName, Unsupported
from tests.conftest import tiny_model


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "contains no words"),
        (" \n<br />;:", "contains no words"),
        ("zzz qqq", "unknown to the model \\('zzz'"),
        ("good\0film", "NUL character at position 4"),
    ],
)
def test_a_text_that_cannot_be_explained_is_one_sentence(tiny, text, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        heedful.explain(tiny, [text], "attention-mean")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["good 😀 film", "göod film e\u0301e", "שלום film עולם", "good\u202efilm film", "film \ud800"]
)
def test_any_script_is_read(tiny, text):
    explanation = heedful.explain(tiny, text, "lime", n_samples=50)
    assert [text[s:e] for s, e in explanation.document.word_spans] == list(explanation.units)


def test_a_hundred_thousand_words_are_truncated_with_a_note(paper):
    explanation = heedful.explain(paper, "a good film " * 33_334, "lime", n_samples=700)
    assert len(explanation.units) == 255
    assert explanation.notes == ("Only the first 255 words were read; the last 99,747 are beyond the model's limit.",)
    assert "Only the first 255 words" in explanation._repr_html_()


def test_names_that_do_not_exist(tiny):
    with pytest.raises(UnknownName, match="no method 'shap'"):
        heedful.explain(tiny, "good film", "shap")
    with pytest.raises(UnknownName, match="no unit 'words'; did you mean 'word'"):
        heedful.explain(tiny, "good film", "lime", unit="words")
    with pytest.raises(UnknownName, match="no class 'great'"):
        heedful.explain(tiny, "good film", "lime", target="great")
    with pytest.raises(UnknownName, match="no setting 'samples'"):
        heedful.explain(tiny, "good film", "lime", samples=3)


def test_output_that_is_not_a_number_is_refused():
    model = tiny_model()
    with torch.no_grad():
        model.network.W_v.fill_(torch.nan)
    with pytest.raises(BadInput, match="not a finite number"):
        heedful.explain(model, "good film", "attention-mean")


def test_a_method_the_model_cannot_support_says_what_is_missing():
    model = tiny_model()
    model.withheld = dict.fromkeys(("gradients", "attention", "layers", "weights", "pooling"), "It is a test.")
    with pytest.raises(Unsupported, match="gradient-mean needs gradients, which this model does not offer"):
        heedful.explain(model, "good film", "gradient-mean")
    assert set(heedful.compare(model, "good film").skipped) >= {"gradient-mean", "attention-max", "lime-theorem"}


def test_a_string_is_not_a_list_of_texts(tiny):
    with pytest.raises(HeedfulError, match="takes a list of texts"):
        tiny("good film")


def test_a_list_in_gives_a_list_out_and_progress(tiny):
    seen = []
    result = heedful.explain(
        tiny, ["good film"] * 150, "attention-mean", progress=lambda done, of: seen.append((done, of))
    )
    assert len(result) == 150
    assert seen == [(128, 150), (150, 150)]
    assert heedful.explain(tiny, [], "attention-mean") == []
    assert np.array_equal(result[0].scores, result[149].scores)
