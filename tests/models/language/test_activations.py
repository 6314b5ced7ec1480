import pytest
import torch
import transformers

import heedful
from heedful.errors import HeedfulError, Unsupported
from heedful.models.attention_hook import is_heard
from heedful.models.language.activations import find_sites, record_activations, replaced_activations
from tests.families import TEXTS, build, byte_pairs, loud

PARTS = ("residual", "attention", "mlp")
DECODERS = ("gpt2", "llama", "mistral", "qwen")


def all_hooks(network):
    return [hook for module in network.modules() for hook in (*module._forward_hooks, *module._forward_pre_hooks)]


def run(model, document):
    with torch.no_grad():
        return model.forward(model.embed([document]), [document])


@pytest.mark.parametrize("family", [*DECODERS, "encoder"])
def test_a_layer_adds_attention_and_mlp_to_the_residual_stream(family):
    model = build(family)
    document = model.encode(TEXTS[1])
    at = {part: list(record_activations(model, [document], find_sites(model, part)).at.values()) for part in PARTS}
    for layer in range(2):
        added = at["residual"][layer] + at["attention"][layer] + at["mlp"][layer]
        assert torch.allclose(added, at["residual"][layer + 1], atol=1e-10)


@pytest.mark.parametrize("family", DECODERS)
def test_the_residual_stream_is_that_of_transformers(family):
    model = build(family)
    document = model.encode(TEXTS[1])
    at = record_activations(model, [document], find_sites(model, "residual")).at
    with torch.no_grad():
        states = model.network(torch.from_numpy(document.ids)[None], output_hidden_states=True).hidden_states
    for x, expected in zip(at.values(), states, strict=False):
        assert torch.allclose(x, expected, atol=1e-10)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("family", ["gpt2", "llama", "t5", "bart", "encoder"])
def test_a_replacement_that_changes_nothing_leaves_the_logits(family, part):
    model = build(family)
    document = model.encode(TEXTS[0])
    sites = find_sites(model, part)
    recorded = record_activations(model, [document], sites)
    assert torch.equal(recorded.logits, run(model, document))
    with replaced_activations(model, sites, lambda site, x: recorded.at[site] + 0 * x):
        assert torch.allclose(run(model, document), recorded.logits, atol=1e-12)


def test_an_encoder_decoder_has_the_sites_of_both_towers():
    sites = find_sites(build("t5"), "mlp")
    assert [(site.source, site.layer) for site in sites] == [(True, 0), (True, 1), (False, 0), (False, 1)]


def test_only_the_given_sites_are_replaced():
    model = build("gpt2")
    document = model.encode(TEXTS[0])
    sites = find_sites(model, "mlp")
    before = record_activations(model, [document], sites).at
    replaced = []

    def silence(site, x):
        replaced.append(site.layer)
        return torch.zeros_like(x)

    with replaced_activations(model, sites[1:2], silence):
        after = record_activations(model, [document], sites).at
    assert replaced == [1]
    assert torch.equal(before[sites[0]], after[sites[0]])
    assert not torch.allclose(before[sites[2]], after[sites[2]])


def test_the_network_is_restored_after_an_error():
    model = build("llama")
    document = model.encode(TEXTS[0])
    expected, hooks = run(model, document), all_hooks(model.network)

    def fail(site, x):
        raise ZeroDivisionError

    for part in PARTS:
        with pytest.raises(ZeroDivisionError), replaced_activations(model, find_sites(model, part), fail):
            run(model, document)
    assert all_hooks(model.network) == hooks
    assert not is_heard(model.network)
    assert torch.equal(run(model, document), expected)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_of_a_layer_that_normalises_its_sums_a_part_is_what_is_added_before_the_norm(family):
    model = build(family)
    document = model.encode(TEXTS[1])
    x, attention, mlp = (
        list(record_activations(model, [document], find_sites(model, part)).at.values()) for part in PARTS
    )
    for layer, module in enumerate(model.network.base_model.encoder.layer[:-1]):
        between = module.attention.output.LayerNorm(x[layer] + attention[layer])
        assert torch.allclose(module.output.LayerNorm(between + mlp[layer]), x[layer + 1], atol=1e-10)


def test_bloom_has_its_parts_before_it_adds_the_residual_stream():
    config = transformers.BloomConfig(vocab_size=len(byte_pairs()), hidden_size=16, n_layer=2, n_head=4)
    model = heedful.wrap(loud(transformers.BloomForCausalLM(config)).double().eval(), byte_pairs())
    document = model.encode(TEXTS[1])
    x, attention, mlp = (
        list(record_activations(model, [document], find_sites(model, part)).at.values()) for part in PARTS
    )
    assert torch.allclose(x[0] + attention[0] + mlp[0], x[1], atol=1e-10)


@pytest.mark.parametrize("part", ["attention", "mlp"])
def test_a_part_that_no_module_returns_alone_is_refused(part):
    with pytest.raises(Unsupported, match=f"return the {part} output alone; use the part 'residual'"):
        find_sites(build("transformer"), part)


def test_layers_that_share_a_module_are_refused():
    model = build("albert")
    with pytest.raises(Unsupported, match="do not run once each"):
        record_activations(model, [model.encode(TEXTS[0])], find_sites(model, "residual"))


def test_an_unknown_part_is_refused():
    with pytest.raises(HeedfulError, match="no part 'values'"):
        find_sites(build("gpt2"), "values")
