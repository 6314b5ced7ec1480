"""Differences of two texts, distributions, and limits; the single explanations are in test_continuation."""

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from tests.families import build

PROMPT, PASSAGES = "was the film good ?", ["the film was dull .", "a bad story"]
METHODS = ["leave-one-out", "gradient-x-input"]


def next_token_log_p(model, document, n_written):
    """The log-probabilities of every token at the positions before the output, by the network itself."""
    with torch.no_grad():
        logits = model.network(torch.tensor(document.ids)[None]).logits[0]
    return logits[-n_written - 1 : -1].log_softmax(dim=-1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_another_output_is_subtracted(family, method):
    model = build(family)
    both = heedful.attribute(model, PROMPT, " bad film", method, against=" good film", earlier="fixed")
    one, other = (
        heedful.attribute(model, PROMPT, text, method, earlier="fixed") for text in (" bad film", " good film")
    )
    assert both.scores == pytest.approx(one.scores - other.scores, abs=1e-9)
    assert both.values == pytest.approx(one.values - other.values, abs=1e-9)


@pytest.mark.parametrize("method", ["rollout", "gradient-attention"])
def test_attention_is_of_one_text_so_it_explains_no_difference(method):
    with pytest.raises(Unsupported, match="reads the attention of one text, and this compares two"):
        heedful.attribute(build("gpt2"), PROMPT, " bad film", method, against=" good film")


@pytest.mark.parametrize("method", METHODS)
def test_of_the_whole_sequence_the_other_output_may_be_longer(method):
    model = build("gpt2")
    both = heedful.attribute(model, PROMPT, "bad", method, of="sequence", against="not a good film", earlier="fixed")
    one, other = (
        heedful.attribute(model, PROMPT, text, method, of="sequence", earlier="fixed")
        for text in ("bad", "not a good film")
    )
    assert both.scores == pytest.approx(one.scores - other.scores, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_gain_from_a_context_is_that_with_it_less_that_without(family, method):
    model = build(family)
    asked = {"unit": "word", "earlier": "fixed"}
    gain = heedful.attribute(model, PROMPT, "bad film", method, context=PASSAGES, measure="context-gain", **asked)
    rich = heedful.attribute(model, PROMPT, "bad film", method, context=PASSAGES, **asked)
    bare = heedful.attribute(model, PROMPT, "bad film", method, **asked)
    n_own = len(bare.sources)
    assert gain.values == pytest.approx(rich.values - bare.values, abs=1e-9)
    assert gain.scores[:, :-n_own] == pytest.approx(rich.scores[:, :-n_own], abs=1e-9)
    assert gain.scores[:, -n_own:] == pytest.approx(rich.scores[:, -n_own:] - bare.scores, abs=1e-9)


def test_the_divergence_is_from_the_distribution_without_the_context():
    model = build("gpt2")
    table = heedful.attribute(
        model, PROMPT, "bad film", "leave-one-out", context=PASSAGES, measure="kl", absence="replace"
    )
    bare = heedful.attribute(model, PROMPT, "bad film", "leave-one-out")
    n = table.n_written
    reference = next_token_log_p(model, bare.document, n)

    def kl(document):
        log_p = next_token_log_p(model, document, n)
        return (log_p.exp() * (log_p - reference)).sum(dim=-1).numpy()

    assert table.values == pytest.approx(kl(table.document), abs=1e-9)
    document = table.explanations[0].document
    for number in range(2):
        masked = table.document.ids.copy()
        masked[document.unit_of("passage") == number] = model.replacement_id
        gone = kl(type(document)(**{**vars_of(table.document), "ids": masked}))
        assert table.scores[:, number] == pytest.approx(table.values - gone, abs=1e-9)


def vars_of(document):
    return {name: getattr(document, name) for name in ("text", "pieces", "spans", "words", "known", "segments")}


def test_the_entropy_is_that_of_the_next_token():
    model = build("llama")
    table = heedful.attribute(model, PROMPT, "bad film", "leave-one-out", measure="entropy")
    log_p = next_token_log_p(model, table.document, table.n_written)
    assert table.values == pytest.approx(-(log_p.exp() * log_p).sum(dim=-1).numpy(), abs=1e-9)


def test_the_logit_is_that_of_the_written_token():
    model = build("llama")
    table = heedful.attribute(model, PROMPT, "bad film", "gradient-x-input", measure="logit")
    with torch.no_grad():
        logits = model.network(torch.tensor(table.document.ids)[None]).logits[0]
    n = len(table.document.ids) - table.n_written
    expected = [float(logits[place - 1, token]) for place, token in enumerate(table.document.ids[n:], start=n)]
    assert table.values == pytest.approx(expected, abs=1e-9)
    assert {str(row.target) for row in table.explanations} == {f"the logit of {name}" for name in table.outputs}


def test_a_time_limit_is_for_the_whole_table():
    model, text = build("gpt2"), "the film was good but the plot was very dull and the actor was bad ."
    asked = {"method": "shapley-sampled", "n_samples": 20_000, "budget": 20_000}
    table = heedful.attribute(model, text, [40, 12, 7, 20], seconds=0.2, **asked)
    assert table.facts["masks"] < 10_000
    assert any("seconds" in str(note) or "limit" in str(note) for note in table.notes)
    assert len({row.settings["n_samples"] for row in table.explanations}) == 1


def test_a_memory_limit_changes_how_many_masks_are_evaluated_at_once_and_no_score():
    model = build("gpt2")
    free = heedful.attribute(model, PROMPT, [40, 12, 7, 20], "shapley-sampled")
    limited = heedful.attribute(model, PROMPT, [40, 12, 7, 20], "shapley-sampled", memory="2MB")
    assert limited.scores == pytest.approx(free.scores, abs=1e-9)
    with pytest.raises(BadInput, match="the memory limit is"):
        heedful.attribute(model, PROMPT, [40, 12, 7, 20], "shapley-sampled", memory="1KB")


def test_masks_are_counted_once_for_all_parts():
    table = heedful.attribute(build("gpt2"), PROMPT, [40, 12, 7, 20], "shapley-sampled")
    assert table.facts["masks"] == 2 ** len(table.sources)
    assert np.allclose(table.scores.sum(axis=1), [row.output - row.facts["intercept"] for row in table.explanations])


def test_attention_is_not_said_to_explain_another_measure():
    with pytest.raises(Unsupported, match="the same for every measure"):
        heedful.attribute(build("gpt2"), "the film was good", [7, 12], "attention-mean", measure="entropy")


def test_the_first_word_of_a_prompt_is_removed_from_both_texts():
    """Where no context stands before it, the first word may be another token: here without its space."""
    model = build("gpt2")
    prompt, context = "film was good", ["a dull plot"]
    table = heedful.attribute(
        model,
        prompt,
        [7, 12],
        "leave-one-out",
        context=context,
        measure="context-gain",
        unit="word",
        of="sequence",
        absence="replace",
    )
    long, bare = table.document, model.continued(model.encode(prompt), [7, 12])
    n_words = int(bare.words[:-2].max()) + 1

    @torch.no_grad()
    def value(document, gone):
        ids = np.where(np.isin(document.words, gone), model.replacement_id, document.ids)[:-1]
        logits = model.network(torch.from_numpy(ids)[None]).logits[0, -2:].log_softmax(dim=-1)
        return float(logits[[0, 1], [7, 12]].sum())

    first = int(long.words[:-2].max()) + 1 - n_words
    whole = value(long, []) - value(bare, [])
    for word in range(n_words):
        expected = whole - (value(long, [first + word]) - value(bare, [word]))
        assert table.scores[0, first + word] == pytest.approx(expected, abs=1e-9)
