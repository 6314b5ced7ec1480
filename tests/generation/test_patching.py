import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, HeedfulError, Unsupported
from heedful.generation.patching import locate
from tests.families import build

CLEAN, CORRUPTED = "the film was good and very bright .", "the film was and and very bright ."
PARTS = ("residual", "attention", "mlp")


def by_hand(family, part, clean, corrupted, layer, position):
    """The logits after one patch, by plain PyTorch hooks on modules named here."""
    network, tokenizer = build(family).network, build(family).tokenizer
    block = network.transformer.h[layer] if family == "gpt2" else network.model.layers[layer]
    attention = block.attn if family == "gpt2" else block.self_attn
    module = {"residual": block, "attention": attention, "mlp": block.mlp}[part]
    kept = {}

    def change(x, stored):
        if stored is None:
            kept["x"] = x.clone()
            return x
        x = x.clone()
        x[:, position] = stored[:, position]
        return x

    def hook(stored):
        if part == "residual":
            return module.register_forward_pre_hook(lambda _, args: (change(args[0], stored), *args[1:]))
        if part == "attention":
            return module.register_forward_hook(lambda _, __, out: (change(out[0], stored), *out[1:]))
        return module.register_forward_hook(lambda _, __, out: change(out, stored))

    logits = None
    for text, stored in ((clean, False), (corrupted, True)):
        handle = hook(kept["x"] if stored else None)
        with torch.no_grad():
            logits = network(torch.tensor([tokenizer(text)["input_ids"]])).logits[0, -1]
        handle.remove()
    return logits.numpy()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_every_cell_equals_a_patch_by_plain_hooks(family, part):
    location = locate(build(family), CLEAN, CORRUPTED, part=part)
    target = location.target
    for layer, position in np.ndindex(*location.values.shape):
        logits = by_hand(family, part, CLEAN, CORRUPTED, layer, position)
        assert location.values[layer, position] == pytest.approx(float(target.of(logits[None])[0]), abs=1e-9)
    low, high = location.corrupted_value, location.clean_value
    assert location.scores == pytest.approx((location.values - low) / (high - low))


@pytest.mark.parametrize("measure", ["log-probability", "probability"])
def test_a_probability_is_that_of_the_target_alone(measure):
    model = build("gpt2")
    location = locate(model, CLEAN, CORRUPTED, measure=measure)
    logits = torch.from_numpy(model([CLEAN, CORRUPTED])).log_softmax(dim=-1)
    expected = logits[:, location.target.index]
    expected = expected.exp() if measure == "probability" else expected
    assert location.target.against is None
    assert [location.clean_value, location.corrupted_value] == pytest.approx(expected.tolist())
    patched = torch.from_numpy(by_hand("gpt2", "mlp", CLEAN, CORRUPTED, 1, 3)).log_softmax(dim=-1)
    patched = patched[location.target.index]
    other = locate(model, CLEAN, CORRUPTED, measure=measure, part="mlp").values[1, 3]
    assert other == pytest.approx(float(patched.exp() if measure == "probability" else patched))


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "transformer", "encoder"])
def test_the_embedding_of_the_one_different_word_restores_everything(family):
    corrupted = "the film was dull and very bright ." if family in ("transformer", "encoder", "bert") else CORRUPTED
    location = locate(build(family), CLEAN, corrupted, unit="word", target=1, against=2)
    different = [place for place, name in enumerate(location.positions) if " / " in name]
    assert len(different) == 1
    assert location.scores[0, different[0]] == pytest.approx(1.0)
    assert np.delete(location.scores[0], different) == pytest.approx(0.0)


def test_patches_before_the_first_different_token_change_nothing():
    location = locate(build("llama"), CLEAN, CORRUPTED)
    first = next(place for place, name in enumerate(location.positions) if " / " in name)
    assert first > 0
    assert (location.values[:, :first] == location.corrupted_value).all()
    assert (location.values[1:, first:] != location.corrupted_value).all()


def test_attention_of_the_last_layer_matters_at_the_last_token_only():
    scores = locate(build("gpt2"), CLEAN, CORRUPTED, part="attention").scores
    assert scores[-1, :-1] == pytest.approx(0.0)
    assert abs(scores[-1, -1]) > 1e-6


@pytest.mark.parametrize("memory", ["1kB", "100kB"])
def test_a_memory_limit_changes_no_value(memory):
    model = build("gpt2")
    limited = locate(model, CLEAN, CORRUPTED, memory=memory, progress=False)
    assert limited.values == pytest.approx(locate(model, CLEAN, CORRUPTED).values, abs=1e-10)


