"""Attribution of generated text against Captum 0.9.0: LLMAttribution and LLMGradientAttribution, in double precision.

Captum sums scores in single precision, which is most of the tolerance of 1e-6. It reads decoders only: it puts the
output behind the prompt.
"""

import warnings

import numpy as np
import pytest
import torch
from captum.attr import (
    FeatureAblation,
    LayerGradientXActivation,
    LLMAttribution,
    LLMGradientAttribution,
    ShapleyValues,
    ShapleyValueSampling,
    TextTokenInput,
)

from heedful.generation.attribute import attribute
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 7, 93, 12, 60]
FAMILIES = ("gpt2", "llama")


def captum(model, method, word=None, cached=False, **settings):
    """Captum's table output × token, with one forward per mask; or token by token with its cache."""
    baseline = model.replacement_id if word is None else model.word_id(word)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It warns of tokens that it cannot spell.
        result = LLMAttribution(method(model.network), model.tokenizer).attribute(
            TextTokenInput(PROMPT, model.tokenizer, baselines=baseline),
            torch.tensor(OUTPUT),
            forward_in_tokens=cached,
            use_cached_outputs=cached,
            **settings,
        )
    return result.token_attr.numpy(), result.seq_attr.numpy()


def ours(model, method, of="tokens", **settings):
    if method != "gradient-x-input":
        settings = {"absence": "replace", **settings}
    return attribute(model, PROMPT, OUTPUT, method, of=of, unit="token", progress=None, **settings).scores


def near(ours, theirs):
    scale = max(1.0, np.abs(theirs).max())
    np.testing.assert_allclose(ours / scale, theirs / scale, atol=1e-6, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_leave_one_out_is_captums_feature_ablation(family):
    model = build(family)
    tokens, sequence = captum(model, FeatureAblation)
    near(ours(model, "leave-one-out"), tokens)
    near(ours(model, "leave-one-out", of="sequence")[0], sequence)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_given_replacement_is_captums_baseline(family):
    model = build(family)
    near(ours(model, "leave-one-out", absence="replace:good"), captum(model, FeatureAblation, "good")[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_shapley_values_are_captums_at_all_permutations(family):
    model = build(family)
    tokens, sequence = captum(model, ShapleyValues)
    near(ours(model, "shapley-sampled"), tokens)
    near(ours(model, "shapley-sampled", of="sequence")[0], sequence)


def test_captums_sampled_shapley_values_approach_ours():
    model = build("llama")
    torch.manual_seed(0)
    sampled, _ = captum(model, ShapleyValueSampling, n_samples=200)
    exact = ours(model, "shapley-sampled")
    assert np.abs(sampled - exact).max() < 0.2 * np.abs(exact).max()


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_times_input_is_captums_layer_gradient_times_activation(family):
    model = build(family)
    method = LayerGradientXActivation(model.network, model.network.get_input_embeddings())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = LLMGradientAttribution(method, model.tokenizer).attribute(
            TextTokenInput(PROMPT, model.tokenizer), torch.tensor(OUTPUT)
        )
    near(ours(model, "gradient-x-input", earlier="fixed"), result.token_attr.numpy())
    near(ours(model, "gradient-x-input", of="sequence", earlier="fixed")[0], result.seq_attr.numpy())


def test_captums_default_reads_the_prompt_again_on_top_of_its_cache():
    # Its default asks transformers for `cache_position`, which version 5 no longer has: from the second token on it
    # is wrong.
    model = build("llama")
    (right, _), (cached, _) = captum(model, FeatureAblation), captum(model, FeatureAblation, cached=True)
    near(cached[0], right[0])
    assert np.abs(cached[1:] - right[1:]).max() > 0.01 * np.abs(right).max()
