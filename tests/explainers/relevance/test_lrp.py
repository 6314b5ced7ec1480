"""Relevance propagation written as it is in the papers, relevance handed from layer to layer, against our one pass."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask
from transformers.pytorch_utils import Conv1D

import heedful
from heedful.errors import BadInput
from heedful.explainers.relevance import descent
from tests.explainers.relevance.test_relevance_attention import PARTS, POST, down_skip, over, state
from tests.explainers.relevance.test_relevance_attention import down_linear as down_positive
from tests.families import build, texts_for

RULES = ("conservative", "attnlrp", "z-plus")
LAST = {"bert": "bert.embeddings.LayerNorm", "gpt2": "transformer.ln_f", "vit": "vit.layernorm"}


def explained(family, number=1, **settings):
    unit = "patch" if family == "vit" else "token"
    return heedful.explain(build(family), texts_for(family)[number], "lrp", unit=unit, **settings)


class Reference:
    """One text through a copy of the network; then relevance by hand, with what biases and others get in `lost`."""

    def __init__(self, family, rule):
        self.family, self.rule, self.lost, self.maps, self.seen = family, rule, 0.0, [], {}
        self.network = deepcopy(build(family).network)

    def attention(self, module, query, key, value, attention_mask, scaling=None, **others):
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        self.maps.append(torch.softmax(scores if attention_mask is None else scores + attention_mask, dim=-1)[0])
        return (self.maps[-1] @ value[0]).transpose(0, 1)[None], None

    def note(self, module, inputs, output):
        if inputs and isinstance(output, torch.Tensor):
            self.seen[module] = inputs[0].detach()[0], output.detach()[0]

    def part(self, name):
        return self.network.get_submodule(name)

    def keep(self, R, kept):
        self.lost += float(R.sum() - kept.sum())
        return kept

    def linear(self, module, R, row=None):
        x, y = (t if row is None or t.dim() == 1 else t[row] for t in self.seen[module])
        if self.rule == "z-plus":
            return self.keep(R, down_positive(module, x, R))
        w = module.weight.detach()
        return self.keep(R, x * (over(R, y) @ (w.T if isinstance(module, Conv1D) else w)))

    def norm(self, module, R):
        (x, y), d = self.seen[module], R.shape[-1]
        if self.rule == "z-plus":
            return self.keep(R, torch.where(x == 0, 0, R))
        fixed = (torch.eye(d).double() - 1 / d) * module.weight.detach()[:, None]
        deviation = (x.var(dim=-1, correction=0, keepdim=True) + module.eps).sqrt()
        return self.keep(R, x * (over(R, y) @ fixed) / deviation)

    def skip(self, u, v, R):
        return down_skip(u, v, R) if self.rule == "z-plus" else (u * over(R, u + v), v * over(R, u + v))

    def heads(self, q, k, v, A, R):
        S = over(R, A @ v)
        if self.rule == "conservative":
            return torch.zeros_like(q), torch.zeros_like(k), v * (A.mT @ S)
        R_A, R_v, scores = A * (S @ v.mT) / 2, v * (A.mT @ S) / 2, q @ k.mT / q.shape[-1] ** 0.5
        if self.rule == "attnlrp":
            # The derivative of the softmax: x_i (R_i − s_i Σ_j R_j).
            R_A = scores * (R_A - A * R_A.sum(dim=-1, keepdim=True))
        S = over(R_A, scores) / q.shape[-1] ** 0.5
        return q * (S @ k) / 2, k * (S.mT @ q) / 2, R_v

    def layer(self, number, R):
        layers, norms, qkv, joins, behind, _, _ = PARTS[self.family]
        part = self.part(f"{layers}.{number}").get_submodule
        (one, two), (up, back), o, reads = map(part, norms), map(part, behind), part(joins), [part(x) for x in qkv]
        seen, post = self.seen, norms is POST
        R_skip, R = self.skip(seen[one][1] if post else seen[two][0], seen[back][1], self.norm(two, R) if post else R)
        R = self.linear(up, self.linear(back, R))
        R = self.norm(one, R_skip + R) if post else R_skip + self.norm(two, R)
        R_skip, R = self.skip(seen[reads[0]][0] if post else seen[one][0], seen[o][1], R)
        outs = torch.cat([seen[x][1] for x in reads], dim=-1).chunk(3, dim=-1)
        split = [t.unflatten(-1, (4, -1)).transpose(0, 1) for t in (*outs, self.linear(o, R))]
        R_qkv = self.heads(*split[:3], self.maps[number].detach(), split[3])
        self.lost += float(split[3].sum() - sum(t.sum() for t in R_qkv))
        R_qkv = torch.cat([t.transpose(0, 1).flatten(1) for t in R_qkv], dim=-1).chunk(len(reads), dim=-1)
        R = sum(self.linear(x, r) for x, r in zip(reads, R_qkv, strict=True))
        return R_skip + (R if post else self.norm(one, R))

    @torch.no_grad()
    def relevance(self, given, index):
        AttentionInterface.register("by-hand", self.attention)
        AttentionMaskInterface.register("by-hand", eager_mask)
        self.network.set_attn_implementation("by-hand")
        self.network.apply(lambda module: module.register_forward_hook(self.note))
        logits = self.network(given).logits.flatten(0, -2)[-1]
        *_, head, row = PARTS[self.family]
        R = logits * torch.eye(len(logits)).double()[index]
        for module in map(self.part, reversed(head)):
            R = self.linear(module, R, row)
        n = self.maps[0].shape[-1]
        R = torch.eye(n).double()[row][:, None] * R
        R = R if self.family == "bert" else self.norm(self.part(LAST[self.family]), R)
        for number in reversed(range(len(self.maps))):
            R = self.layer(number, R)
        return float(logits[index]), self.embeddings(R).sum(dim=-1).numpy()

    def embeddings(self, R):
        if self.family == "vit":
            module = self.part("vit.embeddings.patch_embeddings.projection")
            pixels, y = self.seen[module]
            patches = pixels.unfold(1, 4, 4).unfold(2, 4, 4).permute(1, 2, 0, 3, 4).reshape(16, -1)
            y, whole = y.flatten(1).T, R[1:]
            positions = self.part("vit.embeddings").position_embeddings.detach()[0, 1:]
            R = whole if self.rule == "z-plus" else y * over(whole, y + positions)
            R = patches * (over(R, y) @ module.weight.detach().flatten(1))
            self.lost += float(-R.sum())
            return torch.cat([torch.zeros(1, R.shape[1]).double(), R])
        if self.family == "bert":
            R = self.norm(self.part(LAST["bert"]), R)
        table = self.part({"bert": "bert.embeddings.word_embeddings", "gpt2": "transformer.wte"}[self.family])
        first = self.part({"bert": LAST["bert"], "gpt2": "transformer.h.0.ln_1"}[self.family])
        word, whole = self.seen[table][1], self.seen[first][0]
        return self.keep(R, R if self.rule == "z-plus" else word * over(R, whole))


@pytest.mark.parametrize("family", ["bert", "gpt2", "vit"])
@pytest.mark.parametrize("rule", RULES)
def test_the_relevance_of_tokens_is_that_of_the_papers_and_sums_to_the_target_less_what_constants_get(family, rule):
    model, text = build(family), texts_for(family)[1]
    document, vision = model.encode(text), family == "vit"
    given = torch.tensor(document.picture.pixels).double() if vision else torch.tensor(document.ids)
    reference = Reference(family, rule)
    f, R = reference.relevance(given[None], 2)
    explanation = explained(family, target=2, rule=rule)
    shown = R[document.words >= 0]
    assert explanation.output == pytest.approx(f, rel=1e-9)
    assert np.abs(explanation.scores - shown).max() <= 1e-9 * np.abs(R).max()
    assert explanation.facts["constants"] == pytest.approx(f - R.sum(), abs=1e-9)
    assert np.abs(R).min() > 1e-9 or vision


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_by_the_conservative_rule_what_tokens_do_not_get_is_what_biases_and_positions_get(family):
    """R_b = b ∂f/∂b of the linearised network, from the gradients of the parameters themselves."""
    reference = Reference(family, "conservative")
    document = build(family).encode(texts_for(family)[0])
    f, R = reference.relevance(torch.tensor(document.ids)[None], 1)
    assert R.sum() + reference.lost == pytest.approx(f, rel=1e-12)
    explanation = explained(family, 0, target=1)
    assert explanation.facts["constants"] == pytest.approx(reference.lost, abs=1e-9)
    assert abs(reference.lost) > 0.1


@pytest.mark.parametrize("family", ["llama", "transformer"])
def test_without_biases_and_added_positions_all_relevance_reaches_the_tokens(family):
    explanation = explained(family)
    special = sum(value for name, value in explanation.facts.items() if name.startswith(("[", "<", "padding")))
    assert explanation.scores.sum() + special == pytest.approx(explanation.output, rel=1e-9)


def test_in_the_papers_model_the_conservative_rule_gives_attention_times_value(tiny):
    """f = 1/K Σ_h W_ℓ Σ_t α_t^h v_t, so with α held fixed the relevance of a token is its own term, less the bias."""
    explanation = heedful.explain(tiny, "good film , good story", "lrp", target="positive")
    network, (e,), (alpha,) = tiny.network, tiny.embed([explanation.document]), tiny.attention([explanation.document])
    W_l, alpha = network.W_l.detach()[:, explanation.target.index], torch.from_numpy(alpha[0])
    terms = torch.einsum("ht,hd,hde,te->t", alpha, W_l, network.W_v.detach(), e.detach()) / len(W_l)
    assert np.abs(explanation.scores - terms[1:6].numpy()).max() < 1e-12
    bias = torch.einsum("hd,hd->", W_l, network.b_v.detach()) / len(W_l)
    assert explanation.facts["constants"] == pytest.approx(float(bias), abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_a_contrast_is_the_difference_of_two_targets_where_the_rule_is_linear(rule):
    ask = {"rule": rule, "number": 0}
    good, bad = (explained("bert", target=name, **ask) for name in ("good", "bad"))
    contrast = explained("bert", target="good", against="bad", **ask)
    gap = np.abs(contrast.scores - (good.scores - bad.scores)).max() / np.abs(contrast.scores).max()
    assert (gap < 1e-9) == (rule != "z-plus")


@pytest.mark.parametrize("rule", RULES)
def test_layers_that_are_run_again_give_the_same_and_nothing_is_left_behind(rule, monkeypatch):
    before = state(build("bert").network)
    kept = explained("bert", rule=rule)
    monkeypatch.setattr(descent, "PASS_MEMORY", 1)
    rerun = explained("bert", rule=rule)
    assert (kept.facts["forwards"], rerun.facts["forwards"]) == (1, 2)
    assert np.abs(kept.scores - rerun.scores).max() <= 1e-9 * np.abs(kept.scores).max()
    assert state(build("bert").network) == before


def test_an_unknown_rule_is_named_and_probabilities_are_refused():
    with pytest.raises(BadInput, match="z-plus"):
        explained("bert", rule="z-plu")
    with pytest.raises(BadInput, match="Leave `scale` out"):
        explained("bert", scale="probability")
