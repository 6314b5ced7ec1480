import copy
import gc
import weakref

import numpy as np
import pytest
import torch

import heedful
from heedful.document import SPECIAL
from heedful.errors import BadInput, HeedfulError, Unsupported
from heedful.features import activations
from heedful.features.activations import find_site, text_rows
from heedful.features.source import stretches
from heedful.models.attention_hook import is_heard
from heedful.models.language.activations import find_sites
from tests.conftest import tiny_model
from tests.families import FAMILIES, TEXTS, build, network_of, pictures

LINES = [*TEXTS, "", "a dull plot ; but the actor was good !", "not bad", "the story was very very very bad ."]
COMPARED = ("bert", "roberta", "gpt2", "llama", "t5", "bart", "vit")


def inputs_for(family):
    return pictures() if family in ("vit", "deit") else LINES


def encoder_of(family):
    network = build(family).network
    return network.get_encoder() if family in ("t5", "bart") else network


def read_by_transformers(family, network, line):
    """The network's own output for one input, and which of its tokens are not special."""
    with torch.no_grad():
        if family == "vit":
            pixels = build(family).processor(images=line, return_tensors="pt")["pixel_values"].double()
            output = network(pixel_values=pixels, output_hidden_states=True)
            return output, [False] + [True] * (output.hidden_states[0].shape[1] - 1)
        _, tokenizer = network_of(family)
        read = tokenizer(line, return_special_tokens_mask=True)
        ids = torch.tensor([read["input_ids"]], dtype=torch.long)
        if not ids.numel():
            return None, []
        return network(input_ids=ids, output_hidden_states=True), [not mark for mark in read["special_tokens_mask"]]


@pytest.mark.parametrize("family", COMPARED)
def test_the_residual_stream_of_every_text_is_that_of_transformers_without_special_tokens(family):
    model, lines = build(family), inputs_for(family)
    documents = [model.encode(line) for line in lines]
    outputs = [read_by_transformers(family, encoder_of(family), line) for line in lines]
    for layer in range(2):
        rows = text_rows(model, documents, find_site(model, "residual", layer))
        expected = [output.hidden_states[layer][0][real] for output, real in outputs if any(real)]
        assert rows.x.dtype == torch.float32
        assert torch.allclose(rows.x, torch.cat(expected).float(), rtol=1e-5, atol=1e-6)


HOOKED = {
    ("bert", "attention"): lambda network: network.bert.encoder.layer[1].attention.output.dense,
    ("bert", "mlp"): lambda network: network.bert.encoder.layer[1].output.dense,
    ("gpt2", "attention"): lambda network: network.transformer.h[1].attn.c_proj,
    ("gpt2", "mlp"): lambda network: network.transformer.h[1].mlp.c_proj,
    ("llama", "attention"): lambda network: network.model.layers[1].self_attn.o_proj,
    ("llama", "mlp"): lambda network: network.model.layers[1].mlp.down_proj,
    ("t5", "attention"): lambda encoder: encoder.block[1].layer[0].SelfAttention.o,
    ("t5", "mlp"): lambda encoder: encoder.block[1].layer[1].DenseReluDense.wo,
    ("bart", "attention"): lambda encoder: encoder.layers[1].self_attn.out_proj,
    ("bart", "mlp"): lambda encoder: encoder.layers[1].fc2,
    ("vit", "attention"): lambda network: network.vit.layers[1].attention.o_proj,
    ("vit", "mlp"): lambda network: network.vit.layers[1].mlp.fc2,
}


