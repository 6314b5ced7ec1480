import re
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.features.controls import random_direction
from heedful.models.attention_hook import still
from tests.families import build
from tests.features.random_dictionaries import random_dictionary
from tests.features.test_clamp import layer_of
from tests.features.test_steering_run import PROMPTS, SETTINGS, WORDS
from tests.models.language.test_writer import writer

NAMES = ("feature", "difference in means", "random direction")


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
