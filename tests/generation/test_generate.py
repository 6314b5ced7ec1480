from dataclasses import replace
from math import exp

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, HeedfulError, Unsupported
from heedful.generation.generate import STRATEGIES
from tests.families import build, byte_pairs, loud, network_of
from tests.generation.reference import written_by_transformers

PROMPTS = ["the film was good .", "a very bad story"]
PASSAGES = ["the film was good .", "a bad story"]


@pytest.mark.parametrize("family", ["gpt2", "own-gpt2", "llama", "mistral", "t5", "bart"])
def test_greedy_writes_the_tokens_of_transformers(family):
    theirs = build("gpt2" if family == "own-gpt2" else family)
    for prompt in PROMPTS:
        generation = heedful.generate(build(family), prompt, max_new=20)
        assert list(generation.ids) == written_by_transformers(theirs, prompt, 20)


def test_a_sliding_window_and_a_long_text_change_nothing():
    # The window of this model is 8 tokens.
    model = build("mistral")
    for strategy, settings in (("greedy", {}), ("beam", {"num_beams": 4})):
        generation = heedful.generate(model, PROMPTS[0], strategy, max_new=40)
        assert list(generation.ids) == written_by_transformers(model, PROMPTS[0], 40, **settings)


def test_a_model_without_a_cache_writes_the_same_and_says_so(monkeypatch):
    cached = {s: heedful.generate(build("gpt2"), PROMPTS[0], s, max_new=8) for s in ("greedy", "beam")}
    model = build("gpt2")
    monkeypatch.setattr(model, "caches", False)
    for strategy, with_cache in cached.items():
        generation = heedful.generate(model, PROMPTS[0], strategy, max_new=8)
        assert generation.ids == with_cache.ids
        assert any("keeps no cache" in note for note in generation.notes)
        assert not any("keeps no cache" in note for note in with_cache.notes)


@pytest.mark.parametrize("strategy", ["sampling", "top-k", "nucleus"])
def test_drawn_text_depends_on_the_seed_and_the_prompt_alone(strategy):
    model = build("gpt2")
    first = heedful.generate(model, PROMPTS[0], strategy, seed=3)
    torch.manual_seed(1)
    np.random.seed(1)
    assert heedful.generate(model, PROMPTS[0], strategy, seed=3).as_dict() == first.as_dict()
    assert heedful.generate(model, PROMPTS[0], strategy, seed=4).ids != first.ids
    assert first.settings["seed"] == 3


def test_the_first_tokens_over_seeds_have_the_stated_law():
    model = build("gpt2")
    n, seen = 150, []
    for seed in range(n):
        (step,) = heedful.generate(model, PROMPTS[0], "top-k", k=3, max_new=1, seed=seed).steps
        seen.append(step.id)
    law = {a.id: a.law for a in step.alternatives if a.kept}
    assert set(seen) <= set(law)
    for token, probability in law.items():
        error = 4 * (probability * (1 - probability) / n) ** 0.5
        assert abs(seen.count(token) / n - probability) < error


def test_the_settings_reach_the_strategy():
    model = build("gpt2")
    assert heedful.generate(model, PROMPTS[0], "top-k", k=7, max_new=1).steps[0].n_kept == 7
    assert heedful.generate(model, PROMPTS[0], "nucleus", p="0.5", max_new=1).settings["p"] == 0.5
    hot, cold = (heedful.generate(model, PROMPTS[0], "sampling", temperature=t, max_new=1).steps[0] for t in (9, 0.1))
    assert max(a.law for a in hot.alternatives) < max(a.probability for a in hot.alternatives)
    assert max(a.law for a in cold.alternatives) > max(a.probability for a in cold.alternatives)


def test_the_text_is_what_was_added_to_the_prompt():
    model = build("gpt2")
    generation = heedful.generate(model, PROMPTS[0], max_new=6)
    whole = model.spell([*generation.document.ids.tolist(), *generation.ids])
    assert generation.document.text + generation.text == whole
    translated = heedful.generate(build("t5"), PROMPTS[0], max_new=6)
    assert translated.text == build("t5").spell(translated.ids)


def test_context_stands_before_the_prompt():
    model = build("gpt2")
    generation = heedful.generate(model, PROMPTS[1], context=PASSAGES, max_new=3)
    assert list(generation.document.units("passage")) == PASSAGES
    plain = heedful.generate(model, "\n\n".join([*PASSAGES, PROMPTS[1]]), max_new=3)
    assert generation.ids == plain.ids


