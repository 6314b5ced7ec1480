"""The diagnostic: on the paper's model it is the exact account; its numbers are slopes that finite steps confirm."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.evaluation.disagreement import explain_disagreement
from heedful.evaluation.disagreement.accounts import total
from heedful.evaluation.disagreement.measured import measured_evidence
from heedful.models.attention_hook import still
from heedful.models.budget import Budget
from heedful.models.question import ask
from heedful.models.recording import record
from heedful.models.transformer import Transformer
from tests.conftest import tiny_model
from tests.evaluation.disagreement.planted import asked
from tests.families import TEXTS, build, texts_for

NAMES = ["attention-mean", "gradient-x-input", "leave-one-out"]
EVERY = ("replace", "mask", "delete")
FAMILIES = ["bert", "roberta", "gpt2", "llama", "t5", "vit", "transformer", "torch"]


@pytest.mark.parametrize("seed", range(3))
def test_the_papers_model_as_a_transformer_gets_the_exact_numbers_and_causes(seed):
    single = tiny_model(seed)
    text = "good film , not dull ! a very bad plot"
    exact = explain_disagreement(*asked(single, text, NAMES), EVERY)
    deep = explain_disagreement(*asked(Transformer.of(single), text, NAMES), EVERY)
    assert (exact.exact, deep.exact) == (True, False)
    for name in ("attention", "gross", "contribution", "centred", "scatter"):
        result, wanted = (getattr(disagreement.evidence.passed, name) for disagreement in (deep, exact))
        assert np.allclose(result, wanted, atol=1e-9)
    for absence in EVERY:
        assert np.allclose(deep.evidence.losses[absence], exact.evidence.losses[absence], atol=1e-9)
    # No word of one layer has a part through the queries.
    assert np.abs(deep.evidence.query).max() < 1e-9
    of_words = [{(c.name, c.unit) for c in disagreement.causes if c.unit is not None} for disagreement in (exact, deep)]
    assert {result for result in of_words[0] if result[0] != "attention path"} == of_words[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_terms_sum_to_the_scores_in_every_family(family):
    model = build(family)
    for text in texts_for(family)[:2]:
        question, explanations = asked(model, text, NAMES, None, unit="patch" if family == "vit" else "word")
        disagreement = explain_disagreement(question, explanations)
        assert not disagreement.exact
        for explanation in explanations[1:]:
            assert np.abs(total(disagreement.accounts[explanation.method]) - explanation.scores).max() < 1e-9
        assert np.allclose(
            total(disagreement.accounts["attention-mean"]) * explanations[0].scores.sum(),
            explanations[0].scores * disagreement.evidence.passed.gross.sum(),
        )


def stepped(model, document, queries, target, embeddings, change):
    """The target with queries as they were, at some embeddings, every map changed before its use."""
    heard = iter(queries)

    def listen(call):
        return change(replace(call, q=next(heard)).maps(), call.kind).to(call.v) @ call.v

    with torch.no_grad(), still(model.network), model.listening(listen):
        return float(target.of(model.forward(embeddings, [document]).numpy())[0])


@pytest.mark.parametrize("family", ["bert", "gpt2", "torch", "transformer"])
def test_the_contribution_is_the_slope_when_a_token_is_looked_at_more_in_every_layer(family):
    model, h = build(family), 1e-5
    question = ask(model, [TEXTS[0]])
    document, target = question.documents[0], question.targets[0]
    queries = [call.q for call in record(model, [document]).calls]
    contribution = measured_evidence(question, "token", [], ()).passed.contribution
    embeddings = model.embed([document]).detach()

    def scaled(token, factor):
        def change(maps, kind):
            maps = maps.clone()
            maps[..., token] *= factor
            return maps

        return stepped(model, document, queries, target, embeddings, change)

    places = np.flatnonzero(document.words >= 0)
    slopes = [(scaled(token, 1 + h) - scaled(token, 1 - h)) / (2 * h) for token in places]
    assert np.allclose(contribution, slopes, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2", "transformer"])
def test_the_query_path_is_what_the_gradient_loses_when_queries_stand_still(family):
    model, h = build(family), 1e-5
    question = ask(model, [TEXTS[0]])
    document, target = question.documents[0], question.targets[0]
    queries = [call.q for call in record(model, [document]).calls]
    embeddings = model.embed([document]).detach()
    query_part = measured_evidence(question, "token", [], ()).query
    for place, token in enumerate(np.flatnonzero(document.words >= 0)):
        ends = []
        for factor in (1 + h, 1 - h):
            moved = embeddings.clone()
            moved[:, token] *= factor
            with torch.no_grad(), still(model.network):
                free = float(target.of(model.forward(moved, [document]).numpy())[0])
            ends.append(free - stepped(model, document, queries, target, moved, lambda maps, kind: maps))
        assert query_part[place] == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=1e-5, rel=1e-5)


def test_losses_come_from_leave_one_out_and_other_absences_are_measured_only_on_request(monkeypatch):
    model = build("bert")
    question, explanations = asked(model, TEXTS[1], NAMES, None)
    calls = []
    masked = type(model).masked
    monkeypatch.setattr(type(model), "masked", lambda self, *given: calls.append(given[3]) or masked(self, *given))
    disagreement = explain_disagreement(question, explanations)
    assert calls == []
    assert disagreement.evidence.losses["replace"] is explanations[2].scores
    assert "one way only (replace)" in disagreement.notes[0]
    more = explain_disagreement(question, explanations, ("replace", "delete"))
    assert set(calls) == {"delete"}
    again = asked(model, TEXTS[1], ["leave-one-out"], None, absence="delete")[1][0].scores
    assert np.allclose(more.evidence.losses["delete"], again, atol=1e-12)
    assert {cause.name for cause in more.causes} >= {"masking law"}


def test_notes_say_what_is_unknown_for_a_function_of_texts():
    model = heedful.wrap(lambda texts: [[t.count("good") - t.count("bad") * t.count("very"), 0.0] for t in texts])
    question, explanations = asked(model, "good film , very bad , very good", ["leave-one-out", "shapley-sampled"], 0)
    disagreement = explain_disagreement(question, explanations)
    assert disagreement.evidence.passed is None
    assert disagreement.evidence.probability is None
    assert "is not available" in disagreement.notes[0]
    for explanation in explanations:
        assert np.abs(total(disagreement.accounts[explanation.method]) - explanation.scores).max() < 1e-9
    assert {cause.name for cause in disagreement.causes} <= {"company"}
    untested = explain_disagreement(question, asked(model, "good film , very bad , very good", ["random"], 0)[1])
    assert "no diagnosis was tested" in untested.notes[1]


def test_a_note_says_that_attention_cannot_be_recorded():
    with warnings.catch_warnings():
        # DeBERTa's file compiles a function as it is imported, which torch says is out of date.
        warnings.simplefilter("ignore")
        model = build("deberta")
    question, explanations = asked(model, TEXTS[0], ["gradient-x-input", "leave-one-out"], None)
    disagreement = explain_disagreement(question, explanations)
    assert "is not available" in disagreement.notes[0]
    assert set(disagreement.accounts) == {"leave-one-out"}


def test_a_text_too_large_for_the_memory_given_is_not_sent_through_for_a_diagnostic():
    question, explanations = asked(build("bert"), TEXTS[0], NAMES, None)
    small = replace(question, budget=Budget(memory=10))
    assert explain_disagreement(question, explanations).evidence.passed is not None
    assert explain_disagreement(small, explanations).evidence.passed is None
