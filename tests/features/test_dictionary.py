from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful
from heedful.errors import BadCheckpoint, BadInput, CannotWrite
from heedful.features.autoencoder import Rule
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary, read_dictionary
from heedful.run_folder import read_tensors, write_tensors
from tests.features.dictionaries import random_dictionary
from tests.test_run_folder import full_disk

D_E, WIDTH = 5, 12


def dictionary_with(rule=None, seed=0, card=None):
    """A dictionary with random weights."""
    rng = np.random.default_rng(seed)
    W_dec = torch.from_numpy(rng.normal(size=(WIDTH, D_E))).float()
    return Dictionary(
        W_enc=torch.from_numpy(rng.normal(size=(WIDTH, D_E))).float(),
        b_enc=torch.from_numpy(rng.normal(size=WIDTH)).float(),
        W_dec=torch.nn.functional.normalize(W_dec, dim=1),
        b_dec=torch.from_numpy(rng.normal(size=D_E)).float(),
        rule=rule or Rule(torch.from_numpy(rng.random((1, WIDTH))).float()),
        card=card or Card("jumprelu", {"k": 4}, model="0123456789abcdef", layer=2),
        largest=torch.from_numpy(rng.random(WIDTH)).float(),
        density=torch.from_numpy(rng.random(WIDTH)).float(),
    )


RULES = {
    "thresholds": Rule(torch.linspace(0, 1, WIDTH)[None]),
    "k": Rule(torch.zeros(1, WIDTH), k=3),
    "passes": Rule(torch.linspace(0, 0.5, 3 * WIDTH).reshape(3, WIDTH), step=0.2),
    "passes and k": Rule(torch.zeros(2, WIDTH), k=3, step=0.2),
}


def encoded(dictionary, x):
    """The activations of rows, from the docstrings of Dictionary and Rule."""
    W_enc, b_enc, W_dec, b_dec, thresholds = (
        tensor.double().numpy()
        for tensor in (
            dictionary.W_enc,
            dictionary.b_enc,
            dictionary.W_dec,
            dictionary.b_dec,
            dictionary.rule.thresholds,
        )
    )
    pre, active = x @ W_enc.T + b_enc, np.zeros((len(x), WIDTH))
    for number, threshold in enumerate(thresholds):
        if number:
            pre = pre + dictionary.rule.step * (x - active @ W_dec - b_dec) @ W_enc.T
        active = np.where(pre > threshold, np.maximum(pre, 0), 0)
        if dictionary.rule.k is not None:
            least = np.sort(active, axis=1)[:, -dictionary.rule.k][:, None]
            active = np.where(active >= least, active, 0)
    return active


def test_a_dictionary_is_shown_on_one_line():
    where = Card("topk", model="0123456789abcdef", model_name="reviews", part="mlp", layer=2)
    assert repr(dictionary_with(card=where)) == "<topk dictionary: 12 features of the MLP output of layer 2 of reviews>"
    unnamed = repr(dictionary_with())
    assert unnamed.endswith("features of the residual stream that enters layer 2 of 0123456789abcdef>")
    assert repr(dictionary_with(card=Card("relu"))) == "<relu dictionary: 12 features of activations of no known layer>"


def rows(n=30):
    return np.random.default_rng(9).normal(size=(n, D_E))


@pytest.mark.parametrize("name", RULES)
def test_activations_follow_the_rule(name):
    dictionary, x = dictionary_with(RULES[name]), rows()
    np.testing.assert_allclose(dictionary.encode(x), encoded(dictionary, x), atol=1e-5)


@pytest.mark.parametrize("name", RULES)
def test_an_array_gives_an_array_and_a_tensor_a_tensor(name):
    dictionary, x = dictionary_with(RULES[name]), rows()
    active, from_tensor = dictionary.encode(x), dictionary.encode(torch.from_numpy(x))
    assert isinstance(active, np.ndarray)
    assert isinstance(from_tensor, torch.Tensor)
    np.testing.assert_allclose(active, from_tensor.numpy(), atol=1e-6)
    back = dictionary.decode(active)
    np.testing.assert_allclose(back, active @ dictionary.directions + dictionary.b_dec.numpy(), atol=1e-5)
    np.testing.assert_allclose(back, dictionary.decode(from_tensor).numpy(), atol=1e-6)
    deep = dictionary.encode(x.reshape(5, 3, 2, D_E))
    assert deep.shape == (5, 3, 2, WIDTH)
    np.testing.assert_allclose(deep.reshape(-1, WIDTH), active, atol=1e-6)
    np.testing.assert_allclose(dictionary.encode(x[0]), active[0], atol=1e-6)
    assert dictionary.decode(deep).shape == (5, 3, 2, D_E)


