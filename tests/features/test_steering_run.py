import re
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.features import steered_texts
from heedful.features.controls import random_direction
from heedful.models.attention_hook import still
from tests.families import build
from tests.features.random_dictionaries import random_dictionary
from tests.features.test_clamp import layer_of
from tests.models.language.test_writer import writer

PROMPTS = [
    "the film was good .",
    "a very bad story",
    "the plot was",
    "a good film",
    "not a dull plot , but",
    "the actors",
]
WORDS = ["good", "bad", "plot", "very", "was"]
NAMES = ("feature", "difference in means", "random direction")
SETTINGS = {"words": WORDS, "max_new": 5, "strategy": "sampling", "progress": None, "curve": ()}


def model_of(family) -> Any:
    return writer() if family == "writer" else build(family)


@contextmanager
def moved_by_hand(model, dictionary, length, u, is_text):
    def hook(_module, args, named):
        x = args[0] if args else named["hidden_states"]
        moved = x + is_text(x)[:, None] * (length(x)[..., None] * u).to(x)
        return ((moved, *args[1:]), named) if args else (args, {**named, "hidden_states": moved})

    handle = layer_of(model, dictionary.card.layer).register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def log_probabilities(model, document, n_last):
    with torch.no_grad(), still(model.network):
        logits = model.token_logits(model.embed([document]), [document], None, n_last)[0]
    return logits - torch.log(torch.exp(logits).sum(dim=1, keepdim=True))


@pytest.mark.parametrize("family", ["gpt2", "writer"])
def test_texts_are_those_of_generate_unchanged_and_clamped(family):
    model = model_of(family)
    dictionary = random_dictionary(model)
    result = heedful.features.steer(dictionary, 3, PROMPTS, strength=6.0, seed=2, **SETTINGS)
    for name, context in (("unchanged", nullcontext()), ("feature", dictionary.clamp({3: 6.0}))):
        with context:
            alone = [heedful.generate(model, p, "sampling", max_new=5, seed=2, progress=None).text for p in PROMPTS]
        assert list(result.run(name).texts) == alone
    assert len({run.texts for run in result.runs}) == 4


@pytest.mark.parametrize("family", ["gpt2", "llama", "writer"])
@pytest.mark.parametrize("how", ["clamp", "push"])
def test_effects_are_those_of_a_hook_by_hand(family, how):
    model = model_of(family)
    dictionary = random_dictionary(model)
    result = heedful.features.steer(dictionary, 3, PROMPTS, strength="2x", how=how, **SETTINGS)
    tokens = [number for number, surface in enumerate(model.classes) if surface in [f" {word}" for word in WORDS]]
    c = 2 * (1 + 3 / 4)
    assert result.c == c
    u = {"feature": dictionary.W_dec[3], "random direction": random_direction(dictionary, 3, 0)}

    def length(x):
        s = torch.relu(x.float() @ dictionary.W_enc[3] + dictionary.b_enc[3])
        return c - s if how == "clamp" else torch.full_like(s, c)

    for place, prompt in enumerate(PROMPTS):
        written = heedful.generate(model, prompt, "sampling", max_new=5, progress=None)
        document = model.continued(written.document, written.ids[:-1])
        end = 329 if family == "writer" else 0
        own = torch.tensor([number != end for number in document.ids.tolist()])
        for name in ("unchanged", *u):
            context = nullcontext()
            if name != "unchanged":
                context = moved_by_hand(model, dictionary, length, u[name], own.to)
            with context:
                log_p = log_probabilities(model, document, len(written.ids))
            expected = log_p[:, tokens].exp().sum(dim=1).log().mean()
            assert result.run(name).values["log-probability"][place] == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "writer"])
