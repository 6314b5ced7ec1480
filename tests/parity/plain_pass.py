"""One plain forward pass of every family on transformers' own eager attention, for tests against the papers."""

from functools import cache

import numpy as np
import pytest
import torch
from torch.nn.functional import gelu, layer_norm

import heedful
from heedful.document import SPECIAL
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
                outputs = eager(self.model, self.document, patch)
            self.kinds, self.maps, self.logits = kinds_of(outputs), theirs(outputs), last(outputs.logits)[0]
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
