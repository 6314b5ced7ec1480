import hashlib
import json
from itertools import product

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import heedful
from heedful.errors import BadCheckpoint, BadInput, HeedfulError
from heedful.models.load import load
from heedful.models.network import positional_table
from heedful.run_folder import read_tensors, write_tensors
from heedful.target import Target
from tests.conftest import tiny_model
from tests.straightforward import Straightforward

TEXTS = ["good film , good story", "", "the unseen plot was not dull ! " * 5, "zzz"]


TRAINED = {"positional": "learned", "padding": "eos"}
"""Learned positions, and padding by a token of its own."""


@pytest.mark.parametrize(
    "changes", [{}, {"n_heads": 1, "n_classes": 2, "bias": False}, {"positional": "authors"}, TRAINED]
)
def test_logits_are_those_of_the_model_written_head_by_head(changes):
    model = tiny_model(**changes)
    assert np.allclose(model(TEXTS), Straightforward(model).predict(TEXTS), atol=1e-12)


def test_look_up_equals_the_forward_pass(tiny):
    ids = tiny.padded([tiny.encode(text).ids for text in TEXTS])
    assert torch.allclose(tiny.network.read(ids), tiny.network(tiny.network.embed(ids)), atol=1e-12)
    many = torch.cat([ids] * 100)
    assert torch.allclose(tiny.network.read(many)[-4:], tiny.network.read(ids), atol=1e-14)


def test_documents_and_texts_give_the_same_logits(tiny):
    assert np.array_equal(tiny.logits([tiny.encode(text) for text in TEXTS]), tiny(TEXTS))


def test_prediction_never_forms_a_matrix_of_tokens_by_tokens(tiny):
    shapes = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                shapes.append(tuple(result.shape))
            return result

    with Watch():
        documents = [tiny.encode(text) for text in TEXTS]
        tiny(TEXTS)
        tiny.forward(tiny.embed(documents), documents)
        tiny.attention(documents)
    T = tiny.network.config.T_max
    assert shapes
    assert not [shape for shape in shapes if shape.count(T) > 1]


def test_first_row_of_the_matrices_is_the_attention_that_is_read_out(tiny):
    document = tiny.encode(TEXTS[0])
    maps, attention = tiny.maps(document), tiny.attention([document])
    assert maps.shape == (1, 3, 6, 16)
    assert np.allclose(maps.sum(axis=-1), 1)
    assert np.allclose(maps[0, :, 0], attention[0, 0], atol=1e-12)


def test_matrices_are_the_softmax_of_every_query_with_every_key(tiny):
    document = tiny.encode(TEXTS[0])
    plain = Straightforward(tiny).requires_grad_(False)
    e = plain.embedding(torch.tensor([plain.ids(TEXTS[0])])) + plain.positions
    for head, module in enumerate(plain.heads):
        q, k = module.query(e)[0], module.key(e)[0]
        for s, t in product(range(6), range(16)):
            expected = torch.exp(q[s] @ k[t] / 6**0.5) / sum(torch.exp(q[s] @ k[u] / 6**0.5) for u in range(16))
            assert tiny.maps(document)[0, head, s, t] == pytest.approx(float(expected), abs=1e-12)


def test_positional_table_of_equation_3_coordinate_by_coordinate():
    table = positional_table("equation-3", T_max=9, d_e=6)
    for t, i in product(range(1, 10), range(1, 4)):
        angle = t / 9 ** (2 * i / 6)
        assert table[t - 1, 2 * i - 1] == pytest.approx(np.cos(angle))
        assert table[t - 1, 2 * i - 2] == pytest.approx(np.sin(angle))


def test_positional_table_of_the_authors_coordinate_by_coordinate():
    table = positional_table("authors", T_max=9, d_e=6)
    for t, i in product(range(9), range(3)):
        angle = t / 10_000 ** (2 * i / 6)
        assert table[t, 2 * i] == pytest.approx(np.sin(angle))
        assert table[t, 2 * i + 1] == pytest.approx(np.cos(angle))


@pytest.mark.parametrize("changes", [{}, TRAINED], ids=["paper", "trained"])
@pytest.mark.parametrize("text", ["good film , good story zzz", "the film was bad " * 4])
def test_masked_values_are_forward_passes_of_the_masked_texts(changes, text):
    tiny = tiny_model(**changes)
    document = tiny.encode(text)
    plain = Straightforward(tiny)
    rng = np.random.default_rng(0)
    keep = rng.random((40, len(document.ids))) < 0.5
    keep[:, 0] = True
    keep[0], keep[1, 1:] = True, False
    target, asked = np.array([1.0, 0.0, -1.0]), Target(0, "", 2)
    words = np.array(document.pieces[1:])
    deleted = [" ".join(words[row[1:]]) for row in keep]
    replaced = [" ".join(np.where(row[1:], words, "neverseen")) for row in keep]
    assert np.allclose(tiny.masked(document, asked, keep, "delete"), plain.predict(deleted) @ target, atol=1e-12)
    assert np.allclose(tiny.masked(document, asked, keep, "replace"), plain.predict(replaced) @ target, atol=1e-12)
    for absence, texts in (("delete", deleted), ("replace", replaced)):
        chances = torch.from_numpy(plain.predict(texts)).log_softmax(dim=1).numpy()
        values = tiny.masked(document, Target(1, "", None, "log-probability"), keep, absence)
        assert np.allclose(values, chances[:, 1], atol=1e-12)


