"""The authors' procedure in its own form, relevance handed from layer to layer, against our backward pass."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.module import _global_forward_hooks
from torch.overrides import _get_current_function_mode_stack
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask
from transformers.pytorch_utils import Conv1D

import heedful
from heedful.explainers.relevance import descent
from heedful.models.attention_hook import Attended, still
from heedful.models.network import Config, Network
from heedful.models.relevance import propagation, rules
from heedful.models.relevance.propagation import attended, propagating
from heedful.models.single_layer import SingleLayer
from heedful.models.vocabulary import Vocabulary
from tests.conftest import WORDS
from tests.families import BOTH, Encoder, build, split, texts_for

METHOD = "relevance-attention"


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def over(a, b):
    return torch.where(b.abs() <= 1e-9, 0, a / b)


def relevance_of_inputs(network, x, R):
    x = x.clone().requires_grad_()
    with still(network), propagating(network, len(x)):
        y = network(x)
        torch.autograd.backward(y, R / y.detach())
    return x.detach() * x.grad


def by_equation_5(x, w, R):
    """R_j = Σ_{i | (i,j) ∈ q} x_j w_ji / Σ_{j' | (j',i) ∈ q} x_j' w_j'i R_i with q = {(i, j) | x_j w_ji ≥ 0}."""
    n_out, n_in = w.shape
    result = torch.zeros(n_in, dtype=x.dtype)
    for i in range(n_out):
        q = [j for j in range(n_in) if x[j] * w[i, j] >= 0]
        for j in q:
            result[j] += x[j] * w[i, j] / sum(x[other] * w[i, other] for other in q) * R[i]
    return result


@pytest.mark.parametrize("kind", ["linear", "conv1d", "matrix", "einsum"])
def test_a_linear_map_counts_positive_contributions_alone(kind):
    x, R, w, b = drawn(3, 5), drawn(3, 4, seed=1), drawn(4, 5, seed=2), drawn(4, seed=3)
    network = {"linear": nn.Linear(5, 4), "conv1d": Conv1D(4, 5)}.get(kind, nn.Module()).double()
    network.weight, network.bias = (nn.Parameter(t) for t in (w.T.clone() if kind == "conv1d" else w, b))
    if kind in ("matrix", "einsum"):
        network.forward = lambda x: (x @ w.T if kind == "matrix" else torch.einsum("ti,ji->tj", x, w)) + b
    truth = torch.stack([by_equation_5(one, w, of) for one, of in zip(x, R, strict=True)])
    assert torch.allclose(relevance_of_inputs(network, x, R), truth)


class Positive(nn.Module):
    """Attention, a skip connection, a norm, a gate and a mean, all of positive numbers."""

    def __init__(self):
        super().__init__()
        self.maps = nn.ModuleList([nn.Linear(6, 6) for _ in range(6)])
        self.norm, self.bend, self.out = nn.RMSNorm(6), nn.GELU(), nn.Linear(6, 2)
        self.double()
        for n, weight in enumerate(self.parameters()):
            weight.data = drawn(*weight.shape, seed=n).abs()

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (2, 3)).transpose(1, 2) for part in self.maps[:3])
        out = attended(Attended(self, q, k, v, None, False, 1.0)).transpose(1, 2).flatten(2)
        joined = self.norm(x + self.maps[3](out))
        gated = self.bend(self.maps[4](joined)) * self.maps[5](joined)
        self.cuts = [(q, k, v), (out,), (joined,), (gated,)]
        for tensor in (q, k, v, out, joined, gated):
            tensor.retain_grad()
        return self.out(gated.mean(dim=1))


def test_relevance_is_conserved_layer_by_layer():
    network, R = Positive(), torch.eye(2).double()
    relevance = relevance_of_inputs(network, drawn(2, 4, 6).abs(), R)
    of_qkv, of_out, *above = [sum((t * t.grad).detach().flatten(1).sum(1) for t in cut) for cut in network.cuts]
    assert torch.allclose(of_qkv, of_out)
    assert ((of_out > 0) & (of_out < 1)).all()
    assert all(torch.allclose(total, R.sum(dim=1)) for total in (*above, relevance.sum(dim=(1, 2))))


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "gpt2", "llama", "qwen"])
def test_a_network_loses_relevance_only_where_nothing_contributes(family, monkeypatch):
    lost = []

    def noted(a, b):
        lost.append(float(a[b.abs() <= 1e-9].sum()))
        return over(a, b)

    for module in (rules, propagation):
        monkeypatch.setattr(module, "over", noted)
    model = build(family)
    documents = list(map(model.encode, texts_for(family)))
    with torch.enable_grad(), still(model.network), propagating(model.network, 3), model.listening(attended):
        e = model.embed(documents).detach().requires_grad_()
        logits = model.forward(e, documents)
        torch.autograd.backward(logits, torch.eye(logits.shape[1]).to(logits)[:3] / logits.detach())
    assert float((e.detach() * e.grad).sum()) == pytest.approx(3 - sum(lost), rel=1e-8)


def test_in_a_linear_model_relevance_is_the_share_of_each_input():
    network = nn.Sequential(nn.Linear(5, 4, bias=False), nn.ReLU(), nn.Linear(4, 3, bias=False)).double()
    for weight in network.parameters():
        weight.data.abs_()
    x = drawn(5).abs()
    relevance = relevance_of_inputs(network, x[None], torch.eye(3).double()[1:2])[0]
    assert torch.allclose(relevance, x * torch.func.jacrev(network)(x)[1] / network(x)[1])


def test_uniform_attention_over_positive_values_has_a_closed_form():
    """With A = 1/T and s_{h,t} the share of f that head h takes from token t: R = ½ s, ∇A = T f s."""
    config = Config(n_heads=2, T_max=6, d_e=4, d_att=3, d_out=3, n_classes=2)
    vocabulary = Vocabulary(("[cls]", "[unk]", *WORDS))
    shapes = {"W_e": (len(vocabulary), 4), "W_k": (2, 3, 4), "W_v": (2, 3, 4), "W_l": (2, 2, 3)}
    weights = {name: drawn(*shape, seed=n).abs() + 2 for n, (name, shape) in enumerate(shapes.items())}
    weights |= {"W_q": torch.zeros(2, 3, 4)} | {name: torch.zeros(2, 3) for name in ("b_q", "b_k", "b_v")}
    model = SingleLayer(Network(config, weights).double(), vocabulary, ["bad", "good"])
    explanation = heedful.explain(model, "good film", METHOD, target="good")
    e = model.embed([explanation.document])[0].detach()
    parts = torch.einsum("hd,hde,te->ht", weights["W_l"][:, 1], weights["W_v"], e) / 2 / 6
    f = float(parts.sum())
    truth = (6 * f * (parts / f) ** 2 / 2).mean(dim=0)
    assert np.allclose(
        [explanation.output, explanation.facts["[cls]"], *explanation.scores], [f, 1 + truth[0], *truth[1:3]]
    )


def down_linear(module, x, R):
    w = module.weight.detach().T if isinstance(module, Conv1D) else module.weight.detach()
    pairs = [(x.clamp(min=0), w.clamp(min=0)), (x.clamp(max=0), w.clamp(max=0))]
    S = over(R, sum(part @ weight.T for part, weight in pairs))
    return sum(part * (S @ weight) for part, weight in pairs)


def down_skip(u, v, R):
    a, b = u * over(R, u + v), v * over(R, u + v)
    whole = a.sum().abs() + b.sum().abs()
    return tuple(part * part.sum().abs() / whole * R.sum() / part.sum() for part in (a, b))


def down_attention(q, k, v, A, R):
    S = over(R, A @ v)
    R_A, R_v = A * (S @ v.mT) / 2, v * (A.mT @ S) / 2
    S = over(R_A, q @ k.mT)
    return R_A, (q * (S @ k) / 2, k * (S.mT @ q) / 2, R_v)


POST = ("attention.output.LayerNorm", "output.LayerNorm")
QKV = ("attention.self.query", "attention.self.key", "attention.self.value")
PARTS = {  # layers, norms, q k v, what joins the heads, the two maps behind, the head, the row that is read
    "bert": ("bert.encoder.layer", POST, QKV, "attention.output.dense", ("intermediate.dense", "output.dense"),
             ("bert.pooler.dense", "classifier"), 0),
    "vit": ("vit.layers", ("layernorm_before", "layernorm_after"), [f"attention.{x}_proj" for x in "qkv"],
            "attention.o_proj", ("mlp.fc1", "mlp.fc2"), ("classifier",), 0),
    "gpt2": ("transformer.h", ("ln_1", "ln_2"), ("attn.c_attn",), "attn.c_proj", ("mlp.c_fc", "mlp.c_proj"),
             ("lm_head",), -1),
}  # fmt: skip


def by_hand(family, given, index):
    """A, ∇A and R of every layer, last to first, from a copy of the network with attention written out."""
    network, seen, maps = deepcopy(build(family).network), {}, []
    layers, norms, qkv, joins, behind, head, row = PARTS[family]

    def attention(module, query, key, value, attention_mask, scaling=None, **others):
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        maps.append(torch.softmax(scores if attention_mask is None else scores + attention_mask, dim=-1))
        return (maps[-1] @ value).transpose(1, 2), None

    def note(module, inputs, output):
        if inputs and isinstance(output, torch.Tensor):
            seen[module] = inputs[0].detach()[0], output.detach()[0]

    AttentionInterface.register("by-hand", attention)
    AttentionMaskInterface.register("by-hand", eager_mask)
    network.set_attn_implementation("by-hand")
    network.apply(lambda module: module.register_forward_hook(note))
    logits = network(given).logits.flatten(0, -2)[-1]
    slopes = torch.autograd.grad(logits[index], maps)
    R = torch.eye(len(logits)).double()[index]
    for module in (network.get_submodule(name) for name in reversed(head)):
        x = seen[module][0]
        R = down_linear(module, x[row] if x.dim() == 2 else x, R)
    R = torch.eye(maps[0].shape[-1]).double()[row][:, None] * R
    for n in reversed(range(len(maps))):
        part = network.get_submodule(f"{layers}.{n}").get_submodule
        (one, two), (up, back), o, reads = map(part, norms), map(part, behind), part(joins), [part(x) for x in qkv]
        R_skip, R = down_skip(seen[one][1] if norms is POST else seen[two][0], seen[back][1], R)
        R = R_skip + down_linear(up, seen[up][0], down_linear(back, seen[back][0], R))
        R_skip, R = down_skip(seen[reads[0]][0] if norms is POST else seen[one][0], seen[o][1], R)
        outs = torch.cat([seen[x][1] for x in reads], dim=-1).chunk(3, dim=-1)
        heads = [t.unflatten(-1, (4, -1)).transpose(0, 1) for t in (*outs, down_linear(o, seen[o][0], R))]
        R_A, R_qkv = down_attention(*heads[:3], maps[n].detach()[0], heads[3])
        R_qkv = torch.cat([t.transpose(0, 1).flatten(1) for t in R_qkv], dim=-1).chunk(len(reads), dim=-1)
        R = R_skip + sum(down_linear(x, seen[x][0], r) for x, r in zip(reads, R_qkv, strict=True))
        yield slopes[n][0], R_A


@pytest.mark.parametrize("family", ["bert", "vit", "gpt2"])
@pytest.mark.parametrize("index", [0, 2])
def test_the_scores_are_the_authors_procedure(family, index):
    model, text = build(family), texts_for(family)[1]
    document, vision = model.encode(text), family == "vit"
    given = torch.tensor(document.picture.pixels).double() if vision else torch.tensor(document.ids)
    C = np.eye(len(document.ids))
    for slope, R in by_hand(family, given[None], index):
        bar = np.eye(len(C))
        for h, s, t in np.ndindex(*R.shape):
            bar[s, t] += max(0.0, float(slope[h, s, t]) * float(R[h, s, t])) / len(R)
        C = C @ bar
    row = C[PARTS[family][-1]]
    explanation = heedful.explain(model, text, METHOD, target=index, unit="patch" if vision else "token")
    assert np.abs(explanation.scores - row[document.words >= 0]).max() <= 1e-9 * explanation.scores.max()
    assert (row > 1e-6).all()


@pytest.mark.parametrize("family", ["bert", "gpt2", "mistral", "vit", "transformer", "encoder", "torch", "tiny"])
def test_a_batch_of_n_is_n_batches_of_one(family, tiny):
    model, texts = (tiny, texts_for("bert")) if family == "tiny" else (build(family), texts_for(family))
    for text, explanation in zip(texts, heedful.explain(model, texts, METHOD), strict=True):
        alone = heedful.explain(model, text, METHOD).scores
        assert (explanation.scores >= 0).all()
        assert np.abs(explanation.scores - alone).max() <= 1e-9 * alone.max()


class Turned(Encoder):
    # Tokens lie on the first axis.
    def forward(self, ids):
        return self.out(self.encoder(self.words(ids).transpose(0, 1)).mean(dim=0))


def test_a_module_that_puts_its_tokens_first_is_followed_text_by_text():
    model, turned, texts = build("torch"), Turned().double().eval(), ["the film was good", "so it was bad"]
    turned.load_state_dict(model.network.state_dict())
    for layer in turned.encoder.layers:
        layer.self_attn.batch_first = False
    pairs = zip(
        *(heedful.explain(version, texts, METHOD) for version in (model, heedful.wrap(turned, split))), strict=True
    )
    assert all(np.allclose(one.scores, other.scores, rtol=1e-9) for one, other in pairs)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "torch", "transformer", "encoder"])
def test_layers_that_are_run_again_give_the_same(family, monkeypatch):
    kept = heedful.explain(build(family), texts_for(family)[0], METHOD)
    monkeypatch.setattr(descent, "PASS_MEMORY", 1)
    rerun = heedful.explain(build(family), texts_for(family)[0], METHOD)
    assert (kept.facts["forwards"], rerun.facts["forwards"]) == (2, 4)
    assert np.abs(kept.scores - rerun.scores).max() <= 1e-9 * kept.scores.max()


def test_a_contrast_propagates_each_class_separately():
    asked = [{"target": "good", "against": "bad"}, {"target": "bad", "against": "good"}]
    one, other = (heedful.explain(build("bert"), texts_for("bert")[0], METHOD, **targets) for targets in asked)
    assert one.facts["backwards"] == 3
    # Both ∇A and R change their sign, so their product does not.
    assert np.allclose(one.scores, other.scores, rtol=1e-9)


@pytest.mark.parametrize("family", BOTH)
def test_cross_attention_is_refused(family):
    with pytest.raises(heedful.errors.Unsupported, match="cross-attention"):
        heedful.explain(build(family), texts_for(family)[0], METHOD)


def state(network):
    own = [("forward" in part.__dict__, len(part._forward_hooks), part.training) for part in network.modules()]
    weights = [(weight.requires_grad, weight.grad is None) for weight in network.parameters()]
    return own, weights, len(_global_forward_hooks), _get_current_function_mode_stack(), torch.is_grad_enabled()


@pytest.mark.parametrize("family", ["bert", "gpt2", "torch"])
@pytest.mark.parametrize("large", [descent.PASS_MEMORY, 1])
def test_nothing_is_left_behind_even_after_an_error(family, large, monkeypatch):
    model, text = build(family), texts_for(family)[0]
    before, first = state(model.network), heedful.explain(model, text, METHOD)
    assert state(model.network) == before

    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(descent, "PASS_MEMORY", large)
    monkeypatch.setattr(propagation, "map_relevance", fails)
    with pytest.raises(ZeroDivisionError):
        heedful.explain(model, text, METHOD)
    monkeypatch.undo()
    assert state(model.network) == before
    assert (heedful.explain(model, text, METHOD).scores == first.scores).all()