def test_an_array_of_many_rows_is_the_same_in_parts():
    dictionary, x = dictionary_with(), np.random.default_rng(1).normal(size=(9000, D_E))
    np.testing.assert_allclose(dictionary.encode(x), dictionary.encode(torch.from_numpy(x)).numpy(), atol=1e-6)


@pytest.mark.parametrize("name", RULES)
def test_gradients_flow_through_what_is_active(name):
    dictionary, x = dictionary_with(RULES[name]), torch.from_numpy(rows(4)).requires_grad_(True)
    doubled = replace(
        dictionary, **{name: getattr(dictionary, name).double() for name in ("W_enc", "b_enc", "W_dec", "b_dec")}
    )
    doubled = replace(doubled, rule=replace(doubled.rule, thresholds=doubled.rule.thresholds.double()))
    assert torch.autograd.gradcheck(lambda rows: doubled.decode(doubled.encode(rows)), (x,))


def test_directions_have_length_one_and_are_numpy():
    directions = dictionary_with().directions
    assert directions.shape == (WIDTH, D_E)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, atol=1e-6)


def test_a_fingerprint_is_of_what_is_computed_with():
    one = dictionary_with()
    assert one.fingerprint == dictionary_with().fingerprint
    assert one.fingerprint == replace(one, card=Card("relu"), largest=one.largest + 1).fingerprint
    assert len(one.fingerprint) == 16
    others = (
        dictionary_with(seed=1),
        replace(one, b_dec=one.b_dec + 1),
        replace(one, rule=replace(one.rule, k=3)),
        replace(one, rule=replace(one.rule, step=0.1)),
    )
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 5


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("place", ["folder", "file.safetensors"])
def test_what_is_saved_is_loaded(tmp_path, name, place):
    dictionary = dictionary_with(RULES[name])
    dictionary.save(tmp_path / place)
    loaded = heedful.features.load(tmp_path / place)
    assert loaded.card == dictionary.card
    assert (loaded.rule.k, loaded.rule.step) == (dictionary.rule.k, dictionary.rule.step)
    assert loaded.fingerprint == dictionary.fingerprint
    assert torch.equal(loaded.largest, dictionary.largest)
    assert torch.equal(loaded.density, dictionary.density)
    assert np.array_equal(loaded.encode(rows()), dictionary.encode(rows()))
    assert (tmp_path / place / "card.md").exists() == (place == "folder")


def test_the_same_dictionary_is_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        dictionary_with().save(tmp_path / f"{name}.safetensors")
    heedful.features.load(tmp_path / "a.safetensors").save(tmp_path / "c.safetensors")
    assert len({(tmp_path / f"{name}.safetensors").read_bytes() for name in "abc"}) == 1


def test_half_precision_halves_the_matrices_and_keeps_directions_of_length_one(tmp_path):
    dictionary = dictionary_with()
    dictionary.save(tmp_path / "half.safetensors", half=True)
    stored = load_file(tmp_path / "half.safetensors")
    assert {name for name, tensor in stored.items() if tensor.dtype == torch.float16} == {"W_enc", "W_dec"}
    loaded = heedful.features.load(tmp_path / "half.safetensors")
    torch.testing.assert_close(loaded.W_dec.norm(dim=1), torch.ones(WIDTH))
    np.testing.assert_allclose(loaded.encode(rows()), dictionary.encode(rows()), atol=0.02)


