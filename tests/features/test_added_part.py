from dataclasses import replace

import pytest
import torch
import transformers

import heedful
from heedful.errors import Unsupported
from heedful.features.text_source import TextSource
from tests.families import build, network_of
from tests.features.random_dictionaries import random_dictionary
from tests.features.test_activations import LINES

GROUPED = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "eos_token_id": 0,
    "bos_token_id": 0,
    "pad_token_id": None,
}


def wrapped(name, **settings):
    _, tokenizer = network_of("llama")
    config = getattr(transformers, f"{name}Config")(**GROUPED, vocab_size=len(tokenizer), **settings)
    return heedful.wrap(getattr(transformers, f"{name}ForCausalLM")(config).eval(), tokenizer)


@pytest.mark.parametrize(
    ("name", "settings"), [("Gemma2", {"head_dim": 4}), ("Olmo2", {}), ("Granite", {"residual_multiplier": 0.3})]
)
@pytest.mark.parametrize("part", ["attention", "mlp"])
def test_a_part_that_is_changed_before_it_is_added_is_refused(name, settings, part):
    model = wrapped(name, **settings)
    with pytest.raises(Unsupported, match=f"changes the output of its {part} before a layer adds it"):
        TextSource(model, 1, LINES, part)
    assert TextSource(model, 1, LINES).n_rows
    dictionary = random_dictionary(build("llama"), part=part, bind=False)
    unknown = replace(dictionary, card=replace(dictionary.card, model=""))
    with pytest.raises(Unsupported, match="use the part 'residual'"):
        unknown.bound(model)


@pytest.mark.parametrize(
    ("name", "settings"), [("Granite", {"residual_multiplier": 1.0}), ("Falcon", {}), ("Cohere", {})]
)
def test_parts_add_up_to_what_enters_the_next_layer(name, settings):
    model = wrapped(name, **settings)
    parts = [TextSource(model, 1, LINES, part).everything for part in ("residual", "attention", "mlp")]
    assert torch.allclose(sum(parts), TextSource(model, 2, LINES).everything, atol=1e-5)


@pytest.mark.parametrize("part", ["attention", "mlp"])
def test_rounding_in_half_precision_is_no_change(part):
    network, tokenizer = network_of("llama")
    model = heedful.wrap(network.to(torch.bfloat16).eval(), tokenizer)
    assert TextSource(model, 1, LINES, part).n_rows
