"""Gradient methods against captum, on transformers' own way in: `inputs_embeds` and pixels, nothing of heedful's."""

import numpy as np
import pytest
import torch
from captum.attr import GradientShap, InputXGradient, IntegratedGradients, NoiseTunnel, Saliency
from torch import nn

import heedful
from heedful.document import SPECIAL
from heedful.perturb.masks import generator
from tests.families import PAIR, build, texts_for
from tests.parity.test_attention_papers import agree

COMPARED = ["bert", "gpt2", "llama", "t5", "bart", "marian", "vit"]
CLOSE = 1e-5


class Plain(nn.Module):
    """A network from its embeddings, or from its pixels, to its logits; a document's two towers stand side by side."""

    def __init__(self, family, text):
        super().__init__()
        self.model = build(family)
        self.document, self.network = self.model.encode(text), self.model.network

    @property
    def start(self):
        if self.document.picture is not None:
            return torch.from_numpy(self.document.picture.pixels)[None].double().requires_grad_()
        return self.looked_up(self.document.ids).requires_grad_()

    def looked_up(self, ids):
        return self.network.get_input_embeddings()(torch.from_numpy(ids)[None]).detach()

    def forward(self, x):
        if self.document.picture is not None:
            return self.network(pixel_values=x).logits
        if not self.network.config.is_encoder_decoder:
            pair = self.document.segments is not None
            kinds = torch.from_numpy(self.document.segments).expand(len(x), -1) if pair else None
            logits = self.network(inputs_embeds=x, **({"token_type_ids": kinds} if pair else {})).logits
            return logits[:, -1] if logits.dim() == 3 else logits
        second = torch.from_numpy(self.document.segments) == 1
        # Marian's encoder multiplies what it looks up, and only that, by √d; its decoder both.
        scale = getattr(self.network.get_encoder(), "embed_scale", 1.0)
        asked = {"inputs_embeds": scale * x[:, ~second], "decoder_inputs_embeds": x[:, second], "use_cache": False}
        return self.network(**asked).logits[:, -1]

    def tokens(self, numbers):
        """One number a token: coordinates summed, and of a picture the pixels of each patch, none for [CLS]."""
        if self.document.picture is None:
            return numbers[0].sum(dim=-1).detach().numpy()
        patches = numbers[0].detach().numpy().reshape(3, 4, 4, 4, 4).sum(axis=(0, 2, 4)).ravel()
        return np.concatenate([np.zeros(len(self.document.ids) - len(patches)), patches])

    def explain(self, text, method, **settings):
        unit = "token" if self.document.picture is None else "patch"
        return heedful.explain(self.model, text, method, unit=unit, **settings)


def setting(family, number=0):
    text = texts_for(family)[number]
    plain = Plain(family, text)
    return text, plain, plain.start, int(plain(plain.start)[0].argmax())


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", COMPARED)
def test_the_plain_network_has_the_model_s_logits(family, number):
    _, plain, x, _ = setting(family, number)
    logits = plain.model.logits([plain.document])
    assert np.abs(plain(x).detach().numpy() - logits).max() <= 1e-9 * np.abs(logits).max()


@pytest.mark.parametrize("family", COMPARED)
def test_saliency_is_captum_s(family):
    text, plain, x, target = setting(family)
    theirs = plain.tokens(Saliency(plain).attribute(x, target=target))
    agree(plain.explain(text, "gradient-l1"), theirs, tolerance=CLOSE)
    squares = plain.tokens(Saliency(plain).attribute(x, target=target) ** 2)
    agree(plain.explain(text, "gradient-l2"), np.sqrt(squares), tolerance=CLOSE)


@pytest.mark.parametrize("family", ["t5", "bart", "marian", "gpt2", "vit"])
def test_the_mean_of_the_gradient_is_that_of_captum_s_signed_saliency(family):
    text, plain, x, target = setting(family)
    signed = Saliency(plain).attribute(x, target=target, abs=False)
    d_e = x.shape[-1] if plain.document.picture is None else 3 * 4 * 4
    ours, largest = plain.explain(text, "gradient-mean"), float(signed.abs().max())
    theirs = plain.tokens(signed)[plain.document.words != SPECIAL] / d_e
    assert np.abs(ours.scores - theirs).max() <= CLOSE * largest


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", COMPARED)
def test_gradient_times_input_is_captum_s(family, number):
    text, plain, x, target = setting(family, number)
    theirs = plain.tokens(InputXGradient(plain).attribute(x, target=target))
    agree(plain.explain(text, "gradient-x-input"), theirs, tolerance=CLOSE)


