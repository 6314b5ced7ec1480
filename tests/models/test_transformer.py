import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput
from heedful.experiments.toy_tasks import histogram
from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.experiments.toy_tasks.dyck_network import DyckNetwork, DyckParts
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from heedful.models.vocabulary import Vocabulary
from tests.conftest import WORDS, tiny_model

HISTOGRAM = {
    **{"norm": True, "last_norm": False, "nonlinearity": "relu", "tied": "query-key", "values": "identity"},
    **{"positional": "halves", "padding": "hidden", "read": "last"},
}
DYCK = {"depth": 2, "skip": True, "norm": True, "nonlinearity": "relu", "causal": True, "positional": "authors"}
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
    filler = len(net.W_e) - 1 if c.padding == "eos" else 1
    ids = [*document.ids.tolist(), *[filler] * (c.T_max - len(document.ids))]
    x = [net.W_e[number] + net.W_p[place] for place, number in enumerate(ids)]
    last = c.causal or c.read == "last"
    shown = range(int(last and not c.causal), len(document.ids)) if c.padding == "hidden" else range(c.T_max)

    def norm(v, on=c.norm):
        return (v - v.mean()) / torch.sqrt(v.var(unbiased=False) + 1e-5) if on else v

    for depth in range(c.depth):
        w = net.layers[0 if c.tied == "layers" else depth].weights
        new = []
        for s in range(c.T_max):
            total = 0
            for h in range(c.n_heads):
                q = w["W_q"][h] @ x[s] + w["b_q"][h]
                W_k = w["W_q"] if c.tied == "query-key" else w["W_k"]
                seen = [t for t in shown if t <= s or not c.causal]
                scores = torch.stack([q @ (W_k[h] @ x[t] + w["b_k"][h]) / c.d_att**0.5 for t in seen])
                alpha = torch.softmax(scores, dim=0)
                if c.values == "identity":
                    total = total + sum(a * x[t] for a, t in zip(alpha, seen, strict=True))
                    continue
                total = total + w["W_o"][h] @ sum(
                    a * (w["W_v"][h] @ x[t] + w["b_v"][h]) for a, t in zip(alpha, seen, strict=True)
                )
            new.append(total / c.n_heads)
        ends = c.norm and (c.last_norm or depth < c.depth - 1)
        between = c.norm if c.nonlinearity != "none" else ends
        x = [norm((old if c.skip else 0) + one, between) for old, one in zip(x, new, strict=True)]
        if c.nonlinearity != "none":
            bend = {"relu": torch.relu, "gelu": torch.nn.functional.gelu}[c.nonlinearity]
            out = [w["W_2"] @ bend(w["W_1"] @ one + w["b_1"]) + w["b_2"] for one in x]
            x = [norm((old if c.skip else 0) + one, ends) for old, one in zip(x, out, strict=True)]
    place = len(document.ids) - 1 if last else 0
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
        {"positional": "learned", "padding": "eos"},
        {"positional": "none", "padding": "hidden", "depth": 2, "skip": True},
        {"padding": "hidden", "causal": True, "depth": 2},
        {"positional": "halves", "values": "identity", "norm": True, "last_norm": False, "nonlinearity": "relu"},
        {"values": "identity", "read": "last", "padding": "hidden", "norm": True, "last_norm": False, "depth": 2},
    ],
    ids=str,
)
def test_every_switch_does_what_it_says(switches):
    model = built(**switches)
    for text in TEXTS[:2]:
        with torch.no_grad():
            assert np.allclose(model([text])[0], by_hand(model, text).numpy(), atol=1e-12)


def with_weights(model, weights, of_layers):
    """The model with weights of another form of the same network; biases that the other does not have stay zero."""
    net = model.network
    with torch.no_grad():
        for name, tensor in weights.items():
            getattr(net, name).copy_(tensor)
        for layer, own in zip(net.layers, of_layers, strict=True):
            for name, tensor in own.items():
                layer.weights[name].copy_(tensor)
    return model


