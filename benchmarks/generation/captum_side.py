"""Captum's attribution of generated text, as a table output × source.

Captum evaluates masks in three ways. "cached", its default, reads token by token and keeps a cache; with transformers
5 that cache is wrong: `cache_position` no longer exists, and every step reads the whole text again on top of what the
cache holds. "uncached" reads the text again for every token. "whole" is one forward per mask
(`forward_in_tokens=False`).
"""

import warnings
from typing import Literal

import numpy as np
import torch
from captum.attr import (
    FeatureAblation,
    LayerGradientXActivation,
    LLMAttribution,
    LLMGradientAttribution,
    ShapleyValueSampling,
    TextTokenInput,
)

from benchmarks.generation.setting import Setting

Reading = Literal["cached", "uncached", "whole"]


def leave_one_out(setting: Setting, reading: Reading) -> np.ndarray:
    """`FeatureAblation`: the prompt, and one mask per source."""
    return _perturbed(setting, FeatureAblation(setting.network), reading)


def shapley(setting: Setting, n_permutations: int, reading: Reading) -> np.ndarray:
    """`ShapleyValueSampling`: one mask per source and permutation, and the prompt without sources."""
    torch.manual_seed(0)
    return _perturbed(setting, ShapleyValueSampling(setting.network), reading, n_samples=n_permutations)


def gradient_x_input(setting: Setting) -> np.ndarray:
    """`LLMGradientAttribution` at the word vectors: one forward and backward per output token."""
    method = LayerGradientXActivation(setting.network, setting.network.get_input_embeddings())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It warns of every output token that it cannot spell.
        result = LLMGradientAttribution(method, setting.tokenizer).attribute(
            TextTokenInput(setting.prompt, setting.tokenizer), torch.tensor(setting.output)
        )
    return setting.by_source(np.asarray(result.token_attr))


def _perturbed(
    setting: Setting, method: FeatureAblation | ShapleyValueSampling, reading: Reading, **settings: int
) -> np.ndarray:
    fixed = [token for token, source in zip(setting.ids, setting.sources.tolist(), strict=True) if source < 0]
    own = setting.sources[setting.sources >= 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = LLMAttribution(method, setting.tokenizer).attribute(
            TextTokenInput(setting.prompt, setting.tokenizer, baselines=setting.replacement, skip_tokens=fixed),
            torch.tensor(setting.output),
            use_cached_outputs=reading == "cached",
            forward_in_tokens=reading != "whole",
            feature_mask=torch.from_numpy(own)[None],
            **settings,
        )
    # Every token of a source has the score of the source.
    return np.asarray(result.token_attr)[:, np.unique(own, return_index=True)[1]]
