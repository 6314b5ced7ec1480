import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.evaluation.probes.adversarial import Adversarial, adversary, is_exact, output_change
from heedful.evaluation.probes.last_attention import last_attention
from tests.conftest import WORDS
from tests.evaluation.probes.models import (
    TEXTS,
    distribution,
    divergence,
    inquiry_of,
    logits_under,
    model_of,
    own_attention,
    sharp,
)

EXACT = {"one head": lambda: sharp(encoder="bilstm"), "several heads": lambda: model_of("single-layer", n_classes=2)}
BOUNDED = ["single-layer", "single-logit", "torch"]
RNG = np.random.default_rng(0)
RANDOM_TEXTS = [" ".join(RNG.choice(WORDS, size=RNG.integers(2, 11))) for _ in range(25)]


def weights_of(last, head, shares):
    every = last.shares.copy()
    every[head] = shares
    return last.moved(every)


def change_by_hand(model, last, head, shares):
    """The total variation of the output when the head's attention to words is divided like this, by a pass."""
    p = distribution(logits_under(model, last.document, weights_of(last, head, shares)))
    return np.abs(p - distribution(model.logits([last.document])[0])).sum() / 2


@pytest.mark.parametrize("kind", EXACT)
def test_the_exact_adversary_beats_the_ascent_in_every_text_and_both_keep_the_output(kind):
    model, probe = EXACT[kind](), Adversarial(n_steps=100)
    inquiry = inquiry_of(model, RANDOM_TEXTS)
    some = [inquiry.attention(index) for index in range(len(RANDOM_TEXTS))]
    ascended, exact = probe._ascended(some, 0)
    for last, reached, most in zip(some, ascended, exact, strict=True):
        head = int(last.mass.argmax())
        found, change, shares = adversary(last, head, 0.01)
        assert found == most >= reached - 1e-12
        assert change <= 0.01 * (1 + 1e-6)
        assert change == pytest.approx(change_by_hand(model, last, head, shares), abs=1e-9)
        assert found == pytest.approx(divergence(shares, last.shares[head]), abs=1e-9)
    assert np.mean(ascended) > 0.2 * np.mean(exact)


@pytest.mark.parametrize("kind", EXACT)
def test_no_random_attention_that_keeps_the_output_is_farther(kind):
    last = last_attention(EXACT[kind](), EXACT[kind]().encode(TEXTS[1]))
    assert is_exact(last)
    for head, own in enumerate(last.shares):
        most = adversary(last, head, 0.05)[0]
        points = RNG.dirichlet(np.full(len(own), 0.3), size=3_000)
        near = np.concatenate([points, own + RNG.random((3_000, 1)) * (points - own)])
        kept = near[output_change(last, head, near) <= 0.05]
        assert len(kept) > 100
        assert divergence(kept, own).max() <= most + 1e-12


@pytest.mark.parametrize("kind", BOUNDED)
def test_elsewhere_it_is_called_a_lower_bound_and_keeps_the_output(kind):
    model = model_of(kind)
    inquiry = inquiry_of(model, TEXTS[:2])
    for last in map(inquiry.attention, range(2)):
        assert not is_exact(last)
        for head in range(len(last.alpha)):
            found, change, shares = adversary(last, head, 0.02)
            assert shares.sum() == pytest.approx(1)
            assert change <= 0.02 * (1 + 1e-6)
            assert found == pytest.approx(divergence(shares, last.shares[head]), abs=1e-9)
            if last.n_read == 1:
                assert change == pytest.approx(change_by_hand(model, last, head, shares), abs=1e-7)
    result = Adversarial(n_steps=1).measure(inquiry)
    assert "a lower bound" in result.findings[0].what
    assert not any("exact" in finding.what or "ascent" in finding.what for finding in result.findings)


def test_the_numbers_are_means_over_heads_and_texts():
    model = EXACT["several heads"]()
    inquiry = inquiry_of(model)
    result = Adversarial(n_ascent=3, n_steps=2).measure(inquiry)
    rows, shuffled = [], []
    for index, document in enumerate(inquiry.documents):
        last, rng = inquiry.attention(index), inquiry.rng(index)
        rows.append(np.mean([adversary(last, head, 0.01)[:2] for head in range(3)], axis=0))
        alpha, is_word = own_attention(model, document)
        shares = alpha[:, is_word] / alpha[:, is_word].sum(axis=1, keepdims=True)
        orders = [rng.permutation(shares.shape[1]) for _ in range(10)]
        shuffled.append(np.mean([divergence(shares[:, order], shares) for order in orders]))
    first, second, ascent, exact = result.findings
    assert [first.value.value, second.value.value] == pytest.approx(np.mean(rows, axis=0))
    assert first.null.value == pytest.approx(np.mean(shuffled))
    assert "exact for each head" in first.what
    assert exact.value.value >= ascent.value.value


@pytest.mark.parametrize("strength", [1e3, 1e-3])
def test_outputs_that_are_saturated_or_even_leave_all_attention_free(strength):
    model = sharp()
    with torch.no_grad():
        model.network.W_c.weight.zero_()
        model.network.W_c.bias.copy_(torch.tensor([-strength, strength]))
    last = last_attention(model, model.encode(TEXTS[0]))
    found, change, shares = adversary(last, 0, 0.01)
    assert change == pytest.approx(0)
    assert shares.max() == 1
    assert found == pytest.approx(divergence(np.eye(len(shares)), last.shares[0]).max())


def test_answers_and_refusals():
    faithful = sharp(strength=60.0)
    assert Adversarial(epsilon=0.3, n_ascent=0).measure(inquiry_of(sharp(strength=0.01), TEXTS * 4)).answer == "no"
    assert Adversarial(epsilon=1e-6, n_ascent=0).measure(inquiry_of(faithful, TEXTS * 4)).answer != "no"
    result = Adversarial().measure(inquiry_of(faithful, ["good", "film"]))
    assert (result.answer, result.findings) == ("unknown", ())
    for settings in ({"epsilon": 0.0}, {"epsilon": 1.0}, {"n_ascent": -1}, {"n_steps": 0}, {"n_starts": 0}):
        with pytest.raises(BadInput, match="adversarial"):
            Adversarial(**settings)