@pytest.mark.parametrize(("family", "part"), HOOKED)
def test_attention_and_mlp_are_what_a_hook_on_their_last_map_reads(family, part):
    model, network, expected = build(family), encoder_of(family), []
    hooked = HOOKED[family, part](network)
    for line in inputs_for(family):
        kept = []
        handle = hooked.register_forward_hook(lambda _module, _inputs, output, kept=kept: kept.append(output))
        _, real = read_by_transformers(family, network, line)
        handle.remove()
        expected += [kept[0].reshape(len(real), -1)[real]] if any(real) else []
    documents = [model.encode(line) for line in inputs_for(family)]
    rows = text_rows(model, documents, find_site(model, part, 1))
    assert torch.allclose(rows.x, torch.cat(expected).float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", [*(family for family in FAMILIES if family != "classic"), "deberta"])
def test_a_batch_of_texts_gives_the_rows_of_each_text_alone(family, monkeypatch):
    model = build(family)
    documents = [model.encode(line) for line in inputs_for(family)]
    site = find_site(model, "residual", 0 if family == "albert" else 1)
    together = text_rows(model, documents, site)
    alone = [text_rows(model, [document], site).x for document in documents if (document.words != SPECIAL).any()]
    assert torch.allclose(together.x, torch.cat(alone), rtol=1e-5, atol=1e-6)
    monkeypatch.setitem(activations._MEMORY, "cpu", 1)
    assert torch.allclose(text_rows(model, documents, site).x, together.x, rtol=1e-5, atol=1e-6)


def test_a_classic_model_has_no_list_of_layers():
    with pytest.raises(Unsupported, match="list of layers"):
        find_site(build("classic"), "residual", 0)


def test_every_row_names_its_document_and_its_token():
    model = build("bert")
    documents = [model.encode(line) for line in LINES]
    rows = text_rows(model, documents, find_site(model, "residual", 0))
    with torch.no_grad():
        for number, document in enumerate(documents):
            mine = rows.document == number
            assert rows.token[mine].tolist() == np.flatnonzero(document.words != SPECIAL).tolist()
            embedded = model.network.bert.embeddings(torch.from_numpy(document.ids)[None])[0]
            assert torch.allclose(rows.x[mine], embedded[rows.token[mine]].float(), rtol=1e-5, atol=1e-6)


def test_of_a_pair_the_encoder_of_an_encoder_decoder_has_the_rows_of_the_source():
    model = build("t5")
    site = find_site(model, "residual", 1)
    pair, source = (model.encode(text) for text in (heedful.Pair(TEXTS[0], "a bad"), TEXTS[0]))
    assert torch.equal(text_rows(model, [pair], site).x, text_rows(model, [source], site).x)


def test_the_pass_stops_behind_the_site_and_leaves_the_network_as_it_was():
    model, ran = build("llama"), []
    document = model.encode(TEXTS[1])
    handles = [
        module.register_forward_hook(lambda *_, n=n: ran.append(n))
        for n, module in enumerate([*model.network.model.layers, model.network.lm_head])
    ]
    model.network.train()
    try:
        text_rows(model, [document], find_site(model, "residual", 1))
        assert ran == [0]
        assert all(module.training for module in model.network.modules())
        assert not is_heard(model.network)
        assert not any(module._forward_pre_hooks for module in model.network.modules())
    finally:
        model.network.eval()
        for handle in handles:
            handle.remove()


def test_nothing_of_the_stopped_pass_is_kept():
    model, states = build("gpt2"), []
    handle = model.network.transformer.h[0].register_forward_hook(lambda *o: states.append(weakref.ref(o[2])))
    gc.disable()
    try:
        rows = text_rows(model, [model.encode(TEXTS[1])], find_site(model, "residual", 1))
        assert len(rows.x)
        assert states[0]() is None
    finally:
        gc.enable()
        handle.remove()


def test_a_model_in_bfloat16_gives_rows_in_single_precision():
    network, tokenizer = network_of("llama")
    model = heedful.wrap(network.bfloat16().eval(), tokenizer)
    rows = text_rows(model, [model.encode(TEXTS[1])], find_site(model, "residual", 1)).x
    with torch.no_grad():
        states = network(torch.from_numpy(model.encode(TEXTS[1]).ids)[None], output_hidden_states=True).hidden_states
    assert rows.dtype == torch.float32
    assert torch.equal(rows, states[1][0].float())


@pytest.mark.parametrize("layer", [3, -1, True])
def test_a_layer_that_does_not_exist_is_refused(layer):
    with pytest.raises(BadInput, match=rf"layers 0 to 2; layer {layer} was given"):
        find_site(build("gpt2"), "residual", layer)


def test_a_model_without_layers_and_an_unknown_part_are_refused():
    for model in (tiny_model(), heedful.wrap(lambda texts: [[0.1, 0.9] for _ in texts])):
        with pytest.raises(Unsupported, match="no layers whose activations can be read"):
            find_site(model, "residual", 0)
    with pytest.raises(HeedfulError, match="no part 'values'"):
        find_site(build("gpt2"), "values", 0)


def test_of_an_encoder_decoder_the_site_is_in_the_encoder():
    site = find_site(build("bart"), "mlp", 1)
    assert site.source
    assert site.module is build("bart").network.model.encoder.layers[1].fc2


def test_a_position_is_required_for_every_token():
    model = build("t5")
    decoder = find_sites(model, "residual")[-1]
    with pytest.raises(Unsupported, match="vector of every token"):
        text_rows(model, [model.encode(TEXTS[0])], decoder)


def test_activations_that_are_not_finite_are_refused():
    model = copy.deepcopy(build("gpt2"))
    with torch.no_grad():
        model.network.transformer.h[0].mlp.c_proj.weight[0, 0] = float("nan")
    with pytest.raises(BadInput, match="layer 1 .residual. are not finite"):
        text_rows(model, [model.encode(TEXTS[0])], find_site(model, "residual", 1))


def test_stretches_pass_over_the_rows_again_and_again():
    for n, size in ((5, 3), (4, 4), (3, 7)):
        read = [
            (number, row)
            for chunk in range(6)
            for number, first, last in stretches(chunk * size, (chunk + 1) * size, n)
            for row in range(first, last)
        ]
        assert read == [divmod(row, n) for row in range(6 * size)]


def test_a_special_token_that_is_written_in_the_text_has_no_row():
    model = build("bert")
    site, written = find_site(model, "residual", 1), f"{TEXTS[0]} {model.tokenizer.sep_token} good"
    document = model.encode(written)
    place = int(np.flatnonzero(document.ids[:-1] == model.tokenizer.sep_token_id)[-1])
    assert document.words[place] != SPECIAL
    rows = text_rows(model, [document], site)
    assert rows.token.tolist() == [t for t in np.flatnonzero(document.words != SPECIAL) if t != place]
