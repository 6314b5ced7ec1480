"""Scores of ten inputs by every method on five models equal those stored before the package was moved.

The stored numbers come from commit d730ed7: `python -m tests.contracts.test_numbers FILE` writes them. Those of
attention-flow on bert, gpt2 and bart and of slalom on bart are newer: their definitions changed. Those of own-gpt2,
our GPT-2 with the weights of gpt2, are newer too. Weights and
tokenizers are spelt out here, so that another release of a library cannot change them. On the machine that stored them
scores agree to 1e-12 of the largest score on one thread; `HEEDFUL_NUMBERS_TOLERANCE=1e-12` asks for that. Other
processors and more threads sum in another order, so the test allows 1e-7.
"""

import json
import os
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import heedful
from heedful.models.hf.gpt2 import gpt2_of
from tests.families import LABELS, SMALL, hf_config, network_of, pieces, word_pieces

STORED = Path(__file__).with_name("numbers.json")
FAMILIES = ["paper", "bert", "gpt2", "own-gpt2", "bart", "vit"]
TOLERANCE = float(os.environ.get("HEEDFUL_NUMBERS_TOLERANCE", "1e-7"))
SMALL_RUN = {"n_samples": 192, "budget": 128, "n_steps": 8}
TEXTS = [
    "the film was good .",
    "a very bad unbelievable story , but not dull !",
    "good film and good plot",
    "an actor was not very good ; the plot was bad ?",
    "not a bright story , not a dull film , but a good plot .",
    "the actors were good , the story was not .",
    "bad bad bad film !",
    "the plot was very bright and the actor was very good .",
    "a dull plot ? not a dull story .",
    "unforgettable storytelling and a very good actor !",
]


def spelt_out_byte_pairs():
    """GPT-2's tokenizer with merges in a fixed order."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate(["<|end|>", *alphabet])}
    merges = []
    for word in sorted({word for text in TEXTS for word in text.split() if len(word) < 7}):
        left = "Ġ"
        for letter in word:
            if left + letter not in vocabulary:
                vocabulary[left + letter] = len(vocabulary)
                merges.append((left, letter))
            left += letter
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", bos_token="<|end|>")


def spelt_out_weights(network):
    """Weights drawn by NumPy from the parameter's name, large enough that attention is far from uniform."""
    network = network.double().eval()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            rng = np.random.default_rng(crc32(name.encode()))
            drawn = rng.standard_normal(tuple(weight.shape))
            if weight.dim() > 1:
                drawn *= 2 / weight.shape[-1] ** 0.5
            else:
                drawn = 0.1 * drawn + ("norm" in name.lower() or ".ln_" in name) * name.endswith("weight")
            weight.copy_(torch.from_numpy(drawn))
    return network


@cache
def model_of(family):
    if family == "paper":
        return heedful.load("paper")
    if family == "vit":
        network = hf.ViTForImageClassification(hf_config("vit", image_size=16, patch_size=4, **SMALL, **LABELS))
        return heedful.wrap(spelt_out_weights(network), hf.ViTImageProcessor(size={"height": 16, "width": 16}))
    if family == "own-gpt2":
        theirs: Any = model_of("gpt2")
        return gpt2_of(theirs.network, theirs.tokenizer)
    if family == "gpt2":
        tokenizer = spelt_out_byte_pairs()
        sizes = {"n_embd": 16, "n_layer": 3, "n_head": 4, "n_positions": 64, "vocab_size": len(tokenizer)}
        network = hf.GPT2LMHeadModel(hf.GPT2Config(**sizes, eos_token_id=0, bos_token_id=0))
        return heedful.wrap(spelt_out_weights(network), tokenizer)
    return heedful.wrap(spelt_out_weights(network_of(family)[0]), word_pieces() if family == "bert" else pieces())


def inputs_of(family):
    if family == "vit":
        rng = np.random.default_rng(0)
        return [rng.integers(0, 255, (16, 16, 3), dtype=np.uint8) for _ in TEXTS]
    if family == "bart":
        return [heedful.Pair(text, "a bad") for text in TEXTS]
    return TEXTS


def scores_of(family, method):
    """Output and scores of every input; None where the method refuses the model."""
    known = {field.name for field in fields(heedful.methods()[method])}
    settings = {name: value for name, value in SMALL_RUN.items() if name in known}
    try:
        explanations = heedful.explain(model_of(family), inputs_of(family), method, target=1, **settings)
    except heedful.HeedfulError:
        return None
    return [[explanation.output, *explanation.scores.tolist()] for explanation in explanations]


@cache
def stored_numbers():
    return json.loads(STORED.read_text())


def known_methods():
    return sorted(stored_numbers()["paper"]) if STORED.exists() else sorted(heedful.methods())


@pytest.mark.parametrize("method", known_methods())
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_before_the_move(family, method):
    stored = stored_numbers()[family][method]
    computed = scores_of(family, method)
    assert (stored is None) == (computed is None)
    for before, after in zip(stored or [], computed or [], strict=True):
        assert len(before) == len(after)
        # A layer norm makes gradient-mean zero but for rounding, so scores are measured by the output too.
        largest = np.abs(before).max()
        assert np.abs(np.subtract(before, after)).max() <= TOLERANCE * largest


if __name__ == "__main__":
    numbers = {
        family: {method: scores_of(family, method) for method in sorted(heedful.methods())} for family in FAMILIES
    }
    Path(sys.argv[1]).write_text(json.dumps(numbers), encoding="utf-8")
