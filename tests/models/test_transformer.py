import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from heedful.models.vocabulary import Vocabulary
from tests.conftest import WORDS, tiny_model

TEXTS = ["good film , not dull", "the plot was bad and the story was very very long", "a"]
SIZES = {"n_heads": 2, "T_max": 12, "d_e": 8, "d_att": 4, "d_out": 3, "d_hidden": 10, "n_classes": 3}


def built(**switches):
    config = TransformerConfig(**{**SIZES, **switches})
    vocabulary = Vocabulary(("[cls]", "[unk]", *WORDS))
    return Transformer(initial_network(config, len(vocabulary), 0).double(), vocabulary, ["bad", "good", "neutral"])


@pytest.mark.parametrize("seed", range(5))
def test_with_everything_off_it_is_the_single_layer_model(seed):
    paper = tiny_model(seed)
    same = Transformer.of(paper)
    assert np.abs(same(TEXTS) - paper(TEXTS)).max() <= 1e-13 * np.abs(paper(TEXTS)).max()
    document = paper.encode(TEXTS[0])
    assert np.allclose(same.attention([document]), paper.attention([document]), atol=1e-14)
    for method in ("gradient-x-input", "leave-one-out", "rollout", "value-norms", "gradient-attention"):
        ours, theirs = (heedful.explain(model, TEXTS[0], method, target=1).scores for model in (same, paper))
        assert np.abs(ours - theirs).max() <= 1e-11 * np.abs(theirs).max()


def test_the_bundled_model_is_one_too(paper):
    assert np.abs(Transformer.of(paper)(TEXTS) - paper(TEXTS)).max() < 1e-12


def by_hand(model, text):
    """The forward pass token by token and head by head."""
    net, c = model.network, model.network.config
    document = model.encode(text)
    ids = [*document.ids.tolist(), *[1] * (c.T_max - len(document.ids))]
    x = [net.W_e[number] + net.W_p[place] for place, number in enumerate(ids)]

    def norm(v):
        return (v - v.mean()) / torch.sqrt(v.var(unbiased=False) + 1e-5) if c.norm else v

    for depth in range(c.depth):
        w = net.layers[0 if c.tied == "layers" else depth].weights
        new = []
        for s in range(c.T_max):
            total = 0
            for h in range(c.n_heads):
                q = w["W_q"][h] @ x[s] + w["b_q"][h]
                W_k = w["W_q"] if c.tied == "query-key" else w["W_k"]
                seen = range(s + 1) if c.causal else range(c.T_max)
                scores = torch.stack([q @ (W_k[h] @ x[t] + w["b_k"][h]) / c.d_att**0.5 for t in seen])
                alpha = torch.softmax(scores, dim=0)
                total = total + w["W_o"][h] @ sum(
                    a * (w["W_v"][h] @ x[t] + w["b_v"][h]) for a, t in zip(alpha, seen, strict=True)
                )
            new.append(total / c.n_heads)
        x = [norm((old if c.skip else 0) + one) for old, one in zip(x, new, strict=True)]
        if c.nonlinearity != "none":
            bend = {"relu": torch.relu, "gelu": torch.nn.functional.gelu}[c.nonlinearity]
            out = [w["W_2"] @ bend(w["W_1"] @ one + w["b_1"]) + w["b_2"] for one in x]
            x = [norm((old if c.skip else 0) + one) for old, one in zip(x, out, strict=True)]
    place = len(document.ids) - 1 if c.causal else 0
    return x[place] if c.plain else net.W_c @ x[place]


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"depth": 3},
        {"skip": True},
        {"norm": True, "depth": 2},
        {"nonlinearity": "relu"},
        {"nonlinearity": "gelu", "depth": 2},
        {"causal": True, "depth": 2},
        {"tied": "query-key"},
        {"tied": "layers", "depth": 3, "skip": True},
        {"depth": 2, "skip": True, "norm": True, "nonlinearity": "gelu", "causal": True},
    ],
    ids=str,
)
def test_every_switch_does_what_it_says(switches):
    model = built(**switches)
    for text in TEXTS[:2]:
        with torch.no_grad():
            assert np.allclose(model([text])[0], by_hand(model, text).numpy(), atol=1e-12)


def test_hiding_a_token_equals_removing_it_from_every_layer():
    model = built(depth=2, skip=True, causal=True)
    document = model.encode("good film not dull")
    keep = np.array([[True, True, False, True, True]])
    other = model.encode("good story not dull")
    for absence in ("mask",):
        hidden = [model.masked(d, heedful.Target(1, "good"), keep, absence) for d in (document, other)]
        assert np.allclose(*hidden, atol=1e-12)


def test_a_plain_model_s_maps_have_a_row_for_every_token():
    paper = tiny_model()
    document = paper.encode(TEXTS[0])
    n = len(document.ids)
    whole = Transformer.of(paper).maps(document)
    assert whole.shape[2] == whole.shape[3] == paper.network.config.T_max
    assert np.allclose(whole[:, :, :n], paper.maps(document), atol=1e-14)
    deep = built(depth=3).maps(built(depth=3).encode(TEXTS[0]))
    assert deep.shape == (3, 2, 12, 12)
    assert np.allclose(deep.sum(axis=-1), 1)


def test_a_table_of_positions_that_does_not_exist_is_refused():
    config = TransformerConfig()
    # The tests check types at the door; a user's program does not.
    object.__setattr__(config, "positional", "learned")
    with pytest.raises(BadInput, match="positional is one of equation-3, authors; 'learned' was given"):
        config.__post_init__()


def test_a_transformer_without_layers_is_refused():
    with pytest.raises(BadInput, match="at least one layer"):
        TransformerConfig(depth=0)