def test_words_are_patched_with_all_their_tokens():
    clean, corrupted = "an goodable film", "an filmable film"
    model = build("bert")
    documents = [model.encode(text) for text in (clean, corrupted)]
    assert len(documents[0].ids) > len(documents[0].word_texts) + 2
    location = locate(model, clean, corrupted, unit="word")
    assert len(location.tokens) == 3 + 2
    assert location.positions[2] == "goodable / filmable"
    assert location.scores[0, 2] == pytest.approx(1.0)
    tokens = locate(model, clean, corrupted)
    assert len(tokens.tokens) == len(documents[0].ids)


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_both_towers_of_an_encoder_decoder_are_patched(family):
    clean, corrupted = (heedful.Pair(f"the film was {word} .", "a bad") for word in ("good", "dull"))
    model = build(family)
    location = locate(model, clean, corrupted, target=7, against=9)
    different = [place for place, name in enumerate(location.positions) if " / " in name]
    assert location.scores[0, different] == pytest.approx([1.0])
    # The source reaches the decoder inside of its first layer, so every place behind that restores something.
    start = int((model.encode(clean).segments == 0).sum())
    assert location.scores[0, start:] == pytest.approx(0.0)
    assert (np.abs(location.scores[1:, start:]) > 1e-9).all()


def test_towers_of_different_depth_leave_places_that_do_not_exist():
    model = build("t5")
    blocks = model.network.decoder.block
    location = None
    try:
        model.network.decoder.block = blocks[:1]
        location = locate(model, *(heedful.Pair(f"{word} film", "a") for word in ("good", "dull")), target=7, against=9)
    finally:
        model.network.decoder.block = blocks
    segments = model.encode(heedful.Pair("good film", "a")).segments
    assert (np.isnan(location.values[1]) == (segments == 1)).all()
    assert not np.isnan(location.values[0]).any()
    assert location.as_dict()["values"][1][-1] is None


def test_the_default_compares_what_each_prompt_prefers():
    model = build("gpt2")
    location = locate(model, CLEAN, CORRUPTED)
    clean, corrupted = model([CLEAN, CORRUPTED])
    one, two = int(clean.argmax()), int(corrupted.argmax())
    assert one != two
    assert (location.target.index, location.target.against) == (one, two)
    assert location.clean_value == pytest.approx(clean[one] - clean[two])
    assert location.notes == ()


def test_without_a_token_to_compare_with_a_note_says_so():
    model = build("gpt2")
    location = locate(model, CLEAN, CORRUPTED, target=int(model([CORRUPTED])[0].argmax()))
    assert location.target.against is None
    assert "alone is the target" in location.notes[0]


def test_two_prompts_of_different_lengths_are_refused():
    with pytest.raises(
        BadInput, match=r"the clean one has \d+ and the corrupted one \d+\. They differ first at token 5"
    ):
        locate(build("gpt2"), CLEAN, "the film was")
    with pytest.raises(BadInput, match="'good' and the end"):
        locate(build("gpt2"), CLEAN, "the film was")


def test_equal_prompts_are_refused():
    with pytest.raises(BadInput, match="Both prompts are the same"):
        locate(build("gpt2"), CLEAN, CLEAN)


def test_empty_prompts_are_refused():
    with pytest.raises(BadInput, match="give two prompts"):
        locate(build("gpt2"), "", CLEAN)


def test_a_target_that_does_not_differ_is_refused():
    model = build("gpt2")
    weight = model.network.lm_head.weight
    with torch.no_grad():
        kept = weight.clone()
        weight[11] = weight[12]
    try:
        with pytest.raises(BadInput, match="the same value, 0, so there is nothing to restore"):
            locate(model, CLEAN, CORRUPTED, target=11, against=12)
    finally:
        with torch.no_grad():
            weight.copy_(kept)


def test_an_output_that_is_not_a_number_is_refused_and_the_hooks_are_removed():
    model = build("llama")
    hooks = [len(module._forward_pre_hooks) for module in model.network.modules()]
    weight = model.network.model.layers[1].mlp.down_proj.weight
    with torch.no_grad():
        kept = weight.clone()
        weight[0, 0] = float("nan")
    try:
        with pytest.raises(BadInput, match="not a finite number"):
            locate(model, CLEAN, CORRUPTED)
    finally:
        with torch.no_grad():
            weight.copy_(kept)
    assert [len(module._forward_pre_hooks) for module in model.network.modules()] == hooks


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "no such token"}, "is not one of the model's"),
        ({"target": 3, "against": 3}, "A contrast needs two classes"),
        ({"part": "values"}, "no part 'values'"),
        ({"unit": "sentence"}, "no unit 'sentence'"),
        ({"memory": "much"}, "memory must be a size"),
    ],
)
def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises(HeedfulError, match=message):
        locate(build("gpt2"), CLEAN, CORRUPTED, **settings)


def test_a_model_without_layers_is_refused(tiny):
    with pytest.raises(Unsupported, match="whose layers can be replaced"):
        locate(tiny, "good film", "bad film")
