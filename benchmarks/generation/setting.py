"""What a benchmark of generated text attributes: a prompt cut into sources, and what a model wrote after it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

PROMPT = "Once upon a time there was a little girl who loved red"
N_OUTPUT = 40


@dataclass(frozen=True, eq=False)
class Setting:
    """One prompt and one output of a network."""

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    prompt: str
    ids: list[int]
    sources: np.ndarray
    """For every token of the prompt the number of its source, −1 outside."""
    output: list[int]
    replacement: int = 0
    """The token that replaces removed ones: the unknown token."""

    @property
    def n_sources(self) -> int:
        return int(self.sources.max()) + 1

    def masked_ids(self, keep: np.ndarray) -> np.ndarray:
        """The prompt's tokens under masks over sources, removed ones replaced."""
        kept = np.concatenate([keep, np.ones((len(keep), 1), dtype=bool)], axis=1)[:, self.sources]
        return np.where(kept, self.ids, self.replacement)

    def by_source(self, scores: np.ndarray) -> np.ndarray:
        """Scores of the prompt's tokens, summed over the tokens of each source."""
        return np.stack([scores[:, self.sources == n].sum(axis=1) for n in range(self.n_sources)], axis=1)


def load_network(folder: str, dtype: torch.dtype = torch.float32) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A causal language model and its tokenizer, from a folder."""
    network: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
    return network.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def words_of(tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[list[int], np.ndarray]:
    """The tokens of a prompt, and for each the number of its word between spaces."""
    encoded = tokenizer(prompt, return_offsets_mapping=True)
    ends = np.cumsum([len(word) + 1 for word in prompt.split(" ")])
    last = [end - 1 if end > start else -1 for start, end in encoded["offset_mapping"]]
    return encoded["input_ids"], np.array([-1 if place < 0 else int((ends <= place).sum()) for place in last])


def greedy(network: PreTrainedModel, ids: list[int], n_output: int) -> list[int]:
    """The tokens that a network writes, whatever they are: an end of text does not stop it."""
    with torch.inference_mode():
        row = network.generate(  # type: ignore[operator]
            torch.tensor([ids]), max_new_tokens=n_output, min_new_tokens=n_output, do_sample=False
        )
    return [int(token) for token in row[0, len(ids) :]]


def word_setting(folder: str, prompt: str = PROMPT, n_output: int = N_OUTPUT) -> Setting:
    """The setting of the speed table: the words of a prompt are its sources."""
    network, tokenizer = load_network(folder)
    ids, sources = words_of(tokenizer, prompt)
    return Setting(network, tokenizer, prompt, ids, sources, greedy(network, ids, n_output))
