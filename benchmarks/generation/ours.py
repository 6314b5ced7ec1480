"""Our attribution of generated text, as a table output × source."""

import numpy as np
import torch

import heedful
from benchmarks.generation.setting import Setting
from heedful.generation.attribute import attribute
from heedful.generation.continuation import Continuation
from heedful.generation.prompt import read_prompt
from heedful.generation.written import fixed, with_output
from heedful.models.language import LanguageModel, check_writes


def load(setting: Setting) -> LanguageModel:
    """The same network as the other side's; its words must be the setting's sources."""
    model = check_writes(heedful.wrap(setting.network, setting.tokenizer))
    document = model.encode(setting.prompt)
    if document.ids.tolist() != setting.ids or document.unit_of("word").tolist() != setting.sources.tolist():
        raise ValueError("both sides must read the same tokens and words")
    return model


def leave_one_out(model: LanguageModel, setting: Setting) -> np.ndarray:
    """What each output token loses without one word."""
    return attribute(model, setting.prompt, setting.output, "leave-one-out", absence="replace", progress=None).scores


def shapley(model: LanguageModel, setting: Setting, n_permutations: int) -> np.ndarray:
    """Shapley values from as many masks as Captum evaluates in so many permutations."""
    n_masks = n_permutations * setting.n_sources + 1
    settings = {"n_samples": n_masks, "absence": "replace"}
    return attribute(model, setting.prompt, setting.output, "shapley-sampled", progress=None, **settings).scores


def gradient_x_input(model: LanguageModel, setting: Setting) -> np.ndarray:
    """Gradient times input of each output token's log-probability, summed over the tokens of a word."""
    return attribute(model, setting.prompt, setting.output, "gradient-x-input", earlier="fixed", progress=None).scores


class Masked:
    """Our evaluation of masks alone, as every perturbing method calls it."""

    def __init__(self, model: LanguageModel, setting: Setting) -> None:
        self.document = fixed(with_output(model, read_prompt(model, setting.prompt, chat=False), setting.output))
        groups = tuple((place,) for place in range(len(setting.output)))
        self.continuation = Continuation(model, tuple(map(str, groups)), groups, written=tuple(setting.output))
        self.at_once = self.continuation.masks_at_once(self.document, None)
        self.sources = np.append(setting.sources, np.full(len(setting.output), -1))

    @torch.no_grad()
    def __call__(self, keep: np.ndarray) -> np.ndarray:
        """[mask × output token] the log-probabilities."""
        tokens = np.concatenate([keep, np.ones((len(keep), 1), dtype=bool)], axis=1)[:, self.sources]
        return self.continuation.masked_values(self.document, tokens, "replace")