def test_an_end_at_once_gives_an_empty_text_and_a_note(monkeypatch):
    model = build("gpt2")
    first = heedful.generate(model, PROMPTS[0], max_new=1).ids[0]
    monkeypatch.setattr(model, "end_ids", frozenset({first}))
    monkeypatch.setattr(model, "spell", lambda ids: byte_pairs().decode([i for i in ids if i != first]))
    for strategy in ("greedy", "beam"):
        generation = heedful.generate(model, PROMPTS[0], strategy, max_new=1)
        assert (generation.ids, generation.text, generation.ended) == ((first,), "", "end of text")
        assert any("ended the text at once" in note for note in generation.notes)


def test_what_fits_into_the_model_is_written_and_the_rest_noted(monkeypatch):
    model = build("gpt2")
    monkeypatch.setattr(model, "end_ids", frozenset())
    n_read = len(model.encode(PROMPTS[0]).ids)
    generation = heedful.generate(model, PROMPTS[0], max_new=100)
    assert (len(generation.ids), generation.ended) == (64 - n_read, "length")
    assert [note.kind for note in generation.notes] == ["limited"]
    assert f"Only {64 - n_read} of 100 tokens were written" in generation.notes[0]


def test_a_prompt_that_fills_the_model_leaves_no_room():
    with pytest.raises(BadInput, match="The prompt has 64 tokens and the model reads and writes at most 64"):
        heedful.generate(build("gpt2"), " ".join(["the"] * 64))


def test_logits_that_are_no_numbers_are_refused():
    network, tokenizer = network_of("gpt2")
    model = heedful.wrap(network.eval(), tokenizer)
    with torch.no_grad():
        network.transformer.ln_f.bias[0] = float("nan")
    for strategy in STRATEGIES:
        with pytest.raises(BadInput, match="logits after 0 written tokens are not finite numbers"):
            heedful.generate(model, PROMPTS[0], strategy)


@pytest.mark.parametrize(
    ("strategy", "settings", "sentence"),
    [
        ("beams", {}, "There is no strategy 'beams'; did you mean 'beam'"),
        ("greedy", {"p": 0.9}, "greedy has no setting 'p', which belongs to nucleus"),
        ("nucleus", {"k": 3}, "nucleus has no setting 'k', which belongs to top-k"),
        (
            "beam",
            {"temperature": 2},
            "beam has no setting 'temperature', which belongs to sampling and top-k and nucle",
        ),
        ("nucleus", {"top_p": 3}, "There is no setting 'top_p'"),
        ("nucleus", {"p": 2}, "p is the probability that is kept, above 0 and at most 1; 2 was given"),
        ("top-k", {"k": 2.5}, "k must be a whole number; 2.5 was given"),
        ("greedy", {"max_new": 0}, "max_new must be a whole number from 1 to 100,000; 0 was given"),
        ("sampling", {"seed": -1}, "The seed must be a whole number"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(strategy, settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        heedful.generate(build("gpt2"), PROMPTS[0], strategy, **settings)


def test_a_model_that_does_not_write_is_refused(tiny):
    for model in (tiny, build("bert")):
        with pytest.raises(Unsupported, match="This model does not write text"):
            heedful.generate(model, PROMPTS[0])
    with pytest.raises(HeedfulError, match="The prompt is empty"):
        heedful.generate(build("gpt2"), "")


def test_demanded_tokens_of_the_configuration_are_written():
    network, tokenizer = network_of("bart")
    network.generation_config.forced_bos_token_id = 7
    network.generation_config.forced_eos_token_id = 1
    model = heedful.wrap(loud(network).double().eval(), tokenizer)
    generation = heedful.generate(model, PROMPTS[0], max_new=5)
    settings = {"forced_bos_token_id": 7, "forced_eos_token_id": 1}
    assert list(generation.ids) == written_by_transformers(model, PROMPTS[0], 5, **settings)
    assert generation.ids[0] == 7
    assert generation.steps[0].forced


def test_every_strategy_is_in_the_help():
    assert all(f'"{name}"' in heedful.generate.__doc__ for name in STRATEGIES)


def test_the_probabilities_are_those_of_the_model():
    model = build("llama")
    generation = heedful.generate(model, PROMPTS[0], "nucleus", max_new=5)
    document, steps = generation.document, generation.steps
    for number, step in enumerate(steps):
        ids = np.array([*document.ids, *generation.ids[:number]])
        longer = replace(
            document,
            ids=ids,
            pieces=("x",) * len(ids),
            spans=((0, 1),) * len(ids),
            words=np.arange(len(ids)),
            known=ids >= 0,
        )
        p = torch.softmax(torch.from_numpy(model.logits([longer])[0]), -1).numpy()
        assert np.isclose(exp(step.log_probability), p[step.id], atol=1e-9)
