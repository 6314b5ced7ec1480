"""Gradients against captum and autograd, on the model written head by head and on transformers' own networks."""

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, Saliency

import heedful
from heedful.document import SPECIAL
from heedful.models.altered import copied
from tests.families import PAIR, TEXTS, build
from tests.parity.from_embeddings import CLOSE, COMPARED, Plain, compared
from tests.parity.plain_pass import agree
from tests.straightforward import Straightforward

TEXT = "the good film was not bad"


@pytest.fixture
def tiny_embeddings(tiny):
    plain = Straightforward(tiny)
    e = (plain.embedding(torch.tensor([plain.ids(TEXT)])) + plain.positions).detach().requires_grad_()
    return plain, e


@pytest.mark.parametrize(
    ("method", "reduce"),
    [
        ("gradient-mean", lambda g: g.mean(-1)),
        ("gradient-l1", lambda g: g.abs().sum(-1)),
        ("gradient-l2", lambda g: g.norm(dim=-1)),
    ],
)
def test_reductions_are_of_captum_s_saliency(tiny, tiny_embeddings, method, reduce):
    plain, e = tiny_embeddings
    theirs = Saliency(plain.from_embeddings).attribute(e, target=2, abs=False)
    ours = heedful.explain(tiny, TEXT, method, target=2, unit="token")
    assert np.allclose(ours.scores, reduce(theirs)[0, 1:7].detach().numpy(), atol=1e-12)


def test_gradient_times_input_of_the_tiny_model_is_captum_s(tiny, tiny_embeddings):
    plain, e = tiny_embeddings
    theirs = InputXGradient(plain.from_embeddings).attribute(e, target=2).sum(-1)
    ours = heedful.explain(tiny, TEXT, "gradient-x-input", target=2, unit="token")
    assert np.allclose(ours.scores, theirs[0, 1:7].detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", COMPARED)
def test_the_plain_network_has_the_model_s_logits(family, number):
    _, plain, x, _ = compared(family, number)
    logits = plain.model.logits([plain.document])
    assert np.abs(plain(x).detach().numpy() - logits).max() <= 1e-9 * np.abs(logits).max()


@pytest.mark.parametrize("family", COMPARED)
def test_saliency_is_captum_s(family):
    text, plain, x, target = compared(family)
    theirs = plain.tokens(Saliency(plain).attribute(x, target=target))
    agree(plain.explain(text, "gradient-l1"), theirs, tolerance=CLOSE)
    squares = plain.tokens(Saliency(plain).attribute(x, target=target) ** 2)
    agree(plain.explain(text, "gradient-l2"), np.sqrt(squares), tolerance=CLOSE)


@pytest.mark.parametrize("family", ["t5", "bart", "marian", "gpt2", "vit"])
def test_the_mean_of_the_gradient_is_that_of_captum_s_signed_saliency(family):
    text, plain, x, target = compared(family)
    signed = Saliency(plain).attribute(x, target=target, abs=False)
    d_e = x.shape[-1] if plain.document.picture is None else 3 * 4 * 4
    ours, largest = plain.explain(text, "gradient-mean"), float(signed.abs().max())
    theirs = plain.tokens(signed)[plain.document.words != SPECIAL] / d_e
    assert np.abs(ours.scores - theirs).max() <= CLOSE * largest


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", COMPARED)
def test_gradient_times_input_is_captum_s(family, number):
    text, plain, x, target = compared(family, number)
    theirs = plain.tokens(InputXGradient(plain).attribute(x, target=target))
    agree(plain.explain(text, "gradient-x-input"), theirs, tolerance=CLOSE)


def target_value(logits, target, against, scale):
    if scale == "log-probability":
        logits = logits - torch.logsumexp(logits, dim=-1) if len(logits) > 1 else -torch.log1p(torch.exp(-logits))
    return logits[target] - (0 if against is None else logits[against])


@pytest.mark.parametrize(("target", "against"), [(None, None), (2, None), (2, 0)])
@pytest.mark.parametrize("scale", ["logit", "log-probability"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "vit"])
def test_every_target_s_gradient_is_autograd_s(family, target, against, scale):
    text, plain, x, predicted = compared(family)
    value = target_value(plain(x)[0], predicted if target is None else target, against, scale)
    (gradient,) = torch.autograd.grad(value, x)
    settings = {"target": target, "against": against, "scale": scale}
    ours = plain.explain(text, "gradient-x-input", **settings)
    assert ours.output == pytest.approx(float(value.detach()), rel=1e-9)
    agree(ours, plain.tokens(x * gradient), tolerance=CLOSE)
    agree(plain.explain(text, "gradient-l1", **settings), plain.tokens(gradient.abs()), tolerance=CLOSE)


def test_a_single_logit_has_the_log_probability_of_a_sigmoid():
    text, plain, x, _ = compared("single-logit")
    (gradient,) = torch.autograd.grad(target_value(plain(x)[0], 0, None, "log-probability"), x)
    agree(plain.explain(text, "gradient-l1", scale="log-probability"), plain.tokens(gradient.abs()), tolerance=CLOSE)


def test_the_gradient_of_a_pair_is_autograd_s_with_its_segments():
    plain = Plain("bert", PAIR)
    x = plain.start
    (gradient,) = torch.autograd.grad(plain(x)[0].max(), x)
    agree(plain.explain(PAIR, "gradient-x-input"), plain.tokens(x * gradient), tolerance=CLOSE)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_lecture_s_g_l2_is_the_mean_of_squares_summed_over_a_word_s_tokens(family):
    text, plain, x, target = compared(family, 1)
    squares = plain.tokens(Saliency(plain).attribute(x, target=target) ** 2) / x.shape[-1]
    ours = heedful.explain(plain.model, text, "gradient-l2", unit="word", squares="mean", target=target)
    words = plain.document.words
    assert np.bincount(words[words >= 0]).max() > 1
    theirs = [squares[words == word].sum() for word in range(words.max() + 1)]
    assert np.abs(ours.scores - theirs).max() <= CLOSE * np.max(theirs)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_error_of_single_precision_holds_gradient_times_input_in_double_precision(family):
    model = build(family)
    single = copied(model)
    single.network.float()
    for text in TEXTS:
        for unit in ("token", "word"):
            ours, exact = (heedful.explain(m, text, "gradient-x-input", target=1, unit=unit) for m in (single, model))
            gap = np.abs(ours.scores - exact.scores)
            assert gap.max() > 0
            assert (gap <= ours.error).all()
            assert (exact.error == 0).all()
            assert ours.error.max() < 0.01 * np.abs(exact.scores).max()
