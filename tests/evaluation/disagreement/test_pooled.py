"""Every number of the exact evidence against forward passes on edited texts and autograd."""

import numpy as np
import pytest
import torch

import heedful
from heedful.evaluation.disagreement.evidence import probability, tangent
from heedful.evaluation.disagreement.pooled import pooled_evidence
from heedful.models.question import ask
from heedful.models.vocabulary import CLS, UNK
from heedful.target import Target
from tests.conftest import tiny_model

TEXT = "good film , not dull ! a very bad film"
TARGETS = [Target(1, "positive"), Target(0, "negative", against=2), Target(2, "neutral", scale="log-probability")]


def answers(model, ids, target, weights=None):
    """The target of token numbers, or that of its tangent, by plain forward passes of the network."""
    network = model.network
    with torch.no_grad():
        logits = np.concatenate([network(network.embed(model.padded([row]))).numpy() for row in ids])
    return target.of(logits) if weights is None else logits @ weights


def without(document, unit, absence):
    """The document's token numbers without each of its units in turn."""
    holder = document.unit_of(unit)
    for number in range(document.n_units(unit)):
        gone = holder == number
        yield document.ids[~gone] if absence == "delete" else np.where(gone, UNK, document.ids)


@pytest.mark.parametrize("unit", ["word", "type"])
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("absence", ["replace", "delete"])
def test_losses_are_those_of_edited_texts(tiny, target, unit, absence):
    question = ask(tiny, [TEXT], target)
    evidence = pooled_evidence(question, unit, ())
    document = question.documents[0]
    row = tangent(target, question.logits[0])
    for result, weights in ((evidence.losses, None), (evidence.straight, row)):
        whole = answers(tiny, [document.ids], target, weights)[0]
        expected = whole - answers(tiny, list(without(document, unit, absence)), target, weights)
        assert np.allclose(result[absence], expected, atol=1e-9)


@pytest.mark.parametrize("unit", ["word", "type", "sentence"])
def test_what_attention_passes_on_is_that_of_slow_loops(unit):
    model = tiny_model(3)
    question = ask(model, [TEXT], 1)
    passed = pooled_evidence(question, unit, ()).passed
    document, net = question.documents[0], model.network
    holder = document.unit_of(unit)
    with torch.no_grad():
        e = net.embed(model.padded([document.ids]))
        alpha = net.attention(e)[0]
        v = torch.einsum("te,hde->htd", e[0], net.W_v) + net.b_v[:, None]
        w = torch.einsum("htd,hd->ht", v, net.W_l[:, 1])
    alpha, w = alpha.numpy(), w.numpy()
    n_heads = len(w)
    for number in range(document.n_units(unit)):
        own = np.flatnonzero(holder == number)
        rest = np.setdiff1d(np.arange(w.shape[1]), own)
        values = dict.fromkeys(("attention", "gross", "contribution", "centred", "scatter"), 0.0)
        for a, x in zip(alpha, w, strict=True):
            share, mean = a[own].sum(), a @ x
            others = a[rest] @ x[rest] / a[rest].sum()
            values["attention"] += share
            values["gross"] += a[own] @ np.abs(x[own])
            values["contribution"] += a[own] @ x[own]
            values["centred"] += a[own] @ x[own] - share * others
            values["scatter"] += share * np.sqrt(a @ (x - mean) ** 2)
        for name, value in values.items():
            assert getattr(passed, name)[number] == pytest.approx(value / n_heads, abs=1e-9)
    assert passed.fair.sum() == pytest.approx(passed.gross.sum())


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_gradient_at_cls_falls_into_query_and_rest(target):
    model = tiny_model(2)
    question = ask(model, [TEXT], target)
    query, rest = pooled_evidence(question, "word", ()).at_readout
    net, weights = model.network, torch.from_numpy(tangent(target, question.logits[0]))
    e = net.embed(model.padded([question.documents[0].ids])).detach()
    # The same network twice, its query cut off from the embedding once.
    moving, cut = e.clone().requires_grad_(), e.clone().requires_grad_()
    (whole,) = torch.autograd.grad((net(moving) @ weights).sum(), moving)
    score = torch.einsum("ha,hae,bte->bht", net.query(e)[0].detach(), net.W_k, cut) / net.config.d_att**0.5
    pooled = torch.softmax(score, dim=-1) @ cut
    v = torch.einsum("bhe,hde->bhd", pooled, net.W_v) + net.b_v
    (fixed,) = torch.autograd.grad((torch.einsum("bhd,hcd,c->b", v, net.W_l, weights) / len(net.W_q)).sum(), cut)
    at_cls = [float((e * slope).sum(dim=-1)[0, CLS].detach()) for slope in (whole, fixed)]
    assert query == pytest.approx(at_cls[0] - at_cls[1], abs=1e-9)
    assert rest == pytest.approx(at_cls[1], abs=1e-9)


def test_nothing_is_lost_where_one_word_takes_nearly_all_attention():
    model = heedful.Bag([40.0, 0.0, 1.0, 0.5], [1.0, -1.0, 0.5, 0.2], names=["all", "one", "two", None])
    losses = pooled_evidence(ask(model, [model.text]), "word", ()).straight["mask"]
    g, w = np.exp([0.0, 1.0, 0.5]), np.array([-1.0, 0.5, 0.2])
    # f is 1 to the last digit, and what is left without the word knows nothing of it.
    assert losses[0] == pytest.approx(1.0 - g @ w / g.sum(), abs=1e-12)


def test_a_bag_of_one_item_has_output_zero_without_it():
    bag = heedful.Bag([0.3], [2.0], names=["alone"], gone_scores=[0.0], gone_values=[0.5])
    evidence = pooled_evidence(ask(bag, [bag.text]), "word", ())
    assert evidence.losses["mask"].tolist() == [2.0]
    assert evidence.losses["replace"][0] == pytest.approx(1.5)
    assert evidence.bias is None


def test_the_tangent_is_the_derivative():
    logits = np.array([0.3, -1.2, 2.0])
    for target in [*TARGETS, Target(0, "a", against=1, scale="log-probability")]:
        steps = [(target.of(logits[None] + h)[0] - target.of(logits[None] - h)[0]) / 2e-6 for h in 1e-6 * np.eye(3)]
        assert np.allclose(tangent(target, logits), steps, atol=1e-8)
    single = Target(0, "yes", scale="log-probability")
    assert tangent(single, np.array([0.7]))[0] == pytest.approx(1 / (1 + np.exp(0.7)))
    assert probability(single, np.array([0.7])) == pytest.approx(1 / (1 + np.exp(-0.7)))
