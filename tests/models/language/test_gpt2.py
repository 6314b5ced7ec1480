from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as hf

from heedful.errors import BadInput
from heedful.models.attention_hook import heard
from heedful.models.hf.gpt2 import gpt2_of
from heedful.models.language.gpt2 import (
    GPT2_SMALL,
    Gpt2Config,
    Gpt2Network,
    KeyValueCache,
    initial_gpt2,
    network_with,
    up_to_own,
)
from tests.families import byte_pairs, loud

TINY = Gpt2Config(n_tokens=50, T_max=16, d_e=12, depth=3, n_heads=3, d_hidden=20)


def tiny():
    return loud(initial_gpt2(TINY, 0)).double().eval()


def by_hand(network, ids):
    """The lecture's equations, a head and a query at a time, in NumPy."""
    w = {name: weight.numpy() for name, weight in network.state_dict().items()}
    f = w["W_e"][ids] + w["W_p"][: len(ids)]

    def norm(x, name):
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + TINY.epsilon)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    for layer in range(TINY.depth):
        here, d_att = f"layers.{layer}", TINY.d_e // TINY.n_heads
        x = norm(f, f"{here}.norm_1") @ w[f"{here}.W_qkv.weight"].T + w[f"{here}.W_qkv.bias"]
        heads = np.zeros_like(f)
        for i in range(TINY.n_heads):
            q, k, v = (x[:, TINY.d_e * part + d_att * i :][:, :d_att] for part in range(3))
            for t in range(len(ids)):
                alpha = np.exp(k[: t + 1] @ q[t] / np.sqrt(d_att))
                heads[t, d_att * i : d_att * (i + 1)] = alpha @ v[: t + 1] / alpha.sum()
        h = f + heads @ w[f"{here}.W_o.weight"].T + w[f"{here}.W_o.bias"]
        z = norm(h, f"{here}.norm_2") @ w[f"{here}.W_1.weight"].T + w[f"{here}.W_1.bias"]
        bent = z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
        f = h + bent @ w[f"{here}.W_2.weight"].T + w[f"{here}.W_2.bias"]
    return norm(f, "norm") @ w["W_e"].T


@torch.no_grad()
def test_the_network_computes_the_lectures_equations():
    ids = np.array([3, 49, 0, 7, 7, 12])
    logits = tiny()(torch.from_numpy(ids)[None])[0].numpy()
    assert np.allclose(logits, by_hand(tiny(), ids), atol=1e-11)


@torch.no_grad()
@pytest.mark.parametrize("inner", [None, 24])
def test_logits_are_those_of_transformers_with_the_same_weights(inner):
    torch.manual_seed(0)
    config = hf.GPT2Config(n_embd=16, n_layer=3, n_head=4, n_positions=32, vocab_size=330, n_inner=inner)
    theirs = loud(hf.GPT2LMHeadModel(config)).double().eval()
    ours = gpt2_of(theirs, byte_pairs()).network
    ids = torch.randint(330, (3, 20))
    assert (ours(ids) - theirs(ids).logits).abs().max() < 1e-10


def test_the_defaults_are_the_sizes_of_gpt2_small():
    with torch.device("meta"):
        n_weights = sum(weight.numel() for weight in Gpt2Network(GPT2_SMALL).parameters())
    assert n_weights == 124_439_808


@torch.no_grad()
@pytest.mark.parametrize("steps", [(6,), (1, 5), (3, 3), (2, 1, 1, 2)])
def test_reading_with_a_cache_in_any_steps_gives_the_same_logits(steps):
    network, ids = tiny(), torch.tensor([[3, 49, 0, 7, 7, 12], [1, 2, 3, 4, 5, 6]])
    cache, parts = KeyValueCache(), []
    for part in ids.split(steps, dim=1):
        parts.append(network.logits(network.states(network.embed(part), None, cache)))
    assert cache.n_read == 6
    assert torch.allclose(torch.cat(parts, dim=1), network(ids), atol=1e-12)


@torch.no_grad()
def test_a_hidden_position_has_no_effect_on_the_others():
    network, ids = tiny(), torch.tensor([[3, 49, 0, 7], [3, 49, 11, 7]])
    seen = up_to_own(4, 0, ids.device) & torch.tensor([[[True, True, False, True]]] * 2)
    logits = network.logits(network.states(network.embed(ids), seen))
    assert torch.allclose(logits[0, [0, 1, 3]], logits[1, [0, 1, 3]], atol=1e-12)
    assert not torch.allclose(network(ids)[0, 3], network(ids)[1, 3])


@torch.no_grad()
def test_a_listener_gets_every_layer():
    network, calls = tiny(), []

    def note(call):
        calls.append(call)
        return call.output()

    with heard(network, note):
        network(torch.tensor([[3, 49, 0]]))
    assert [call.module for call in calls] == list(network.layers)
    assert torch.allclose(calls[0].maps().sum(-1), torch.ones(1, 3, 3, dtype=torch.float64))
    assert calls[0].maps()[0, 0, 0, 1:].abs().max() == 0


def test_a_text_longer_than_the_positions_is_refused():
    with pytest.raises(BadInput, match="at most 16 tokens"):
        tiny()(torch.zeros(1, 17, dtype=torch.long))


@pytest.mark.parametrize("wrong", [{"n_heads": 5}, {"depth": 0}, {"epsilon": 0.0}, {"T_max": 10**9}])
def test_sizes_that_do_not_fit_are_refused(wrong):
    with pytest.raises(BadInput):
        replace(TINY, **wrong)


def test_the_same_weights_make_the_same_network():
    network = tiny()
    again = network_with(TINY, network.state_dict())
    ids = torch.tensor([[3, 4]])
    assert torch.equal(again(ids), network(ids))
