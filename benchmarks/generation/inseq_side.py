"""Inseq's gradient attribution of generated text, as a table output × source.

`python -m benchmarks.generation.inseq_side MODEL` writes one line of JSON for every line that it reads: the seconds it took and the table.
Run so, it may have an environment of its own; its time is taken inside it.
"""

import json
import sys
import warnings
from time import perf_counter
from typing import Any

import inseq
import numpy as np
import torch
from inseq.data.batch import BatchEmbedding, BatchEncoding, DecoderOnlyBatch

from benchmarks.generation.setting import Setting, word_setting


def load(setting: Setting) -> Any:
    """Inseq's model with gradient times input; its weights ask for no gradients, which is the faster setting."""
    setting.network.requires_grad_(False)
    return inseq.load_model(setting.network, "input_x_gradient", tokenizer=setting.tokenizer, device="cpu")


def gradient_x_input(model: Any, setting: Setting, attributed: str = "log_probability") -> np.ndarray:
    """One forward and backward per output token; Inseq attributes the scores of word vectors, whose sum is taken here."""
    table = _scores(model, setting, attributed)[1 :] if False else _scores(model, setting, attributed)
    return np.stack([table[:, setting.sources == n].sum(axis=1) for n in range(setting.n_sources)], axis=1)


def _scores(model: Any, setting: Setting, attributed: str) -> np.ndarray:
    ids = torch.tensor([setting.ids + setting.output])
    batch = DecoderOnlyBatch(
        BatchEncoding(ids, torch.ones_like(ids), [setting.tokenizer.convert_ids_to_tokens(ids[0].tolist())]),
        BatchEmbedding(model.embed_ids(ids)),
    )
    model.attribution_method.hook() if False else None
    raise NotImplementedError
