import numpy as np
import pytest
import torch
from torch import nn

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.evaluation.probes.last_attention import as_distribution, check_readable, is_affine, last_attention
from heedful.models.altered import copied
from tests.conftest import tiny_model
from tests.evaluation.probes.models import logits_under, own_attention
from tests.families import PAIR, TEXTS, Encoder, build, split
from tests.models.classic.models import KINDS, PAIRS, classic

RNG = np.random.default_rng(0)
ONE_ROW = ["bert", "gpt2-classifier", "gpt2", "single-logit", "transformer", "mistral"]
SEVERAL_ROWS = ["torch", "encoder"]


def last_of(model, text=TEXTS[0]):
    return last_attention(model, model.encode(text))


def moved_shares(last, n):
    return RNG.dirichlet(np.full(last.is_word.sum(), 0.5), size=(n, len(last.alpha)))


def test_of_the_single_layer_the_output_under_any_weights_is_that_of_its_formula():
    model = tiny_model()
    last, net = last_of(model), model.network
    e = model.embed([last.document])[0]
    values = torch.einsum("td,hod->hto", e, net.W_v) + net.b_v[:, None]
    for weights in last.moved(moved_shares(last, 5)):
        pooled = torch.einsum("ht,hto->ho", torch.from_numpy(weights), values)
        expected = torch.einsum("ho,hco->c", pooled, net.W_l) / net.config.n_heads
        assert last.is_linear
        assert last.under(weights[None])[0] == pytest.approx(expected.detach().numpy())
    assert last.alpha == pytest.approx(model.attention([last.document])[0, 0])


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_of_a_classic_model_it_is_the_weighted_mean_of_its_states(encoder, attention):
    model = classic(encoder, attention)
    last, net = last_of(model), model.network
    h, _ = net.first(model.embed([last.document]), torch.tensor([len(last.document.ids)]))
    for weights in last.moved(moved_shares(last, 3)):
        expected = net.W_c(torch.from_numpy(weights) @ h[0])[0]
        assert last.is_linear
        assert last.under(weights[None])[0] == pytest.approx(expected.detach().numpy())
    # Slopes are known up to what all weights have in common, as they sum to 1: without the bias.
    slopes = (h[0] @ net.W_c.weight.T).T.detach().numpy()
    assert last.slopes[:, 0][:, last.is_word] == pytest.approx(slopes[last.classes][:, last.is_word])


def test_the_second_text_of_a_pair_has_no_attention_to_give():
    model = classic(pairs=True)
    last = last_of(model, PAIRS[0])
    n_first = int((last.document.segments == 0).sum())
    assert last.is_linear
    assert last.is_word.tolist() == [
        False,
        *[True] * (n_first - 1),
        *[False] * (len(last.document.ids) - n_first),
    ]


@pytest.mark.parametrize("family", ONE_ROW)
def test_of_deeper_models_it_is_that_of_a_pass_with_these_weights(family):
    model = build(family)
    last = last_of(model)
    alpha, is_word = own_attention(model, last.document)
    assert not last.is_linear
    assert last.n_read == 1
    assert last.alpha == pytest.approx(alpha)
    assert last.is_word.tolist() == is_word.tolist()
    weights = last.moved(moved_shares(last, 2))
    expected = [logits_under(model, last.document, row) for row in weights]
    assert last.under(weights) == pytest.approx(np.stack(expected), abs=1e-9)
    assert last.under(last.alpha[None])[0] == pytest.approx(last.logits, abs=1e-9)


@pytest.mark.parametrize("family", [*ONE_ROW, *SEVERAL_ROWS])
def test_slopes_are_those_of_finite_differences(family):
    last = last_of(build(family), TEXTS[1])
    assert (last.n_read > 1) == (family in SEVERAL_ROWS)
    step = RNG.normal(size=last.shares.shape)
    step = last.shares * (step - (last.shares * step).sum(axis=1, keepdims=True))
    # The norms of Mistral are computed in single precision.
    size, close = (1e-2, 2e-2) if family == "mistral" else (1e-4, 1e-5)
    up, down = last.under(np.stack([last.moved(last.shares + sign * size * step) for sign in (1, -1)]))
    expected = np.einsum("cht,ht->c", last.slopes[:, :, last.is_word], step * last.mass[:, None])
    assert (up - down)[last.classes] / (2 * size) == pytest.approx(expected, abs=close)


def test_rows_that_are_read_together_are_multiplied_alike():
    last = last_of(build("torch"))
    weights = last.moved(moved_shares(last, 1))
    factors = torch.from_numpy(weights / last.alpha)[:, :, None]

    def edit(layer, maps):
        return maps if layer == 0 else maps * factors / (maps * factors).sum(dim=-1, keepdim=True)

    assert last.under(weights) == pytest.approx(last.model.edited([last.document], edit))


class Bent(nn.Module):
    """A map that is not linear, but is for all that a text can show; or that switches where no gradient sees it."""

    def __init__(self, top, hidden):
        super().__init__()
        self.top, self.hidden = top, hidden
        self.weight = top.weight

    def forward(self, x):
        f = self.top(x)
        return torch.relu(f + 50) - 50 if self.hidden == "relu" else f * (f.detach()[:, :1] > self.hidden)


def test_a_model_that_only_looks_linear_is_not():
    model = classic("average")
    last = last_of(model)
    model.network.W_c = Bent(model.network.W_c, "relu")
    assert last.is_linear
    assert not last_of(model).is_linear
    assert last_of(model).under(last.moved(last.shares)[None])[0] == pytest.approx(last.logits)
    model = classic("average")
    model.network.W_c = Bent(model.network.W_c, float(last.logits[0]) - 1e-3)
    assert not last_of(model).is_linear


