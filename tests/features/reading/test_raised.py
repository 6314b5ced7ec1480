import numpy as np
import pytest
import torch

from heedful.features.activations import find_site
from heedful.features.reading import raised
from heedful.features.reading.raised import readout_of
from heedful.models.language.activations import record_activations
from heedful.statistics.intervals import mean_intervals
from tests.families import TEXTS, build, network_of
from tests.features.random_dictionaries import random_dictionary
from tests.features.test_added_part import wrapped

LINES = [*TEXTS, "a dull plot", "the actor was good", "not bad"]


def effects_of(dictionary, lines=LINES):
    model = dictionary.model
    readout = readout_of(dictionary, model, [model.encode(line) for line in lines])
    values, bounds = readout.of(dictionary.W_dec)
    return readout, values.numpy(), bounds


def last_rows(network, layers, norm):
    """What leaves the last layer at every token, by running the network of transformers alone."""
    kept = []
    handle = norm.register_forward_pre_hook(lambda _, inputs: kept.append(inputs[0][0]))
    _, tokenizer = network_of("gpt2" if layers == "h" else "llama")
    with torch.no_grad():
        for line in LINES:
            network(input_ids=torch.tensor([tokenizer(line)["input_ids"]]))
    handle.remove()
    return torch.cat(kept)


def test_the_lens_of_a_gpt2_is_the_matrix_product_of_head_norm_and_direction():
    model = build("gpt2")
    network = model.network
    norm = network.transformer.ln_f
    x = last_rows(network, "h", norm)
    centre = torch.eye(16, dtype=x.dtype) - 1 / 16
    mean = torch.zeros_like(centre)
    for row in x:
        own = centre @ row
        deviation = (own.square().mean() + norm.eps).sqrt()
        mean += torch.diag(norm.weight) @ (centre - own[:, None] * own / (16 * deviation**2)) / deviation / len(x)
    dictionary = random_dictionary(model)
    expected = dictionary.W_dec.double() @ (network.lm_head.weight @ mean).T
    for family in ("gpt2", "own-gpt2"):
        own = random_dictionary(build(family))
        readout, values, bounds = effects_of(own)
        assert np.allclose(values, expected.detach().numpy(), atol=1e-5)
        assert bounds is None
        assert "Logit lens" in readout.about
        assert f"{len(x)} tokens" in readout.about


def test_the_lens_of_a_llama_has_its_own_norm():
    model = build("llama")
    network = model.network
    norm = network.model.norm
    x = last_rows(network, "layers", norm)
    mean = torch.zeros(16, 16, dtype=x.dtype)
    for row in x:
        size = (row.square().mean() + norm.variance_epsilon).sqrt()
        eye = torch.eye(16, dtype=x.dtype)
        mean += torch.diag(norm.weight) @ (eye - row[:, None] * row / (16 * size**2)) / size / len(x)
    dictionary = random_dictionary(model)
    expected = dictionary.W_dec.double() @ (network.lm_head.weight @ mean).T
    assert np.allclose(effects_of(dictionary)[1], expected.detach().numpy(), atol=1e-5)


def test_the_lens_is_the_slope_of_the_logits_where_no_layer_follows():
    """The MLP of the last layer adds to what the norm reads, so the lens leaves nothing out."""
    model = build("gpt2")
    dictionary = random_dictionary(model, layer=2, part="mlp")
    values = effects_of(dictionary)[1]
    slopes, n = np.zeros((len(values), len(model.classes))), 0
    for line in LINES:
        document = model.encode(line)

        def logits(document=document):
            return model.token_logits(model.embed([document]), [document], None, len(document.ids))[0]

        n += len(document.ids)
        for feature in range(3):
            sides = []
            for sign in (1, -1):
                with torch.no_grad(), dictionary.push(sign * dictionary.directions[feature], 1e-4):
                    sides.append(logits())
            slopes[feature] += ((sides[0] - sides[1]) / 2e-4).sum(dim=0).numpy()
    assert np.allclose(values[:3], slopes[:3] / n, atol=1e-3)


