from dataclasses import replace
from time import sleep

import numpy as np
import pytest

import heedful
import heedful.evaluation.comparison as comparison_module
from heedful.document.note import Note
from heedful.errors import BadInput, UnknownName
from heedful.evaluation.comparison import notes_of
from heedful.explainers import configure
from heedful.explainers.run import run_explainer
from heedful.models.question import ask
from tests.families import TEXTS, build

TEXT = "good film , not dull !"
EVERY = [name for name, kind in heedful.methods().items() if not kind.opt_in]


def test_one_method_for_each_idea_is_there_by_default_and_every_method_with_all(tiny):
    exact = ["attention-mean", "gradient-x-input", "integrated-gradients", "lime-exact", "shapley-exact"]
    assert [e.method for e in heedful.compare(tiny, TEXT).explanations] == [*exact, "leave-one-out"]
    comparison = heedful.compare(tiny, TEXT, "all", n_samples=100)
    assert [e.method for e in comparison.explanations] == EVERY
    assert comparison.skipped == {}
    assert comparison["lime"].facts["samples"] == 100


def test_a_model_without_attention_says_why_there_is_none():
    function = heedful.wrap(lambda texts: [[len(text), 1.5] for text in texts])
    comparison = heedful.compare(function, TEXT)
    assert [e.method for e in comparison.explanations] == ["lime", "shapley-sampled", "leave-one-out"]
    assert set(comparison.skipped) == {"attention-mean", "gradient-x-input", "integrated-gradients"}


def test_a_note_says_that_compare_draws_fewer_samples():
    function = heedful.wrap(lambda texts: [[float(len(text)), 1.5] for text in texts])
    long = "a b c d e f g h i j k l"
    (lime, shapley) = heedful.compare(function, long, ["lime", "shapley-sampled"]).explanations
    assert [sum(note.kind == "limited" for note in e.notes) for e in (lime, shapley)] == [1, 1]
    (lime,) = heedful.compare(function, long, ["lime"], n_samples=600).explanations
    assert not any(note.kind == "limited" for note in lime.notes)
    # All 64 masks were evaluated, so nothing was lowered.
    assert not any(note.kind == "limited" for note in heedful.compare(function, "a b c d e f", ["lime"]).notes)


def test_methods_share_one_backward_pass(tiny, monkeypatch):
    calls = []
    embed = type(tiny).embed
    monkeypatch.setattr(type(tiny), "embed", lambda self, documents: calls.append(1) or embed(self, documents))
    heedful.compare(tiny, TEXT, ["gradient-mean", "gradient-l1", "gradient-l2", "gradient-x-input"])
    # One embedding for the four gradients, one for the attention maps of the report.
    assert len(calls) == 2


def test_shared_work_is_counted_for_each_method(tiny):
    question = ask(tiny, [TEXT])
    (first,), (second,), (free,) = (
        run_explainer(configure(name, {}), question) for name in ("gradient-mean", "gradient-l1", "random")
    )
    assert min(first.facts["seconds"], second.facts["seconds"]) >= question.seconds["gradients"] > 0
    assert free.facts["seconds"] > 0


def test_a_single_word_skips_lime_with_its_reason_and_shows_the_rest(tiny):
    comparison = heedful.compare(tiny, "good", "all")
    assert comparison.skipped["lime"] == "lime needs at least 2 words; the document has 1."
    methods = ("lime-exact", "lime-limit", "lime", "slalom")
    assert tuple(comparison.skipped) == methods
    assert len(comparison.explanations) == len(EVERY) - 4
    assert comparison.reasons == {"needs at least 2 words; the document has 1.": methods}
    with pytest.raises(BadInput, match="lime needs at least 2 words"):
        comparison["lime"]


def test_a_note_of_a_method_begins_with_its_name_and_one_of_the_document_does_not(tiny):
    explanations = [heedful.explain(tiny, "good film", method) for method in ("random", "attention-mean")]
    random = explanations[0].noted((Note("Nothing of random is certain."),))
    assert notes_of([random, explanations[1]]) == ("random: Nothing of random is certain.",)
    unread = Note("Some words were not read.", "truncated")
    document = replace(random.document, notes=(unread,))
    (read, other) = (replace(random, document=document, notes=(unread,)), explanations[1])
    assert notes_of([read, other]) == ("Some words were not read.",)


@pytest.mark.parametrize("stop_at", ["lime", "random"])
def test_a_stopped_run_says_which_methods_the_user_stopped(tiny, monkeypatch, stop_at):
    def interrupt(explainer, question):
        if explainer.name == stop_at:
            raise KeyboardInterrupt
        return run_explainer(explainer, question)

    monkeypatch.setattr(comparison_module, "run_explainer", interrupt)
    skipped = heedful.compare(tiny, TEXT, ["attention-mean", "lime", "random"], n_samples=100).skipped
    later = {} if stop_at == "random" else {"random": "The user stopped the run before this method started."}
    assert skipped == {stop_at: "The user stopped this method.", **later}


def test_agreement_is_symmetric_with_ones_on_the_diagonal(tiny):
    agreement = heedful.compare(tiny, TEXT, n_samples=100).agreement()
    assert np.allclose(agreement, agreement.T)
    assert np.allclose(np.diag(agreement), 1)


def test_wrong_names_are_refused_at_once(tiny):
    with pytest.raises(UnknownName, match="no method 'lmie'; did you mean 'lime'"):
        heedful.compare(tiny, TEXT, ["lmie"])
    with pytest.raises(UnknownName, match="no setting 'n_sample'; did you mean 'n_samples'"):
        heedful.compare(tiny, TEXT, n_sample=3)
    with pytest.raises(BadInput, match="takes 10 to 10,000,000 samples"):
        heedful.compare(tiny, TEXT, ["lime"], n_samples=3)
    with pytest.raises(BadInput, match="No method was named"):
        heedful.compare(tiny, TEXT, [])


def test_no_mask_is_evaluated_twice_and_every_cost_is_that_of_the_method_alone(monkeypatch):
    model, evaluated = build("bert"), []
    masked = type(model).masked

    def counted(self, document, target, keep, *settings):
        evaluated.extend((target, settings[0], row.tobytes()) for row in keep)
        return masked(self, document, target, keep, *settings)

    monkeypatch.setattr(type(model), "masked", counted)
    names = ["leave-one-out", "lime", "shapley-sampled"]
    comparison = heedful.compare(model, TEXTS[0], names)
    assert len(evaluated) == len(set(evaluated)) > 0
    for explanation in comparison.explanations:
        settings = {} if explanation.method == "leave-one-out" else {"n_samples": 500}
        alone = heedful.explain(model, TEXTS[0], explanation.method, **settings)
        assert np.allclose(explanation.scores, alone.scores, rtol=0, atol=1e-9)
        assert explanation.facts.keys() == alone.facts.keys()
        for fact in ("forwards", "masks"):
            assert explanation.facts[fact] == alone.facts[fact]


def test_seconds_include_masks_that_another_method_evaluated(monkeypatch):
    model = build("bert")
    masked = type(model).masked

    def slow(*inputs):
        sleep(0.3)
        return masked(*inputs)

    monkeypatch.setattr(type(model), "masked", slow)
    first, second = heedful.compare(model, TEXTS[0], ["lime", "sobol"], n_samples=500).explanations
    assert min(first.facts["seconds"], second.facts["seconds"]) >= 0.25


def test_a_comparison_is_saved_by_the_ending(tiny, tmp_path):
    comparison = heedful.compare(tiny, "good film", ["attention-mean", "random"])
    comparison.save(tmp_path / "c.html")
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")
