"""Methods of attention against plain computations from their papers, on transformers' own eager attention."""

from collections import deque
from functools import cache

import numpy as np
import pytest
import torch
from scipy.linalg import null_space
from torch.nn.functional import gelu, layer_norm

import heedful
from heedful.document import SPECIAL
from heedful.explainers import gradient_attention
from tests.families import build, texts_for
from tests.parity.test_eager_attention import eager, given, kinds_of, last, theirs

PAPERS = ["bert", "gpt2", "llama", "t5", "bart", "vit", "transformer", "torch"]
WRITERS = ["t5", "bart"]
NAMES = {
    "bert": ("bert.encoder.layer.{}.attention.self.value", "bert.encoder.layer.{}.attention.output.dense"),
    "gpt2": ("transformer.h.{}.attn.c_attn", "transformer.h.{}.attn.c_proj"),
    "llama": ("model.layers.{}.self_attn.v_proj", "model.layers.{}.self_attn.o_proj"),
    "t5": ("decoder.block.{}.layer.1.EncDecAttention.v", "decoder.block.{}.layer.1.EncDecAttention.o"),
    "bart": ("model.decoder.layers.{}.encoder_attn.v_proj", "model.decoder.layers.{}.encoder_attn.out_proj"),
    "vit": ("vit.layers.{}.attention.v_proj", "vit.layers.{}.attention.o_proj"),
}


