import inspect

import numpy as np
import pandas as pd
import pytest
import torch

import heedful
from heedful.errors import BadInput, HeedfulError, UnknownName, Unsupported
from heedful.family import setting_types
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
    assert set(heedful.compare(model, "good film", "all").skipped) >= {"gradient-mean", "attention-max", "lime-theorem"}


def test_a_string_is_not_a_list_of_texts(tiny):
    with pytest.raises(HeedfulError, match="takes a list of texts"):
        tiny("good film")


def test_a_list_in_gives_a_sequence_out_and_progress_for_every_text(tiny):
    seen = []
    result = heedful.explain(
        tiny, ["good film"] * 150, "attention-mean", progress=lambda done, of: seen.append((done, of))
    )
    assert len(result) == 150
    assert seen == [(n, 150) for n in range(1, 151)]
    assert len(heedful.explain(tiny, [], "attention-mean")) == 0
    assert np.array_equal(result[0].scores, result[149].scores)


FRAME = pd.DataFrame(
    {"comment": ["the film was good", None, "a dull plot", "bright"], "toxic": [1.0, 0.0, None, 2.0]},
    index=list("abcd"),
)


@pytest.mark.parametrize("method", ["lime", "attention-mean", "integrated-gradients"])
def test_many_texts_equal_each_alone(tiny, method):
    result = heedful.explain(tiny, FRAME, method, target=[1, None, 0, 2])
    assert result.ids == ("a", "b", "c", "d")
    assert result.labels == (1, 0, None, 2)
    for place, target in ((0, 1), (2, 0)):
        text = FRAME["comment"].iloc[place]
        alone = heedful.explain(tiny, text, method, target=target)
        assert result[place].as_dict() == alone.as_dict()
        assert result.predicted[place] == int(tiny([text])[0].argmax())
    assert result.refusals["b"] == "The text contains no words; give at least one."
    assert result[1].refused
    assert ("d" in result.refusals) == (method == "lime")


def test_the_passes_of_a_batch_are_those_of_its_texts(tiny, monkeypatch):
    calls = []
    logits = type(tiny).logits
    monkeypatch.setattr(
        type(tiny), "logits", lambda self, documents: calls.append(len(documents)) or logits(self, documents)
    )
    heedful.explain(tiny, ["good film", "bad film", "a plot"], "attention-mean")
    assert sum(calls) <= 3


def test_a_text_that_makes_the_method_fail_loses_no_other(tiny, monkeypatch):
    kind = heedful.methods()["attention-mean"]
    explain_batch = kind.explain_batch

    def fails(self, question):
        if any("dull" in document.text for document in question.documents):
            raise RuntimeError("a bug in the model")
        return explain_batch(self, question)

    before = heedful.explain(tiny, ["good film", "a bad plot"], "attention-mean")
    monkeypatch.setattr(kind, "explain_batch", fails)
    result = heedful.explain(tiny, ["good film", "dull film", "a bad plot"], "attention-mean")
    assert result.refusals == {"1": "RuntimeError: a bug in the model"}
    assert [item.as_dict() for item in (result[0], result[2])] == [item.as_dict() for item in before]
    with pytest.raises(BadInput, match="Text '1' of 3 cannot be explained: RuntimeError: a bug"):
        heedful.explain(tiny, ["good film", "dull film", "a bad plot"], "attention-mean", errors="raise")
    with pytest.raises(RuntimeError, match="a bug in the model"):
        heedful.explain(tiny, ["dull film", "very dull"], "attention-mean")


def test_an_error_of_all_texts_is_an_error_at_once(tiny):
    texts = ["good film", "bad film"]
    with pytest.raises(UnknownName, match="did you mean 'positive'"):
        heedful.explain(tiny, texts, "lime", target="positiv")
    with pytest.raises(BadInput, match="lime needs at least 2 words"):
        heedful.explain(tiny, ["good", "bad"], "lime")
    with pytest.raises(BadInput, match="linear in the model's outputs"):
        heedful.explain(tiny, texts, "lime-theorem", scale="probability", unit="type")
    with pytest.raises(BadInput, match="target has 1 entries for 2 texts"):
        heedful.explain(tiny, texts, "lime", target=[1])
    with pytest.raises(BadInput, match="leave them out for one text"):
        heedful.explain(tiny, "good film", "lime", label="toxic")


@pytest.mark.parametrize("method", ["lime", "attention-mean"])
def test_a_stop_returns_the_texts_that_were_finished(tiny, method):
    def stop(done, of):
        if done == 2:
            raise KeyboardInterrupt

    result = heedful.explain(tiny, ["good film", "bad film", "a dull plot"], method, progress=stop)
    assert len(result) == 2
    assert result.n_texts == 3
    assert "2 of 3" in repr(result)


def test_the_columns_of_a_table_are_no_settings_of_a_method():
    names = set(inspect.signature(heedful.explain).parameters) - {"settings"}
    assert all(not names & setting_types(kind).keys() for kind in heedful.methods().values())


def test_a_file_is_read_where_a_string_names_one(tiny, tmp_path, monkeypatch):
    FRAME.to_csv(tmp_path / "c.csv", index_label="id")
    monkeypatch.chdir(tmp_path)
    result = heedful.explain(tiny, "c.csv", "attention-mean", text="comment")
    assert result.ids == ("a", "b", "c", "d")
    assert result.labels == (1, 0, None, 2)


def test_options_of_the_command_and_lists_of_methods_say_what_to_write(tiny):
    with pytest.raises(BadInput, match=r"in Python write label='is_toxic'"):
        heedful.explain(tiny, ["good film"], "lime", label_column="is_toxic")
    with pytest.raises(BadInput, match="compare takes several"):
        heedful.explain(tiny, "good film", "lime,leave-one-out")