def test_masks_in_many_portions_give_what_one_portion_gives(tiny):
    document = tiny.encode(TEXTS[0])
    keep = np.random.default_rng(0).random((30_000, 6)) < 0.5
    keep[:, 0] = True
    whole = tiny.masked(document, Target(1, ""), keep, "delete")
    assert np.allclose(whole[-50:], tiny.masked(document, Target(1, ""), keep[-50:], "delete"), atol=1e-13)


def test_very_unequal_attention_neither_overflows_nor_loses_digits():
    model = tiny_model()
    with torch.no_grad():
        model.network.W_k.mul_(100)
    text = "good film was very bad zzz but bright"
    document, plain = model.encode(text), Straightforward(model)
    q, k = plain.heads[0].query, plain.heads[0].key
    e = plain.embedding(torch.tensor(plain.ids(text))) + plain.positions
    assert float((q(e[0]) @ k(e).T).detach().abs().max()) / 6**0.5 > 60
    keep = np.random.default_rng(0).random((60, 9)) < 0.5
    keep[:, 0] = True
    words, target = np.array(text.split()), np.array([1.0, 0.0, -1.0])
    thinned = {
        "delete": [" ".join(words[row[1:]]) for row in keep],
        "replace": [" ".join(np.where(row[1:], words, "neverseen")) for row in keep],
    }
    for absence, texts in thinned.items():
        assert np.allclose(
            model.masked(document, Target(0, "", 2), keep, absence), plain.predict(texts) @ target, atol=1e-10
        )


def test_a_long_text_is_cut_and_says_so(tiny):
    document = tiny.encode("good " * 100)
    assert len(document.ids) == 16
    assert document.notes == ("Only the first 15 words were read; the last 85 are beyond the model's limit.",)


def test_unknown_words_are_named(tiny):
    assert tiny.encode("good qwerty film xyzzy").notes == ("2 of 4 words are unknown to the model: qwerty, xyzzy",)


def test_save_and_load_keep_the_model(tmp_path):
    model = tiny_model()
    model.save(tmp_path / "model.safetensors", {})
    again = load(str(tmp_path))
    assert again.classes == model.classes
    assert np.allclose(again(TEXTS), model(TEXTS), atol=0.05)
    again.save(tmp_path / "twice.safetensors", {})
    assert load(str(tmp_path / "twice.safetensors")).fingerprint == again.fingerprint
    assert again.fingerprint != model.fingerprint


def test_learned_positions_and_the_padding_token_are_saved_and_have_a_fingerprint(tmp_path):
    model = tiny_model(**TRAINED)
    assert {name for name, _ in model.network.named_parameters()} >= {"W_p", "W_e"}
    assert len(model.network.W_e) == len(model.vocabulary) + 1
    model.save(tmp_path / "model.safetensors", {})
    again = load(str(tmp_path))
    assert np.allclose(again(TEXTS), model(TEXTS), atol=0.05)
    assert torch.allclose(again.network.W_p, model.network.W_p, atol=1e-6)
    before = again.fingerprint
    with torch.no_grad():
        again.network.W_p[3] += 1
    vars(again).pop("fingerprint")
    assert again.fingerprint != before


def test_the_mean_word_vector_leaves_out_the_padding_token():
    model = tiny_model(**TRAINED)
    document, keep = model.encode("good film"), np.array([[True, False, True]])
    with torch.no_grad():
        e = model.network.W_e[[0, 2, 3] + [len(model.vocabulary)] * 13] + model.network.W_p
        e[1] = model.network.W_e[2 : len(model.vocabulary)].mean(dim=0) + model.network.W_p[1]
        e[2] = model.network.W_e[model.vocabulary.index["film"]] + model.network.W_p[2]
        expected = float(model.network(e[None])[0, 1])
    assert model.masked(document, Target(1, ""), keep, "mean") == pytest.approx([expected], abs=1e-12)


def _foreign(path):
    save_file({"x": torch.zeros(2)}, path)


def _truncated(path):
    tiny_model().save(path, {})
    path.write_bytes(path.read_bytes()[:-100])


def _rewritten(path, **changes):
    """A whole file, checksum included, with other metadata."""
    tiny_model().save(path, {})
    tensors, metadata = read_tensors(path)
    del metadata["checksum"]
    config = {**json.loads(metadata["config"]), **changes.pop("config", {})}
    write_tensors(path, tensors, {**metadata, "config": json.dumps(config), **changes})