class Passed:
    """One plain forward pass: maps (head, query, key) in order with their kinds, and the row of logits."""

    def __init__(self, family, text):
        self.family, self.model = family, build(family)
        self.document = self.model.encode(text)
        self.values, self.joins = [], []
        if family in NAMES:
            with pytest.MonkeyPatch.context() as patch:
                found = eager(self.model, self.document, patch)
            self.kinds, self.maps, self.logits = kinds_of(found), theirs(found), last(found.logits)[0]
            self._listen(self.kinds.count("cross") or len(self.maps))
        else:
            self.kinds, self.maps = [], []
            self.logits = {"torch": self._torch, "transformer": self._transformer}[family]()
            self.kinds = ["self"] * len(self.maps)

    def _attend(self, q, k, v, W_O):
        """All of (head, token, d); the map keeps its gradient."""
        A = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)[None]
        self.maps.append(A)
        self.values.append(v.detach())
        self.joins.append(W_O.detach())
        return A[0] @ v

    def _torch(self):
        network = self.model.network
        x = network.words(torch.from_numpy(self.document.ids))
        for layer in network.encoder.layers:
            joined = layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias
            q, k, v = torch.nn.functional.linear(x, *joined).unflatten(-1, (3, 4, 4)).permute(1, 2, 0, 3)
            W_O = layer.self_attn.out_proj.weight.T.unflatten(0, (4, 4))
            o = self._attend(q, k, v, W_O).transpose(0, 1).flatten(1)
            x = layer.norm1(x + layer.self_attn.out_proj(o))
            x = layer.norm2(x + layer.linear2(layer.linear1(x).relu()))
        return network.out(x.mean(dim=0))

    def _transformer(self):
        network, K = self.model.network, 2
        ids = [*self.document.ids.tolist(), *[1] * (network.config.T_max - len(self.document.ids))]
        x = network.W_e[ids] + network.W_p
        for layer in network.layers:
            w = layer.weights
            q, k, v = (x @ w[f"W_{name}"].transpose(1, 2) + w[f"b_{name}"][:, None] for name in "qkv")
            W_O = w["W_o"].transpose(1, 2) / K
            x = layer_norm(x + sum(self._attend(q, k, v, W_O) @ W_O), x.shape[-1:])
            x = layer_norm(x + gelu(x @ w["W_1"].T + w["b_1"]) @ w["W_2"].T + w["b_2"], x.shape[-1:])
        return network.W_c @ x[0]

    @torch.no_grad()
    def _listen(self, n_layers):
        """Values and W_O, head by head, of the modules that have these names."""
        network, heads = self.model.network, self.maps[0].shape[1]
        value, join = NAMES[self.family]
        caught = []
        modules = [network.get_submodule(value.format(layer)) for layer in range(n_layers)]
        handles = [module.register_forward_hook(lambda _m, _i, out: caught.append(out[0])) for module in modules]
        network(**given(self.model, self.document))
        for handle in handles:
            handle.remove()
        for layer, flat in enumerate(caught):
            v = flat.chunk(3, dim=-1)[2] if self.family == "gpt2" else flat
            v = v.unflatten(-1, (-1, 4)).transpose(0, 1)
            self.values.append(torch.stack([v[head * len(v) // heads] for head in range(heads)]))
            weight = network.get_submodule(join.format(layer)).weight
            self.joins.append((weight if self.family == "gpt2" else weight.T).detach().unflatten(0, (heads, -1)))

    @property
    def readout(self):
        n = self.maps[-1].shape[2]
        if self.family == "torch":
            return np.full(n, 1 / n)
        return np.eye(n)[0 if self.family in ("bert", "vit", "transformer") else n - 1]

    @property
    def looks(self):
        """The maps that look at the document, from the tower that is read out."""
        wanted = "cross" if self.family in WRITERS else "self"
        return [A[0].detach().numpy() for kind, A in zip(self.kinds, self.maps, strict=True) if kind == wanted]

    def sizes(self):
        n_source = self.maps[0].shape[-1] if self.family in WRITERS else 0
        return self.maps[-1].shape[2], n_source


@cache
def passed(family, number=0):
    return Passed(family, texts_for(family)[number])


def agree(explanation, row, n_source=0, tolerance=1e-6):
    """The row holds the read-out tower's inputs, then the source's; a document has them the other way round."""
    row = [*row[len(row) - n_source :], *row[: len(row) - n_source]]
    document = explanation.document
    scores, apart = [], {}
    for token, score in enumerate(row):
        if token >= len(document.ids):
            apart["padding"] = apart.get("padding", 0.0) + score
        elif document.words[token] == SPECIAL:
            apart[document.pieces[token]] = apart.get(document.pieces[token], 0.0) + score
        else:
            scores.append(score)
    largest = np.abs(row).max()
    assert largest > 0
    assert np.abs(explanation.scores - scores).max() <= tolerance * largest
    for piece, score in apart.items():
        assert abs(explanation.facts.get(piece, 0.0) - score) <= tolerance * largest


def ours(family, method, number=0, **settings):
    model, text = build(family), texts_for(family)[number]
    return heedful.explain(model, text, method, unit="patch" if family == "vit" else "token", **settings)


def blocks(run):
    """Every layer as a matrix over the tower that is read out and its source: ½ mean_h A + ½ I where it acts."""
    n_own, n_source = run.sizes()
    own, source = slice(0, n_own), slice(n_own, n_own + n_source)
    for kind, A in zip(run.kinds, run.maps, strict=True):
        M, mean = np.eye(n_own + n_source), A[0].mean(dim=0).detach().numpy()
        above, below = {"self": (own, own), "cross": (own, source), "source": (source, source)}[kind]
        M[above, above] *= 0.5
        M[above, below] += 0.5 * mean
        yield M


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", PAPERS)
def test_rollout_is_the_product_of_whole_matrices(family, number):
    run = passed(family, number)
    product = np.eye(sum(run.sizes()))
    for M in blocks(run):
        product = M @ product
    row = run.readout @ product[: len(run.readout)]
    assert row.sum() == pytest.approx(1.0)
    agree(ours(family, "rollout", number), row, run.sizes()[1])


def maximum_flow(capacity, source, sink):
    """Edmonds & Karp, 1972: shortest ways with room left, until there is none."""
    room, flow = {node: dict(others) for node, others in capacity.items()}, 0.0
    while True:
        came, waiting = {source: None}, deque([source])
        while waiting and sink not in came:
            node = waiting.popleft()
            for other, width in room.get(node, {}).items():
                if width > 1e-13 and other not in came:
                    came[other] = node
                    waiting.append(other)
        if sink not in came:
            return flow
        way = [sink]
        while came[way[-1]] is not None:
            way.append(came[way[-1]])
        steps = list(zip(way[1:], way[:-1], strict=True))
        narrow = min(room[a][b] for a, b in steps)
        for a, b in steps:
            room[a][b] -= narrow
            back = room.setdefault(b, {})
            back[a] = back.get(a, 0.0) + narrow
        flow += narrow


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", "torch"])
def test_attention_flow_is_the_maximum_flow_to_each_token(family):
    number = 2 if family == "bart" else 0
    run = passed(family, number)
    n_own, n_source = run.sizes()
    layers = list(blocks(run))
    # Where a layer does not act a pipe is 1 wide, which is no limit: no more than 1 leaves the top.
    pipes = {"top": {(len(layers), s): float(r) for s, r in enumerate(run.readout) if r}}
    for depth, M in enumerate(layers):
        for s, t in np.argwhere(M > 0).tolist():
            pipes.setdefault((depth + 1, s), {})[(depth, t)] = float(M[s, t])
    row = np.array([maximum_flow(pipes, "top", (0, token)) for token in range(n_own + n_source)])
    agree(ours(family, "attention-flow", number), row, n_source)


def raised(run):
    """Ā = E_h (∇A ⊙ A)⁺ of every layer, Eq. (5)."""
    slopes = torch.autograd.grad(run.logits.max(), run.maps, retain_graph=True)
    return [(A * slope).clamp(min=0)[0].mean(dim=0).detach().numpy() for A, slope in zip(run.maps, slopes, strict=True)]


def normalised(R):
    """R̄, Eqs. (8) and (9)."""
    rest = R - np.eye(len(R))
    for row in rest:
        if row.sum() > 0:
            row /= row.sum()
    return rest + np.eye(len(R))


def relevance(run):
    """Eqs. (6), (7) through self-attention, Eq. (10) through cross-attention; Eq. (11) adds nothing as R_qs is zero."""
    n_own, n_source = run.sizes()
    R_tt, R_ss, R_ts = np.eye(n_own), np.eye(n_source), np.zeros((n_own, n_source))
    for kind, A in zip(run.kinds, raised(run), strict=True):
        if kind == "source":
            R_ss = R_ss + A @ R_ss
        elif kind == "self":
            R_tt, R_ts = R_tt + A @ R_tt, R_ts + A @ R_ts
        else:
            R_ts = R_ts + normalised(R_tt).T @ A @ normalised(R_ss)
    return run.readout @ np.concatenate([R_tt, R_ts], axis=1)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", PAPERS)
def test_gradient_attention_is_that_of_chefer_gur_and_wolf(family, number):
    run = passed(family, number)
    agree(ours(family, "gradient-attention", number), relevance(run), run.sizes()[1])


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "vit", "torch"])
def test_gradient_attention_is_the_same_when_layers_are_run_again(family, monkeypatch):
    run = passed(family)
    monkeypatch.setattr(gradient_attention, "PASS_MEMORY", 1)
    explanation = ours(family, "gradient-attention")
    assert explanation.facts["forwards"] == 2
    agree(explanation, relevance(run))


@pytest.mark.parametrize("family", PAPERS)
def test_value_norms_are_lengths_of_weighted_vectors(family):
    run = passed(family)
    norms = np.zeros((len(run.looks), run.looks[0].shape[-1]))
    for layer, (A, v, W_O) in enumerate(zip(run.looks, run.values, run.joins, strict=True)):
        for s in np.flatnonzero(run.readout):
            for t in range(norms.shape[1]):
                written = sum(A[head, s, t] * (v[head, t] @ W_O[head]).numpy() for head in range(len(v)))
                norms[layer, t] += run.readout[s] * np.linalg.norm(written)
    row, n_source = norms.mean(axis=0), run.sizes()[1]
    row = np.concatenate([np.zeros(run.sizes()[0]), row]) if n_source else row
    agree(ours(family, "value-norms"), row, n_source)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", PAPERS)
def test_effective_attention_is_attention_less_its_part_in_the_null_space(family, number):
    run = passed(family, number)
    heads = []
    for A, v in zip(run.looks, run.values, strict=True):
        for alpha, V in zip(run.readout @ A, v.numpy(), strict=True):
            N = null_space(V.T)
            effective = alpha - N @ (N.T @ alpha)
            assert np.allclose(effective @ V, alpha @ V)
            heads.append(np.abs(effective))
    row, n_source = np.mean(heads, axis=0), run.sizes()[1]
    row = np.concatenate([np.zeros(run.sizes()[0]), row]) if n_source else row
    agree(ours(family, "effective-attention", number), row, n_source)
