from html import unescape

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.evaluation.choose import choose_members
from heedful.evaluation.sample import draw
from heedful.generation.as_model import continuation, written_text
from heedful.render.trust_page import trust_page
from tests.families import build

PROMPTS = [
    "the film was good and",
    "a bad story , but",
    "not a dull actor",
    "the plot was very",
    "good film , bad story",
]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_value_is_the_log_probability_of_what_the_network_writes(family):
    model = build(family)
    written = continuation(model, 6)
    ids = model.encode(PROMPTS[0]).ids
    document = written.encode(PROMPTS[0])
    output = document.ids[len(ids) :]
    with torch.no_grad():
        rows = model.network(torch.from_numpy(document.ids)[None]).logits[0].log_softmax(-1)
        greedy = model.network.generate(torch.from_numpy(ids)[None], max_new_tokens=6, do_sample=False)[0, len(ids) :]
    assert output.tolist() == [number for number in greedy.tolist() if number not in model.end_ids]
    expected = sum(rows[len(ids) - 1 + place, number].item() for place, number in enumerate(output))
    assert written([PROMPTS[0]]) == pytest.approx(np.array([[expected]]), abs=1e-9)
    assert written.encode(PROMPTS[0]) is document
    assert PROMPTS[0] + written_text(document) == document.text


def test_a_model_that_is_changed_for_a_while_writes_anew():
    base = build("gpt2")
    written = continuation(base, 4)
    document, fingerprint = written.encode(PROMPTS[0]), base.fingerprint
    base.fingerprint = "changed"
    try:
        assert written.encode(PROMPTS[0]) is not document
    finally:
        base.fingerprint = fingerprint
    assert written.encode(PROMPTS[0]) is document


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_a_pair_is_a_prompt_and_a_given_output_and_the_units_are_those_of_the_prompt(family):
    model = build(family)
    written = continuation(model)
    e = heedful.explain(written, heedful.Pair(PROMPTS[0], " a good plot"), "leave-one-out")
    assert e.units == tuple(PROMPTS[0].split())
    assert str(e.target) == "the log-probability of the output"
    other = heedful.explain(written, heedful.Pair(PROMPTS[0], " a dull plot"), "leave-one-out")
    assert e.output != other.output


@pytest.mark.parametrize("family", ["gpt2", "t5", "bart"])
def test_outputs_of_unequal_length_have_the_same_values_in_one_batch(family):
    written = continuation(build(family))
    texts = [heedful.Pair(p, o) for p, o in zip(PROMPTS, (" good", " a very dull plot .", " bad film"), strict=False)]
    assert written(texts) == pytest.approx(np.concatenate([written([text]) for text in texts]), abs=1e-9)


def test_the_bundled_writer_is_explained():
    written = continuation(heedful.load("writer"), 4)
    e = heedful.explain(written, "This film was a", "leave-one-out")
    assert e.units == ("This", "film", "was", "a")
    assert e.output == pytest.approx(float(written(["This film was a"])[0, 0]), abs=1e-4)
    assert np.isfinite(e.scores).all()


def test_the_context_s_passages_are_units_too():
    written = continuation(build("gpt2"), 3, context=["a good film", "a bad plot"])
    e = heedful.explain(written, "was it good", "leave-one-out", unit="passage")
    assert e.units == ("a good film", "a bad plot")


def test_a_report_on_what_a_model_writes_has_its_own_metrics_and_no_labels(tmp_path):
    written = continuation(build("gpt2"), 4)
    sample = draw(PROMPTS, None, "test", 0)
    _, metrics = choose_members(written, ["random"], None, False, sample, {})
    own = {"top-drop", "linear-datamodelling"}
    usual = {metric.name for metric in choose_members(build("gpt2"), ["random"], None, False, sample, {})[1]}
    assert {metric.name for metric in metrics} == usual | own
    assert not usual & own
    report = heedful.trust(
        written, [(text, 0) for text in PROMPTS], ["leave-one-out", "gradient-x-input"], progress=None, out=tmp_path
    )
    assert report.methods == ("leave-one-out", "gradient-x-input", "random")
    assert "find the sources of the output" in [verdict.use for verdict in report.verdicts]
    assert report.accuracy is None
    assert any("labels were not used" in note for note in report.notes)
    assert np.isfinite(report.means).all()
    assert [document.text for document in report.documents] == PROMPTS
    assert all(document.predicted for document in report.documents)
    page = unescape(trust_page(report))
    assert "explains the log-probability of the output" in page
    for wrong in ("Classes:", "predicted", "scale logit", "the probability is so close"):
        assert wrong not in page


def test_a_prompt_that_cannot_be_continued_is_skipped_with_the_reason():
    texts = [heedful.Pair("a film", " "), "the film was good", "a dull plot", heedful.Pair("a good", " film")]
    report = heedful.trust(continuation(build("gpt2"), 3), texts, ["leave-one-out"], ["top-drop"], progress=None)
    assert len(report.documents) == 3
    assert report.skipped == [
        ("", "", "The output is empty; give some text, or leave it out and the model writes one.", 1)
    ]


def test_what_cannot_be_explained_is_refused_in_a_sentence(tiny):
    with pytest.raises(Unsupported, match="does not write text"):
        continuation(tiny)
    written = continuation(build("gpt2"))
    for text in (3, ["a", "b"]):
        with pytest.raises(BadInput, match="A text is a prompt, or a Pair"):
            written.encode(text)
    with pytest.raises(BadInput, match="max_new must be a whole number"):
        continuation(build("gpt2"), 0).encode("a film")