def test_costs_and_shares_are_those_of_the_written_text_by_the_unchanged_model(family):
    model = model_of(family)
    dictionary = random_dictionary(model)
    result = heedful.features.steer(dictionary, 3, PROMPTS, strength=6.0, **SETTINGS)
    for place, prompt in enumerate(PROMPTS):
        with dictionary.clamp({3: 6.0}):
            written = heedful.generate(model, prompt, "sampling", max_new=5, progress=None)
        document = model.continued(written.document, written.ids[:-1])
        log_p = log_probabilities(model, document, len(written.ids))
        values = {name: own[place] for name, own in result.run().values.items()}
        own = log_p[range(len(written.ids)), list(written.ids)]
        assert values["surprise"] == pytest.approx(-float(own.mean()), abs=1e-6)
        labelled = len(re.findall(r"\b(good|bad|plot|very|was)\b", written.text))
        words = re.findall(r"\w+", written.text)
        assert values["words"] == pytest.approx(100 * labelled / max(1, len(words)))
        assert values["texts"] == (labelled > 0)
        pairs = {(words[n], words[n + 1]) for n in range(len(words) - 1)}
        assert (
            np.isnan(values["repetition"])
            if len(words) < 2
            else values["repetition"] == 1 - len(pairs) / (len(words) - 1)
        )


@pytest.mark.parametrize(("how", "part"), [("clamp", "residual"), ("push", "residual"), ("clamp", "mlp")])
def test_all_directions_move_the_activations_by_the_same_length(how, part):
    model = writer()
    dictionary = random_dictionary(model, part=part)
    settings = {**SETTINGS, "curve": (0.5,)}
    result = heedful.features.steer(dictionary, 3, PROMPTS, strength=6.0, how=how, **settings)
    for factor in (0.5, 1.0):
        norms = [result.run(name, factor).norm for name in NAMES]
        assert norms == pytest.approx([norms[0]] * 3, rel=1e-6)
        if how == "push":
            assert norms[0] == pytest.approx(6 * factor, rel=1e-6)
    assert result.run("unchanged").norm == 0
    assert result.run("feature", 0.5).c == 3.0
    assert result.factors == (0.5, 1.0)


def test_the_same_seed_gives_the_same_result_and_another_one_another():
    dictionary = random_dictionary(build("gpt2"))
    one, same, other = (
        heedful.features.steer(dictionary, 3, PROMPTS, seed=seed, **SETTINGS).as_dict() for seed in (0, 0, 1)
    )
    assert one == same
    assert one["runs"][0]["texts"] != other["runs"][0]["texts"]


def test_a_stopped_run_is_resumed_with_the_same_result(tmp_path, monkeypatch):
    dictionary = random_dictionary(build("gpt2"))
    monkeypatch.setattr(steered_texts, "_AT_ONCE", 2)
    whole = heedful.features.steer(dictionary, 3, PROMPTS, **SETTINGS).as_dict()
    steps = []

    def stop(done, total):
        steps.append((done, total))
        if len(steps) == 5:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            heedful.features.steer(dictionary, 3, PROMPTS, out=tmp_path, **{**SETTINGS, "progress": stop})
        steps.clear()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*-0.0-*.json")}
    resumed = heedful.features.steer(dictionary, 3, PROMPTS, out=tmp_path, **SETTINGS).as_dict()
    assert resumed == whole
    assert len(times) == 3
    assert times == {path: path.stat().st_mtime_ns for path in times}
    with pytest.raises(BadInput, match="another run, which differs in prompts"):
        heedful.features.steer(dictionary, 3, PROMPTS[:3], out=tmp_path, **SETTINGS)


def test_a_run_of_another_computation_of_the_model_or_of_a_close_strength_is_another_run(tmp_path):
    dictionary = random_dictionary(build("gpt2"))
    settings = {**SETTINGS, "curve": (1.0000001,)}
    steered = heedful.features.steer(dictionary, 3, PROMPTS, out=tmp_path, **settings)
    assert steered.as_dict() == heedful.features.steer(dictionary, 3, PROMPTS, **settings).as_dict()
    with dictionary.clamp({5: 50.0}), pytest.raises(BadInput, match="another run, which differs in model"):
        heedful.features.steer(dictionary, 3, PROMPTS, out=tmp_path, **settings)