def test_with_the_switches_of_the_histogram_network_it_is_that_of_the_lecture():
    sizes = histogram.Sizes(length=6, n_tokens=5, width=8, n_hidden=10)
    p = {name: weight.double() for name, weight in histogram.initial(sizes, 0).items()}
    tokens = torch.randint(5, (4, 6), generator=torch.Generator().manual_seed(0))
    logits, maps = histogram.predict_counts({**p, "sight": torch.ones(8, dtype=torch.float64)}, tokens)
    config = TransformerConfig(**HISTOGRAM, n_heads=1, T_max=7, d_e=8, d_att=8, d_hidden=10, n_classes=7)
    letters = tuple("dtibc")
    network = initial_network(config, 7, 0).double()
    # The last map is W_2 alone: W_c is the identity on the first coordinates.
    words, places = network.W_e.detach() * 0, network.W_p.detach() * 0
    words[2:, :4], places[1:, 4:] = p["W_e"], p["W_p"]
    last = torch.cat([p["W_2"], torch.zeros(1, 10)]), torch.cat([p["b_2"], torch.zeros(1)])
    layer = {"W_q": p["W_q"][None], "W_1": p["W_1"], "b_1": p["b_1"], "W_2": last[0], "b_2": last[1]}
    model = Transformer(network, Vocabulary(("[cls]", "[unk]", *letters)), [f"{n}" for n in range(7)])
    with_weights(model, {"W_e": words, "W_p": places, "W_c": torch.eye(7, 8)}, [layer])
    texts = [" ".join(letters[token] for token in row) for row in tokens.tolist()]
    assert np.allclose(model(texts), logits[:, -1].numpy(), atol=1e-12)
    for text, row in zip(texts, maps[:, -1].numpy(), strict=True):
        assert np.allclose(model.attention([model.encode(text)])[0, 0, 0], [0, *row], atol=1e-12)


def test_with_the_switches_of_the_dyck_network_it_is_that_of_the_lecture():
    language = Dyck(2, 3)
    other = DyckNetwork(language, width=14)
    p = {name: weight.double() for name, weight in other.initial(0).items()}
    strings = language.strings(5, 8, 8, 0)
    fixed = {name: tensor.double() for name, tensor in other.fixed(DyckParts(), 8, 0).items()}
    read = other.run({**p, **fixed}, torch.from_numpy(strings))
    config = TransformerConfig(**DYCK, n_heads=1, T_max=10, d_e=14, d_att=14, d_out=14, d_hidden=14, n_classes=6)
    vocabulary = Vocabulary(("[cls]", "[unk]", "(", "[", ")", "]"))
    model = Transformer(initial_network(config, 6, 0).double(), vocabulary, [f"{n}" for n in range(6)])
    rows = [language.begin, language.end, 0, 1, 2, 3]
    names = {"W_q": "query", "W_k": "key", "W_v": "value", "W_o": "out", "W_1": "hidden", "W_2": "back"}
    layers = [{ours: p[f"{theirs}_{n}"].T for ours, theirs in names.items()} for n in (1, 2)]
    with_weights(model, {"W_e": p["tokens"][rows], "W_c": p["readout"].T}, layers)
    texts = [" ".join(language.spell(row[:length])) for row in strings for length in (1, 5, 8)]
    expected = read.logits[:, [1, 5, 8]].flatten(0, 1).numpy()
    assert np.allclose(model(texts), expected, atol=1e-9)


def test_the_halves_of_words_and_positions_do_not_mix():
    model = built(positional="halves")
    e = model.embed([model.encode("good film")])[0]
    words, places = model.network.W_e, model.network.W_p
    assert torch.equal(e[1], torch.cat([words[model.vocabulary.index["good"], :4], places[1, 4:]]))
    assert not words[:, 4:].any()
    assert not places[:, :4].any()
    e.square().sum().backward()
    assert not words.grad[:, 4:].any()
    assert not places.grad[:, :4].any()


@pytest.mark.parametrize("switches", [{"read": "last"}, {"causal": True}, {}], ids=str)
def test_a_text_of_which_nothing_is_left_is_read_from_cls(switches):
    model = built(padding="hidden", positional="learned", **switches)
    assert np.isfinite(model([""])).all()
    document = model.encode("good film")
    keep = np.array([[True, False, False]])
    assert np.isfinite(model.masked(document, heedful.Target(1, ""), keep, "mask")).all()
    alone, padded = model(["good film"]), model(["good film", "a b c d e f g h i"])[:1]
    assert np.allclose(alone, padded, atol=1e-13)


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
    object.__setattr__(config, "positional", "rotary")
    with pytest.raises(BadInput, match="positional is one of equation-3, .*, none; 'rotary' was given"):
        config.__post_init__()


def test_a_transformer_without_layers_is_refused():
    with pytest.raises(BadInput, match="at least one layer"):
        TransformerConfig(depth=0)