def test_linearity_is_read_from_the_graph():
    x = torch.randn(3, 4, requires_grad=True)
    w = torch.randn(4, 2)
    linear = [x @ w, x.sum(0) / 3 - x.mean(), torch.cat([2 * x, -x]).T, torch.addmm(x[:, :2], x, w)]
    bent = [x * x, torch.relu(x), (x @ w).softmax(-1), 1 / x, x @ x.T, torch.addmm(x[:, :2], x, x[:2].T @ w[:2])]
    assert all(map(is_affine, linear))
    assert not any(map(is_affine, bent))


def test_a_word_whose_attention_is_rounded_to_nothing_keeps_its_value():
    model = classic("average", "dot", d_hidden=8)
    with torch.no_grad():
        model.network.v *= 1e6
    last = last_of(model)
    assert last.is_word.sum() == 5
    assert (last.alpha[0, last.is_word] == 0).sum() == 4
    assert last.is_linear
    for shares in np.eye(5):
        weights = last.moved(shares[None])
        assert last.under(weights[None])[0] == pytest.approx(logits_under(model, last.document, weights))


def test_words_outside_of_a_window_cannot_be_attended_to():
    last = last_of(build("mistral"), " ".join(["good"] * 12))
    assert last.is_word.sum() == 8
    assert last.is_word[-8:].all()


def test_padding_and_special_tokens_keep_their_attention():
    for model in (tiny_model(), build("bert")):
        last = last_of(model)
        weights = last.moved(moved_shares(last, 1))[0]
        assert weights[:, ~last.is_word] == pytest.approx(last.alpha[:, ~last.is_word])
        assert weights.sum(axis=1) == pytest.approx(1)
        assert last.mass.max() < 1
    paddings = tiny_model()
    assert last_of(paddings).alpha[:, len(TEXTS[0].split()) + 1 :].sum() > 0.1


def test_a_long_text_is_probed_as_it_is_cut():
    model = tiny_model()
    last = last_of(model, " ".join(["good", "bad", "film"] * 10))
    assert last.is_word.sum() == 15
    assert last.logits == pytest.approx(model.logits([last.document])[0])


def test_of_three_classes_the_margins_are_over_each_other_class():
    last = last_of(tiny_model())
    slopes, margins = last.margins
    assert margins == pytest.approx(np.sort(last.logits)[::-1][0] - np.sort(last.logits)[::-1][1:])
    assert slopes[1] == pytest.approx(last.slopes[0] - last.slopes[2])


@pytest.mark.parametrize("bias", [-20.0, 20.0])
def test_of_a_single_logit_the_margin_is_on_its_own_side(bias):
    model = build("single-logit")
    head = model.network.classifier
    own = head.bias.item()
    try:
        with torch.no_grad():
            head.bias.fill_(bias)
        last = last_of(model)
    finally:
        with torch.no_grad():
            head.bias.fill_(own)
    slopes, margins = last.margins
    assert margins[0] == pytest.approx(abs(last.logits[0]))
    assert slopes[0] == pytest.approx(np.sign(bias) * last.slopes[0])
    p = last.probabilities(last.logits)
    assert p.argmax() == (bias > 0)
    assert p[1] == pytest.approx(1 / (1 + np.exp(-last.logits[0])))


def test_of_a_single_probability_the_decision_changes_at_one_half():
    class Yes(Encoder):
        def forward(self, ids):
            return torch.sigmoid(super().forward(ids)[:, :1] * 0.01 - 1)

    torch.manual_seed(0)
    model = heedful.wrap(Yes().double().eval(), split, classes=["yes"], returns="probabilities")
    last = last_of(model)
    slopes, margins = last.margins
    assert 0 < last.logits[0] < 0.5
    assert margins[0] == pytest.approx(0.5 - last.logits[0])
    assert slopes[0] == pytest.approx(-last.slopes[0])
    assert last.probabilities(last.logits).tolist() == pytest.approx([1 - last.logits[0], last.logits[0]])


def test_distributions_of_every_kind_of_output():
    logits = np.array([[1.0, -2.0, 0.5]])
    p = np.exp(logits) / np.exp(logits).sum()
    for numbers, returns in [(logits, "logits"), (p, "probabilities"), (np.log(p), "log-probabilities")]:
        assert as_distribution(numbers, returns) == pytest.approx(p)


def test_what_a_model_writes_a_model_of_two_texts_and_scores_are_refused():
    writes = heedful.continuation(build("gpt2"), max_new=2)
    with pytest.raises(Unsupported, match="give the model itself"):
        check_readable(writes, writes.encode(TEXTS[0]))
    model = build("t5")
    with pytest.raises(Unsupported, match="reads one text and writes another"):
        check_readable(model, model.encode(PAIR))
    model = build("torch")
    check_readable(model, model.encode(TEXTS[0]))
    scored = heedful.wrap(model.network, split, classes=["bad", "good"], returns="scores")
    with pytest.raises(Unsupported, match="returns scores"):
        check_readable(scored, scored.encode(TEXTS[0]))


def test_a_model_whose_output_is_not_a_number_is_refused():
    model = copied(classic(d_e=8))
    with torch.no_grad():
        model.network.W_c.bias[0] = torch.nan
    with pytest.raises(BadInput, match="not a finite number"):
        last_attention(model, model.encode("a good film"))