def test_damaged_and_foreign_files_are_refused_with_a_sentence(tmp_path):
    path = tmp_path / "d.safetensors"
    dictionary_with().save(path)
    whole = path.read_bytes()
    for number, content in enumerate((whole[:-1], whole[: len(whole) // 2], b"", b"text", whole[:-40] + b"x" * 40)):
        bad = tmp_path / f"bad{number}.safetensors"
        bad.write_bytes(content)
        with pytest.raises(BadCheckpoint, match=f"^bad{number}.safetensors is not a valid dictionary: .+[^.]\\.$"):
            heedful.features.load(bad)
    foreign = tmp_path / "foreign.safetensors"
    save_file({"W_enc": torch.zeros(2, 2)}, foreign)
    with pytest.raises(BadCheckpoint, match="it is not a dictionary of heedful"):
        heedful.features.load(foreign)
    for missing in (tmp_path, tmp_path / "none", tmp_path / "none.safetensors"):
        with pytest.raises(BadCheckpoint, match="contains no dictionary; give a folder or file"):
            heedful.features.load(missing)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"b_enc": torch.zeros(WIDTH + 1)}, "its shapes do not fit each other"),
        ({"W_dec": torch.ones(WIDTH, D_E + 1)}, "its shapes do not fit each other"),
        ({"b_dec": torch.full((D_E,), torch.nan)}, "some of its numbers are not finite"),
    ],
)
def test_a_whole_file_with_senseless_content_is_refused(tmp_path, change, reason):
    # Its checksum fits.
    path = tmp_path / "d.safetensors"
    dictionary_with().save(path)
    tensors, metadata = read_tensors(path)
    del metadata["checksum"]
    write_tensors(path, {**tensors, **change}, metadata)
    with pytest.raises(BadCheckpoint, match=reason):
        read_dictionary(path)


def test_a_full_disk_leaves_the_old_dictionary(tmp_path):
    dictionary_with().save(tmp_path)
    before = (tmp_path / "dictionary.safetensors").read_bytes()
    with full_disk(500), pytest.raises(CannotWrite, match="cannot be written"):
        dictionary_with(seed=1).save(tmp_path)
    assert (tmp_path / "dictionary.safetensors").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["card.md", "dictionary.safetensors"]


def test_rows_and_activations_of_another_size_are_refused():
    dictionary = dictionary_with()
    for given in (np.zeros((3, 4)), torch.zeros(3, 4), np.zeros(4)):
        with pytest.raises(BadInput, match="reads rows of 5 dimensions; 4 were given"):
            dictionary.encode(given)
    for given in (np.zeros((3, 4)), torch.zeros(3, 4)):
        with pytest.raises(BadInput, match="has 12 features; 4 activations were given"):
            dictionary.decode(given)
    for given in (torch.tensor(1.0), torch.zeros(())):
        with pytest.raises(BadInput, match="5 dimensions; 0 were given"):
            dictionary.encode(given)
    for given in (np.nan, 1e300):
        with pytest.raises(BadInput, match="not finite numbers, the first is row 0"):
            dictionary.encode(np.full((2, D_E), given))
    with pytest.raises(BadInput, match="different lengths"):
        dictionary.encode([[1.0], [1.0, 2.0]])
    active = np.ones((3, WIDTH))
    assert np.array_equal(dictionary.decode(active[::-1]), dictionary.decode(active))
    with pytest.raises(BadInput, match="no device 'abacus'"):
        dictionary.to("abacus")


@pytest.mark.parametrize("given", [-1, WIDTH, 1.0, True, "3", None])
def test_a_feature_that_there_is_not_is_refused(given):
    with pytest.raises(BadInput, match="The dictionary has features 0 to 11; "):
        dictionary_with().check_feature(given)


def test_a_feature_may_be_a_numpy_number():
    assert dictionary_with().check_feature(np.int64(3)) == 3


def test_it_belongs_to_one_model(tiny, tmp_path):
    own = dictionary_with(card=Card("topk", model=tiny.fingerprint))
    assert own.bound(tiny).model is tiny
    assert own.model is None
    assert dictionary_with(card=Card("topk")).bound(tiny).model is tiny
    other = dictionary_with(card=Card("topk", model="0123456789abcdef", model_name="gpt2"))
    with pytest.raises(BadInput, match=rf"model 0123456789abcdef \(gpt2\); this model is {tiny.fingerprint}"):
        other.bound(tiny)
    own.save(tmp_path)
    assert heedful.features.load(tmp_path, model=tiny).model is tiny


def test_its_size_and_its_short_form():
    dictionary = dictionary_with()
    assert (dictionary.width, dictionary.d_e) == (WIDTH, D_E)
    assert len(repr(dictionary)) <= 300
    assert dictionary.to("cpu").fingerprint == dictionary.fingerprint


def test_what_is_not_a_number_does_not_pass_for_a_silent_feature():
    own = random_dictionary(6, 4)
    x = torch.ones(3, 4)
    x[1, 2] = torch.nan
    active = own.encode(x)
    assert active[1].isnan().all()
    assert not active[[0, 2]].isnan().any()