@pytest.mark.parametrize("family", COMPARED)
def test_integrated_gradients_are_captum_s(family):
    text, plain, x, target = setting(family)
    theirs, gap = IntegratedGradients(plain).attribute(
        x, torch.zeros_like(x), target=target, n_steps=50, method="gausslegendre", return_convergence_delta=True
    )
    ours = plain.explain(text, "integrated-gradients", n_steps=50)
    agree(ours, plain.tokens(theirs), tolerance=CLOSE)
    assert ours.facts["gap"] == pytest.approx(float(gap), rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_integrated_gradients_from_unknown_words_are_captum_s(family):
    text, plain, x, target = setting(family)
    reader = plain.model.tokenizer
    stand_in = reader.unk_token_id if reader.mask_token_id is None else reader.mask_token_id
    emptied = np.where(plain.document.words == SPECIAL, plain.document.ids, stand_in)
    theirs = IntegratedGradients(plain).attribute(x, plain.looked_up(emptied), target=target, n_steps=50)
    agree(
        plain.explain(text, "integrated-gradients", n_steps=50, baseline="unknown"),
        plain.tokens(theirs),
        tolerance=CLOSE,
    )


@pytest.mark.parametrize("family", COMPARED)
def test_gradient_shap_is_captum_s_on_the_same_draws(family, monkeypatch):
    text, plain, x, target = setting(family)
    draws = generator(3, plain.document).uniform(size=(20, 1, 1))
    monkeypatch.setattr(np.random, "uniform", lambda low, high, size: draws.reshape(size))
    theirs = GradientShap(plain).attribute(x, torch.zeros_like(x), n_samples=20, stdevs=0.0, target=target)
    monkeypatch.undo()
    ours = plain.explain(text, "gradient-shap", n_samples=20, seed=3)
    agree(ours, plain.tokens(theirs), tolerance=CLOSE)


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_smooth_gradients_are_captum_s_on_the_same_noise(family, monkeypatch):
    text, plain, x, target = setting(family)
    noise = torch.from_numpy(generator(3, plain.document).standard_normal((20, *x.shape[1:])))
    monkeypatch.setattr(torch, "normal", lambda _mean, scale: noise * scale)
    scale = 0.1 * float(x.detach().std())
    theirs = NoiseTunnel(Saliency(plain)).attribute(x, nt_samples=20, stdevs=scale, target=target, abs=False)
    monkeypatch.undo()
    ours = plain.explain(text, "smooth-gradient", n_samples=20, seed=3)
    agree(ours, plain.tokens(x * theirs), tolerance=CLOSE)


def asked(logits, target, against, scale):
    if scale == "log-probability":
        logits = logits - torch.logsumexp(logits, dim=-1) if len(logits) > 1 else -torch.log1p(torch.exp(-logits))
    return logits[target] - (0 if against is None else logits[against])


@pytest.mark.parametrize(("target", "against"), [(None, None), (2, None), (2, 0)])
@pytest.mark.parametrize("scale", ["logit", "log-probability"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "vit"])
def test_every_target_s_gradient_is_autograd_s(family, target, against, scale):
    text, plain, x, predicted = setting(family)
    value = asked(plain(x)[0], predicted if target is None else target, against, scale)
    (gradient,) = torch.autograd.grad(value, x)
    settings = {"target": target, "against": against, "scale": scale}
    ours = plain.explain(text, "gradient-x-input", **settings)
    assert ours.output == pytest.approx(float(value.detach()), rel=1e-9)
    agree(ours, plain.tokens(x * gradient), tolerance=CLOSE)
    agree(plain.explain(text, "gradient-l1", **settings), plain.tokens(gradient.abs()), tolerance=CLOSE)


def test_a_single_logit_has_the_log_probability_of_a_sigmoid():
    text, plain, x, _ = setting("single-logit")
    (gradient,) = torch.autograd.grad(asked(plain(x)[0], 0, None, "log-probability"), x)
    agree(plain.explain(text, "gradient-l1", scale="log-probability"), plain.tokens(gradient.abs()), tolerance=CLOSE)


def test_the_gradient_of_a_pair_is_autograd_s_with_its_segments():
    plain = Plain("bert", PAIR)
    x = plain.start
    (gradient,) = torch.autograd.grad(plain(x)[0].max(), x)
    agree(plain.explain(PAIR, "gradient-x-input"), plain.tokens(x * gradient), tolerance=CLOSE)
