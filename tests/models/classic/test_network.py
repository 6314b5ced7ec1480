"""The networks against a forward pass written out token by token in NumPy."""

import numpy as np
import pytest
import torch

from heedful import family
from heedful.errors import HeedfulError
from heedful.models.classic.network import FILTER_WIDTHS, ClassicConfig, initial_classic
from tests.models.classic.models import KINDS, PAIRS, TEXTS, classic


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(w, x, ending):
    """The states of one direction, with torch's order of the gates: input, forget, cell, output."""
    h = c = np.zeros(w[f"weight_hh_l0{ending}"].shape[1])
    states = []
    for x_t in x:
        gates = (
            w[f"weight_ih_l0{ending}"] @ x_t
            + w[f"bias_ih_l0{ending}"]
            + w[f"weight_hh_l0{ending}"] @ h
            + w[f"bias_hh_l0{ending}"]
        )
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.array(states)


def states(kind, w, x):
    """h_t of every token, and the state of the text."""
    if kind == "bilstm":
        w = {name.removeprefix("lstm."): value for name, value in w.items()}
        forwards, backwards = lstm(w, x, ""), lstm(w, x[::-1], "_reverse")
        h = np.concatenate([forwards, backwards[::-1]], axis=1)
        return h, np.concatenate([forwards[-1], backwards[-1]])
    if kind == "average":
        h = np.array([np.tanh(w["map.weight"] @ x_t + w["map.bias"]) for x_t in x])
        return h, h.mean(axis=0)
    rows = []
    for t in range(len(x)):
        row = []
        for number, width in enumerate(FILTER_WIDTHS):
            total = w[f"filters.{number}.bias"].copy()
            for place in range(width):
                source = t + place - width // 2
                if 0 <= source < len(x):
                    total += w[f"filters.{number}.weight"][:, :, place] @ x[source]
            row.append(np.maximum(total, 0))
        rows.append(np.concatenate(row))
    h = np.array(rows)
    return h, h.mean(axis=0)


def by_hand(model, document):
    """The logits and the attention of one document."""
    config = model.network.config
    w = {name: tensor.numpy() for name, tensor in model.network.state_dict().items()}
    under = {
        prefix: {n.removeprefix(f"{prefix}."): v for n, v in w.items() if n.startswith(prefix)}
        for prefix in ("first", "second")
    }
    segments = np.zeros(len(document.ids)) if document.segments is None else document.segments
    x = w["W_e"][document.ids]
    h, _ = states(config.encoder, under["first"], x[segments == 0])
    f, Q = w["W_c.bias"].copy(), None
    if config.pairs:
        _, Q = states(config.encoder, under["second"], x[segments == 1])
        f += w["W_m.weight"] @ Q
    scores = []
    for h_t in h[1:]:
        if config.attention == "dot":
            scores.append((w["v"] if Q is None else Q) @ h_t / np.sqrt(len(h_t)))
        else:
            inner = w["W_1.weight"] @ h_t + w["W_1.bias"] + (0 if Q is None else w["W_2.weight"] @ Q)
            scores.append(w["v"] @ np.tanh(inner))
    alpha = np.exp(scores) / np.exp(scores).sum()
    for a, h_t in zip(alpha, h[1:], strict=True):
        f += w["W_c.weight"] @ (a * h_t)
    return f, alpha


@pytest.mark.parametrize("pairs", [False, True], ids=["text", "pair"])
@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_logits_and_attention_are_those_written_out_by_hand(encoder, attention, pairs):
    model = classic(encoder, attention, pairs)
    texts = PAIRS if pairs else TEXTS
    for text, f in zip(texts, model(texts), strict=True):
        document = model.encode(text)
        expected, alpha = by_hand(model, document)
        assert f == pytest.approx(expected, abs=1e-12)
        row = model.maps(document)[0, 0, 0]
        assert row[1 : 1 + len(alpha)] == pytest.approx(alpha, abs=1e-12)
        assert row[0] == 0
        assert not row[1 + len(alpha) :].any()


@pytest.mark.parametrize("encoder", ["bilstm", "average", "convolution"])
def test_initial_weights_depend_on_the_seed_alone(encoder):
    config = ClassicConfig(encoder, d_e=4, d_hidden=4)
    before = torch.random.get_rng_state()
    one, again, other = (initial_classic(config, 9, seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"encoder": "lstm"}, "lstm"),
        ({"attention": "additive"}, "additive"),
        ({"T_max": 1}, "at least"),
        ({"d_hidden": 10**7}, "at most"),
        ({"encoder": "convolution", "d_hidden": 6}, "multiple of 4"),
    ],
)
def test_settings_that_make_no_model_are_refused(settings, sentence):
    with pytest.raises(HeedfulError, match=sentence):
        family.build(ClassicConfig, "the model", settings)


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_the_gradient_at_the_embeddings_is_that_of_finite_differences(encoder, attention):
    model = classic(encoder, attention)
    documents = [model.encode(text) for text in TEXTS[::2]]
    e = model.embed(documents).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model.forward(x, documents), e)
