"""SAELens' folders are written by hand here, and what they compute is computed by hand: SAELens is not installed."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_tensors

import heedful
from heedful.errors import BadCheckpoint, BadInput, CannotWrite, Unsupported
from heedful.features.card import Card
from heedful.features.saelens import place_of
from tests.features.dictionaries import random_dictionary
from tests.test_run_folder import full_disk

D_E, WIDTH = 6, 15
X = np.random.default_rng(3).normal(size=(40, D_E)) + 0.4


def weights(seed=0, norms="any", **more):
    """Weights that nobody trained."""
    rng = np.random.default_rng(seed)
    W_dec = rng.normal(size=(WIDTH, D_E))
    if norms == "unit":
        W_dec /= np.linalg.norm(W_dec, axis=1, keepdims=True)
    own = {"W_enc": rng.normal(size=(D_E, WIDTH)), "b_enc": 0.3 * rng.normal(size=WIDTH), "W_dec": W_dec}
    return {**own, "b_dec": rng.normal(size=D_E), **more}


def folder(tmp_path, tensors, dtype=np.float32, **settings):
    """A folder as SAELens 6 writes it."""
    metadata = {"sae_lens_version": "6.54.0", "model_name": "gpt2", "hook_name": "blocks.3.hook_resid_pre"}
    config = {
        "d_in": D_E,
        "d_sae": WIDTH,
        "dtype": "float32",
        "device": "cpu",
        "apply_b_dec_to_input": True,
        "normalize_activations": "none",
        "reshape_activations": "none",
        "architecture": "standard",
        **settings,
    }
    config["metadata"] = {**metadata, **settings.get("metadata", {})}
    (tmp_path / "cfg.json").write_text(json.dumps(config))
    save_file({name: np.asarray(value, dtype) for name, value in tensors.items()}, tmp_path / "sae_weights.safetensors")
    return tmp_path


def compare(path, active, reconstruction):
    """The loaded dictionary computes these activations and rows."""
    dictionary = heedful.features.load(path)
    np.testing.assert_allclose(dictionary.encode(X), active, atol=2e-5)
    np.testing.assert_allclose(dictionary.decode(dictionary.encode(X)), reconstruction, atol=5e-5)
    np.testing.assert_allclose(np.linalg.norm(dictionary.directions, axis=1), 1, atol=1e-6)
    return dictionary


def lengths_of(w):
    return np.linalg.norm(w["W_dec"], axis=1)


@pytest.mark.parametrize("subtracts", [True, False])
def test_a_standard_dictionary_computes_the_same(tmp_path, subtracts):
    w = weights()
    a = np.maximum((X - w["b_dec"] * subtracts) @ w["W_enc"] + w["b_enc"], 0)
    path = folder(tmp_path, w, apply_b_dec_to_input=subtracts)
    dictionary = compare(path, a * lengths_of(w), a @ w["W_dec"] + w["b_dec"])
    assert dictionary.card.kind == "relu"


@pytest.mark.parametrize("name", ["threshold", "log_threshold"])
def test_a_jumprelu_has_a_threshold_for_every_feature(tmp_path, name):
    threshold = np.random.default_rng(9).uniform(0.1, 1.5, WIDTH)
    w = {**weights(), name: threshold if name == "threshold" else np.log(threshold)}
    z = (X - w["b_dec"]) @ w["W_enc"] + w["b_enc"]
    a = np.where(z > threshold, z, 0)
    training = {"training_architecture": "matryoshka_batchtopk"}
    dictionary = compare(
        folder(tmp_path, w, architecture="jumprelu", metadata=training),
        a * lengths_of(w),
        a @ w["W_dec"] + w["b_dec"],
    )
    assert dictionary.card.kind == "matryoshka"


def largest_of_rows(pre, k):
    kept = np.zeros_like(pre)
    for row, own in zip(kept, pre, strict=True):
        places = sorted(range(WIDTH), key=lambda j: -own[j])[:k]
        row[places] = np.maximum(own[places], 0)
    return kept


@pytest.mark.parametrize("rescales", [True, False])
def test_a_topk_selects_by_what_it_says(tmp_path, rescales):
    w = weights(norms="any" if rescales else "unit")
    z = (X - w["b_dec"]) @ w["W_enc"] + w["b_enc"]
    active = largest_of_rows(z * lengths_of(w), 4)
    rebuilt = active / lengths_of(w) @ w["W_dec"] + w["b_dec"]
    path = folder(tmp_path, w, architecture="topk", k=4, rescale_acts_by_decoder_norm=rescales)
    assert compare(path, active, rebuilt).rule.k == 4


def test_a_topk_that_selects_without_lengths_that_differ_is_refused(tmp_path):
    path = folder(tmp_path, weights(), architecture="topk", k=4, rescale_acts_by_decoder_norm=False)
    with pytest.raises(BadCheckpoint, match="selects k features by activations without the lengths"):
        heedful.features.load(path)


@pytest.mark.parametrize("rescales", [True, False])
@pytest.mark.parametrize("architecture", ["batchtopk", "matryoshka_batchtopk"])
def test_a_checkpoint_of_batchtopk_has_the_tracked_threshold(tmp_path, architecture, rescales):
    w, scale = weights(topk_threshold=0.8), lengths_of(weights()) if rescales else 1.0
    z = ((X - w["b_dec"]) @ w["W_enc"] + w["b_enc"]) * scale
    a = np.where(z > 0.8, z, 0) / scale
    path = folder(tmp_path, w, architecture=architecture, k=3.5, rescale_acts_by_decoder_norm=rescales)
    compare(path, a * lengths_of(w), a @ w["W_dec"] + w["b_dec"])


def test_the_scale_of_a_checkpoint_is_folded_in_and_without_it_the_file_is_refused(tmp_path):
    threshold = np.linspace(0.1, 1, WIDTH)
    w = weights(threshold=threshold)
    z = (2.5 * X - w["b_dec"]) @ w["W_enc"] + w["b_enc"]
    a = np.where(z > threshold, z, 0)
    path = folder(tmp_path, w, architecture="jumprelu", normalize_activations="expected_average_only_in")
    with pytest.raises(BadCheckpoint, match="trained on rescaled rows, and activation_scaler.json with their scale"):
        heedful.features.load(path)
    (path / "activation_scaler.json").write_text('{"scaling_factor": 2.5}')
    compare(path, a * lengths_of(w) / 2.5, (a @ w["W_dec"] + w["b_dec"]) / 2.5)
    (path / "activation_scaler.json").write_text('{"scaling_factor": null}')
    with pytest.raises(BadCheckpoint, match="cannot|can"):
        heedful.features.load(path)


def test_a_folder_of_an_older_version_is_read(tmp_path):
    w, path = weights(norms="unit"), folder(tmp_path, weights(norms="unit", scaling_factor=np.ones(WIDTH)))
    old = {"d_in": D_E, "d_sae": WIDTH, "dtype": "torch.float32", "hook_point": "blocks.5.hook_resid_post"}
    old |= {"activation_fn_str": "topk", "activation_fn_kwargs": {"k": 3}, "normalize_activations": False}
    (path / "cfg.json").write_text(json.dumps({**old, "hook_point_head_index": None, "prepend_bos": True}))
    active = largest_of_rows((X - w["b_dec"]) @ w["W_enc"] + w["b_enc"], 3)
    card = compare(path, active, active @ w["W_dec"] + w["b_dec"]).card
    assert (card.kind, card.part, card.layer) == ("topk", "residual", 6)
    assert card.settings["prepend_bos"] is True


def test_half_precision_is_read(tmp_path):
    path, whole = folder(tmp_path, weights()), weights()
    tensors = {name: torch.tensor(np.asarray(value)).bfloat16() for name, value in whole.items()}
    save_tensors(tensors, path / "sae_weights.safetensors")
    w = {name: tensor.double().numpy() for name, tensor in tensors.items()}
    a = np.maximum((X - w["b_dec"]) @ w["W_enc"] + w["b_enc"], 0)
    compare(path, a * lengths_of(w), a @ w["W_dec"] + w["b_dec"])


def test_densities_are_those_that_saelens_stored(tmp_path):
    path, density = folder(tmp_path, weights()), np.linspace(0, 0.5, WIDTH)
    save_file({"sparsity": np.log10(density + 1e-10).astype(np.float32)}, path / "sparsity.safetensors")
    dictionary = heedful.features.load(path / "sae_weights.safetensors")
    np.testing.assert_allclose(dictionary.density, density, atol=1e-6)
    measured = dictionary.measured(X)
    active = dictionary.encode(X)
    np.testing.assert_allclose(measured.largest, active.max(axis=0))
    np.testing.assert_allclose(measured.density, (active > 0).mean(axis=0))


@pytest.mark.parametrize(
    ("hook", "place"),
    [
        ("blocks.3.hook_resid_pre", ("residual", 3)),
        ("blocks.3.hook_resid_post", ("residual", 4)),
        ("blocks.11.hook_attn_out", ("attention", 11)),
        ("blocks.0.hook_mlp_out", ("mlp", 0)),
        ("blocks.0.mlp.hook_out", ("mlp", 0)),
        ("transformer.h.7", ("residual", 8)),
        ("model.layers.12", ("residual", 13)),
        ("model.layers.12.mlp", ("mlp", 12)),
        ("gpt_neox.layers.2.attention", ("attention", 2)),
        ("layers.5.self_attn", ("attention", 5)),
        ("blocks.3.attn.hook_z", ("residual", -1)),
        ("blocks.3.hook_resid_mid", ("residual", -1)),
        ("", ("residual", -1)),
        (None, ("residual", -1)),
    ],
)
def test_a_hook_s_name_says_the_layer_and_the_part(hook, place):
    assert place_of(hook) == place


def test_where_the_layer_is_unknown_it_is_given(tmp_path):
    path = folder(tmp_path, weights(), metadata={"hook_name": "blocks.3.attn.hook_z"})
    assert heedful.features.load(path).card.layer == -1
    card = heedful.features.load(path, layer=3, part="attention").card
    assert (card.layer, card.part) == (3, "attention")
    with pytest.raises(BadInput, match="The layer must be a whole number of at least 0; None was given"):
        heedful.features.load(path, part="mlp")
    with pytest.raises(BadInput, match="The layer must be a whole number of at least 0; -2 was given"):
        heedful.features.load(path, layer=-2)
    with pytest.raises(BadInput, match="part"):
        heedful.features.load(path, layer=2, part="head")


def test_a_layer_that_contradicts_the_file_is_refused(tmp_path):
    path = folder(tmp_path, weights())
    assert heedful.features.load(path, layer=3).card.layer == 3
    with pytest.raises(BadInput, match="belongs to the residual stream that enters layer 3, not to the MLP output"):
        heedful.features.load(path, layer=3, part="mlp")


def written(dictionary, path):
    """What SAELens computes from the folder, in NumPy."""
    dictionary.save(path, format="saelens")
    config, w = json.loads((path / "cfg.json").read_text()), load_file(path / "sae_weights.safetensors")
    assert config["apply_b_dec_to_input"] is False
    assert (config["d_in"], config["d_sae"]) == w["W_enc"].shape
    pre = X @ w["W_enc"] + w["b_enc"]
    if config["architecture"] == "topk":
        assert config["rescale_acts_by_decoder_norm"] is False
        active = largest_of_rows(pre, config["k"])
    else:
        active = np.where(pre > w.get("threshold", 0), np.maximum(pre, 0), 0)
    assert set(w) == {"W_enc", "b_enc", "W_dec", "b_dec", *(["threshold"] * (config["architecture"] == "jumprelu"))}
    return config, active, active @ w["W_dec"] + w["b_dec"]


@pytest.mark.parametrize(("kind", "architecture"), [("topk", "topk"), ("relu", "standard"), ("batchtopk", "jumprelu")])
def test_a_dictionary_that_is_written_computes_the_same_there_and_is_read_back(tmp_path, kind, architecture):
    rows = np.random.default_rng(0).normal(size=(300, D_E))
    settings: dict[str, Any] = {} if kind == "relu" else {"k": 2}
    dictionary = heedful.features.fit(rows, WIDTH, kind, n_rows=2000, batch_size=50, progress=False, **settings)
    config, active, rebuilt = written(dictionary, tmp_path)
    assert config["architecture"] == architecture
    np.testing.assert_allclose(dictionary.encode(X), active, atol=1e-5)
    np.testing.assert_allclose(dictionary.decode(dictionary.encode(X)), rebuilt, atol=1e-5)
    again = heedful.features.load(tmp_path)
    np.testing.assert_allclose(again.encode(X), active, atol=1e-5)
    np.testing.assert_allclose(again.largest, dictionary.largest)
    np.testing.assert_allclose(again.density, dictionary.density, atol=1e-6)
    assert again.card == dictionary.card
    assert again.fingerprint == dictionary.fingerprint


@pytest.mark.parametrize(
    ("part", "hook"),
    [
        ("residual", "blocks.2.hook_resid_pre"),
        ("attention", "blocks.2.hook_attn_out"),
        ("mlp", "blocks.2.hook_mlp_out"),
    ],
)
def test_the_hook_is_written_and_known_again(tmp_path, part, hook):
    dictionary = random_dictionary(WIDTH, D_E, card=Card("jumprelu", part=part, layer=2))
    assert written(dictionary, tmp_path)[0]["metadata"]["hook_name"] == hook
    assert place_of(hook) == (part, 2)


def test_what_saelens_cannot_compute_is_not_written(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, D_E))
    refined = heedful.features.fit(rows, WIDTH, k=2.0, n_rows=500, progress=False)
    with pytest.raises(Unsupported, match="refines its code; train this one with passes=0"):
        refined.save(tmp_path, format="saelens")
    with pytest.raises(Unsupported, match="both k and thresholds"):
        random_dictionary(WIDTH, D_E, k=2).save(tmp_path, format="saelens")
    plain = random_dictionary(WIDTH, D_E)
    with pytest.raises(BadInput, match="format"):
        plain.save(tmp_path, format="gguf")
    with pytest.raises(BadInput, match="Half precision"):
        plain.save(tmp_path, half=True, format="saelens")
    with pytest.raises(BadInput, match=r"is a folder; x.safetensors is the name of a file"):
        plain.save(tmp_path / "x.safetensors", format="saelens")
    with full_disk(100), pytest.raises(CannotWrite, match="cannot be written"):
        plain.save(tmp_path, format="saelens")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"architecture": "gated"}, "its architecture is 'gated'; standard, topk, jumprelu, batchtopk"),
        ({"architecture": "jumprelu"}, "its tensors are not those of jumprelu, 15 × 6"),
        ({"d_sae": 14}, "its tensors are not those of standard, 14 × 6"),
        ({"normalize_activations": "layer_norm"}, "it normalises every row .layer_norm., which a dictionary does not"),
        ({"architecture": "topk", "k": 0}, "its k is 0"),
        ({"architecture": "topk", "k": "many"}, "its k is 'many'"),
        ({"architecture": "topk"}, "'k' is missing"),
        ({"activation_fn": "tanh-relu"}, "its activation function is 'tanh-relu'"),
    ],
)
def test_a_kind_that_cannot_be_read_is_one_sentence(tmp_path, settings, sentence):
    with pytest.raises(BadCheckpoint, match=f"is not a dictionary of SAELens that can be read: {sentence}"):
        heedful.features.load(folder(tmp_path, weights(), **settings))


def damaged(path, tensors):
    save_file(
        {name: np.asarray(value, np.float32) for name, value in tensors.items()}, path / "sae_weights.safetensors"
    )


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: (path / "cfg.json").unlink(), "cfg.json is missing"),
        (lambda path: (path / "cfg.json").write_text("[]"), "its settings are not a dictionary"),
        (lambda path: (path / "cfg.json").write_text("{"), "Expecting property name"),
        (lambda path: (path / "cfg.json").write_text('{"metadata": 3, "architecture": "standard"}'), "its metadata"),
        (lambda path: (path / "sae_weights.safetensors").write_bytes(b"no"), "header"),
        (lambda path: damaged(path, weights(b_enc=np.full(WIDTH, np.nan))), "some of its numbers are not finite"),
        (lambda path: damaged(path, weights(scaling_factor=np.full(WIDTH, 2.0))), "it rescales its activations"),
        (lambda path: damaged(path, weights(W_skip=np.ones(3))), "its tensors are not those of standard"),
        (lambda path: damaged(path, weights(topk_threshold=np.ones(3))), "."),
        (lambda path: (path / "sparsity.safetensors").write_bytes(b"no"), "header"),
    ],
)
def test_a_damaged_folder_is_one_sentence(tmp_path, damage, sentence):
    path = folder(tmp_path, weights())
    damage(path)
    with pytest.raises(BadCheckpoint, match=f"is not a dictionary of SAELens that can be read: .*{sentence}") as error:
        heedful.features.load(path)
    assert "\n" not in str(error.value)


def test_a_changed_number_in_a_folder_of_ours_is_seen(tmp_path):
    random_dictionary(WIDTH, D_E).save(tmp_path, format="saelens")
    path = tmp_path / "sae_weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadCheckpoint, match="it is damaged: the checksum does not match"):
        heedful.features.load(tmp_path)