def _misshapen(path):
    _rewritten(path, config={"d_e": 12})


def _other_table(path):
    _rewritten(path, config={"positional": "rotary"})


def _edited(path):
    tiny_model().save(path, {})
    tensors, metadata = read_tensors(path)
    metadata["config"] = metadata["config"].replace("equation-3", "authors")
    save_file(tensors, path, metadata)


def _unsealed(path):
    tiny_model().save(path, {})
    tensors, metadata = read_tensors(path)
    del metadata["checksum"]
    save_file(tensors, path, metadata)


def _config_list(path):
    tiny_model().save(path, {})
    tensors, metadata = read_tensors(path)
    del metadata["checksum"]
    write_tensors(path, tensors, {**metadata, "config": "[]"})


def _one_class(path):
    model = tiny_model()
    model.classes = ("only",)
    model.save(path, {})


def _not_finite(path):
    model = tiny_model()
    with torch.no_grad():
        model.network.W_v[0, 0, 0] = torch.nan
    model.save(path, {})


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_foreign, "not a heedful model"),
        (_truncated, "not a valid heedful model"),
        (_misshapen, "do not match its settings"),
        (_not_finite, "not finite numbers"),
        (_other_table, "no positional 'rotary'"),
        (_one_class, "it has 3 classes, and they are named 'only'"),
        (_edited, "the checksum does not match"),
        (_unsealed, "its checksum is missing"),
        (lambda path: _rewritten(path, config={"T_max": 10**12}), "T_max is at most 1,000,000"),
        (lambda path: _rewritten(path, config={"n_heads": "x"}), "n_heads must be a whole number"),
        (lambda path: _rewritten(path, classes='["a", "a", "b"]'), "named 'a', 'a', 'b'"),
        (lambda path: _rewritten(path, classes='{"a": 1, "b": 2, "c": 3}'), "not a list of names"),
        (lambda path: _rewritten(path, classes='["a", 2, "c"]'), "not a list of names"),
        (lambda path: _rewritten(path, classes="abc"), "not a valid heedful model"),
        (lambda path: _rewritten(path, words="[cls]\n[unk]\na\na"), "not those of a vocabulary"),
        (_config_list, "its settings are not a dictionary"),
        (lambda path: path.write_bytes(b""), "not a valid heedful model"),
        (lambda path: path.write_bytes(b"PK\x03\x04 a zip" * 99), "not a valid heedful model"),
    ],
)
def test_a_bad_checkpoint_is_one_sentence(tmp_path, spoil, sentence):
    path = tmp_path / "model.safetensors"
    spoil(path)
    with pytest.raises(BadCheckpoint, match=sentence) as caught:
        load(str(path))
    assert "\n" not in str(caught.value)


def test_every_flipped_bit_is_refused_or_changes_nothing(tmp_path):
    whole, path = tmp_path / "whole.safetensors", tmp_path / "flipped.safetensors"
    model = tiny_model()
    model.save(whole, {"command": "none"})
    content, fingerprint = whole.read_bytes(), load(str(whole)).fingerprint
    rng = np.random.default_rng(0)
    accepted = 0
    for place in rng.integers(0, len(content), size=150).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            again = load(str(path))
        except BadCheckpoint:
            continue
        accepted += 1
        assert again.fingerprint == fingerprint
    assert accepted <= 2


def test_a_file_of_the_first_format_loads_and_its_card_is_believed(tmp_path):
    path = tmp_path / "model.safetensors"
    model = tiny_model()
    model.save(path, {})
    tensors, metadata = read_tensors(path)
    del metadata["checksum"]
    save_file(tensors, path, {**metadata, "format": "heedful/single-layer/1"})
    assert load(str(path)).classes == model.classes
    stated = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "card.md").write_text(f"- SHA-256 of model.safetensors: `{stated}`\n", encoding="utf-8")
    assert load(str(path)).classes == model.classes
    (tmp_path / "card.md").write_text(f"- SHA-256 of model.safetensors: `{'0' * 64}`\n", encoding="utf-8")
    with pytest.raises(BadCheckpoint, match="not the one that card.md states"):
        load(str(path))


def test_another_table_or_other_class_names_give_another_fingerprint():
    one, table, names = tiny_model(), tiny_model(positional="authors"), tiny_model()
    names.classes = ("a", "b", "c")
    assert len({one.fingerprint, table.fingerprint, names.fingerprint}) == 3
    assert one.fingerprint == tiny_model().fingerprint


def test_attention_beyond_all_measure_is_refused_not_nan():
    model = tiny_model()
    with torch.no_grad():
        model.network.W_k.mul_(10_000)
    with pytest.raises(BadInput, match="nothing is left to attend to"):
        heedful.explain(model, "good film was very bad but bright", "lime", n_samples=300)


def test_a_missing_model_is_one_sentence():
    with pytest.raises(HeedfulError, match="There is no model 'papre'"):
        load("papre")