@pytest.mark.parametrize(("name", "factor"), [("Granite", {"logits_scaling": 8.0}), ("Cohere", {"logit_scale": 0.25})])
def test_the_lens_has_the_factor_between_the_head_and_the_logits(name, factor):
    values = []
    for settings in (factor, dict.fromkeys(factor, 1.0)):
        torch.manual_seed(0)
        model = wrapped(name, **settings)
        values.append(effects_of(random_dictionary(model))[1])
    expected = 1 / 8 if name == "Granite" else 1 / 4
    assert np.allclose(values[0], expected * values[1], atol=1e-6)
    assert np.abs(values[1]).max() > 1e-3


@pytest.mark.parametrize("family", ["bert", "encoder", "single-logit", "gpt2-classifier"])
def test_the_effect_on_classes_is_a_finite_difference_of_the_logits(family):
    model = build(family)
    dictionary = random_dictionary(model)
    readout, values, bounds = effects_of(dictionary)
    documents = [model.encode(line) for line in LINES]
    for feature in range(3):
        sides = []
        for sign in (1, -1):
            with dictionary.push(sign * dictionary.directions[feature], 1e-4):
                sides.append(model.logits(documents))
        slopes = (sides[0] - sides[1]) / 2e-4
        if family != "single-logit":
            slopes -= slopes.mean(axis=1, keepdims=True)
        assert np.allclose(values[feature], slopes.mean(axis=0), atol=1e-3)
        low, high = mean_intervals(slopes.T)
        assert np.allclose(bounds[0][feature], low, atol=1e-3)
        assert np.allclose(bounds[1][feature], high, atol=1e-3)
    assert f"{len(LINES)} texts" in readout.about


def test_outputs_are_the_largest_and_the_least_effects():
    dictionary = random_dictionary(build("gpt2"))
    readout, values, _ = effects_of(dictionary)
    rows = readout.outputs(dictionary.W_dec, 4)
    for row, (up, down) in zip(values, rows, strict=True):
        assert [output.effect for output in up] == pytest.approx(np.sort(row)[::-1][:4].tolist())
        assert [output.effect for output in down] == pytest.approx(np.sort(row)[:4].tolist())
        assert up[0].name == readout.names[int(row.argmax())]


def test_only_what_rises_is_raised():
    dictionary = random_dictionary(build("bert"))
    readout, values, _ = effects_of(dictionary)
    for row, (up, down) in zip(values, readout.outputs(dictionary.W_dec, 10), strict=True):
        assert len(up) == (row > 0).sum()
        assert len(down) == (row < 0).sum()


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_an_encoder_has_no_lens_and_says_so(family):
    dictionary = random_dictionary(build(family))
    model = dictionary.model
    readout = readout_of(dictionary, model, [model.encode(line) for line in LINES])
    assert readout.about.endswith("the layer belongs to an encoder, from which no output token is read.")
    assert readout.outputs(dictionary.W_dec, 5) == [([], [])] * dictionary.width


def test_a_head_behind_something_else_than_a_norm_is_not_guessed(monkeypatch):
    monkeypatch.setattr(raised, "_gives", lambda *_: False)
    dictionary = random_dictionary(build("gpt2"))
    readout = readout_of(dictionary, dictionary.model, [dictionary.model.encode(LINES[0])])
    assert readout.of is None
    assert "not a norm of the last layer's output" in readout.about


def test_many_classes_are_not_differentiated_one_by_one(monkeypatch):
    monkeypatch.setattr(raised, "_N_CLASSES", 2)
    dictionary = random_dictionary(build("bert"))
    readout = readout_of(dictionary, dictionary.model, [dictionary.model.encode(LINES[0])])
    assert "at most 2" in readout.about


def test_the_model_is_unchanged_afterwards():
    dictionary = random_dictionary(build("bert"))
    model = dictionary.model
    before = model(LINES)
    effects_of(dictionary)
    effects_of(random_dictionary(build("gpt2")))
    assert np.array_equal(before, model(LINES))
    site = find_site(model, "residual", 1)
    assert not record_activations(model, [model.encode(LINES[0])], [site]).logits.requires_grad
