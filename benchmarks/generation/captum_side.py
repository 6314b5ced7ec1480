"""Captum's attribution of generated text, as a table output × source, in its fastest settings that compute the same."""

from collections.abc import Sequence

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


def leave_one_out(setting: Setting, token_by_token: bool) -> np.ndarray:
    """`FeatureAblation`: one mask per source and the whole prompt."""
    return _perturbed(setting, FeatureAblation(setting.network), token_by_token)


def shapley(setting: Setting, n_permutations: int, token_by_token: bool) -> np.ndarray:
    """`ShapleyValueSampling`: every permutation evaluates as many masks as there are sources; the empty prompt is evaluated once."""
    torch.manual_seed(0)
    return _perturbed(setting, ShapleyValueSampling(setting.network), token_by_token, n_samples=n_permutations)


def _perturbed(
    setting: Setting, method: FeatureAblation | ShapleyValueSampling, token_by_token: bool, **settings: int
) -> np.ndarray:
    result = LLMAttribution(method, setting.tokenizer).attribute(
        _read(setting),
        torch.tensor(setting.output),
        forward_in_tokens=token_by_token,
        feature_mask=torch.from_numpy(setting.sources[_in_source(setting)])[None],
        **settings,
    )
    return _by_source(setting, result.token_attr)


def gradient_x_input(setting: Setting) -> np.ndarray:
    """`LLMGradientAttribution` of gradient times input at the word vectors: one forward and backward per output token."""
    method = LayerGradientXActivation(setting.network, setting.network.get_input_embeddings())
    result = LLMGradientAttribution(method, setting.tokenizer).attribute(_read(setting), torch.tensor(setting.output))
    table = np.asarray(result.token_attr)
    place = np.nonzero(_in_source(setting))[0][_first(setting)]
    starts = np.append(place, len(setting.ids))
    return np.stack([table[:, a:b].sum(axis=1) for a, b in zip(starts[:-1], starts[1:], strict=True)], axis=1) if (
        table.shape[1] == len(setting.ids)
    ) else np.add.reduceat(table, _first(setting), axis=1)


def _read(setting: Setting) -> TextTokenInput:
    """The prompt with its tokens outside every source fixed; a removed token is replaced by token 0."""
    fixed: Sequence[int] = [token for token, source in zip(setting.ids, setting.sources, strict=True) if source < 0]
    return TextTokenInput(setting.prompt, setting.tokenizer, baselines=0, skip_tokens=list(fixed))


def _in_source(setting: Setting) -> np.ndarray:
    return setting.sources >= 0


def _first(setting: Setting) -> np.ndarray:
    """The places of the first token of every source, among the tokens in sources."""
    return np.unique(setting.sources[_in_source(setting)], return_index=True)[1]


def _by_source(setting: Setting, table: torch.Tensor | None) -> np.ndarray:
    assert table is not None
    return np.asarray(table)[:, _first(setting)]