def test_examples_are_texts_or_a_pair_and_by_default_what_was_written(tmp_path):
    model = build("gpt2")
    dictionary = random_dictionary(model)
    texts = ["the film was good .", "a dull film ."]
    one = heedful.features.steer(dictionary, 3, PROMPTS, examples=texts, **SETTINGS)
    assert one.examples == "1 sentences with a labelled word and 1 without".replace("1 without", "1 without")
    pair = heedful.features.steer(dictionary, 3, PROMPTS, examples=(texts[:1], texts[1:]), **SETTINGS)
    assert pair.examples == "1 texts with the property and 1 without"
    assert pair.run("difference in means").texts == one.run("difference in means").texts
    (tmp_path / "p.txt").write_text("\n".join(PROMPTS), encoding="utf-8")
    from_file = heedful.features.steer(dictionary, 3, str(tmp_path / "p.txt"), examples=texts, **SETTINGS)
    assert from_file.as_dict() == one.as_dict()


def test_texts_of_one_word_have_no_repetition():
    result = heedful.features.steer(random_dictionary(build("gpt2")), 3, PROMPTS, **{**SETTINGS, "max_new": 1})
    assert np.isnan(result.change("repetition").mean)
    assert result._repr_html_().count("not known") >= 4


def test_what_makes_no_sense_is_refused():
    model = build("gpt2")
    dictionary = random_dictionary(model)
    never = replace(dictionary, largest=torch.zeros(12))
    requests = [
        (dictionary, 3, [], {}, "There are no prompts"),
        (dictionary, 3, ["the film", " "], {}, "Prompt 2: The prompt is empty"),
        (dictionary, 3, ["good film " * 40], {}, "Prompt 1: The prompt .*shorten"),
        (dictionary, 12, PROMPTS, {}, "features 0 to 11"),
        (never, 3, PROMPTS, {}, "Feature 3 was never active"),
        (dictionary, 3, PROMPTS, {"strength": 0}, "strength must be above 0"),
        (dictionary, 3, PROMPTS, {"strength": "0x"}, "strength must be above 0"),
        (dictionary, 3, PROMPTS, {"strength": -1.0}, "at least 0"),
        (dictionary, 3, PROMPTS, {"strength": "much"}, "at least 0"),
        (dictionary, 3, PROMPTS, {"model": build("llama")}, "belongs to the model"),
        (dictionary, 3, PROMPTS, {"words": ["zebra"]}, "No word of the label is a whole token"),
        (dictionary, 3, PROMPTS, {"curve": (0.0,)}, "curve is a list of numbers above 0"),
        (dictionary, 3, PROMPTS, {"max_new": 0}, "max_new must be"),
        (dictionary, 3, PROMPTS, {"seed": -1}, "seed must be"),
        (dictionary, 3, PROMPTS, {"strategy": "beam"}, "Beam search draws nothing"),
        (dictionary, 3, PROMPTS, {"strategy": "best"}, "There is no strategy 'best'"),
        (dictionary, 3, PROMPTS, {"examples": []}, "There are no examples"),
        (dictionary, 3, PROMPTS, {"examples": ["a dull film"]}, "No sentence of the examples"),
    ]
    for own, feature, prompts, settings, message in requests:
        with pytest.raises(BadInput, match=message):
            heedful.features.steer(own, feature, prompts, **{**SETTINGS, **settings})


def test_a_feature_that_was_never_active_can_be_held_at_a_number():
    dictionary = replace(random_dictionary(build("gpt2")), largest=torch.zeros(12))
    result = heedful.features.steer(dictionary, 3, PROMPTS, strength=2.0, **SETTINGS)
    assert result.strength() == "2"


def test_a_classifier_is_refused_with_what_measures_its_outputs():
    dictionary = random_dictionary(build("bert"))
    with pytest.raises(Unsupported, match=r"does not write text.*heedful\.features\.effect"):
        heedful.features.steer(dictionary, 3, PROMPTS, **SETTINGS)
