import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import heedful
from heedful.errors import BadCheckpoint
from heedful.models.checkpoints import format_of
from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.encoder.file import FORMAT, load_encoder, save_encoder
from heedful.run_folder import write_tensors
from tests.families import build


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    save_encoder(build("encoder"), path)
    return path


def metadata_of(path):
    with safe_open(path, framework="pt") as file:
        return {name: text for name, text in file.metadata().items() if name != "checksum"}


def weights_of(path):
    """Copies: the file that they were read from is overwritten."""
    return {name: weight.clone() for name, weight in load_file(path).items()}


def test_a_model_comes_back_as_it_was_to_half_precision(saved):
    model = build("encoder")
    for again in (load_encoder(saved), heedful.load(str(saved.parent))):
        assert isinstance(again, EncoderClassifier)
        assert (again.classes, again.vocabulary) == (model.classes, model.vocabulary)
        for name, weight in again.network.state_dict().items():
            assert weight.dtype == torch.float32
            assert torch.equal(weight, model.network.state_dict()[name].half().float())
    assert np.allclose(again(["good film"]), model(["good film"]), rtol=0.05, atol=0.05)


def test_the_same_model_is_the_same_file(saved, tmp_path):
    save_encoder(build("encoder"), tmp_path / "again.safetensors")
    assert saved.read_bytes() == (tmp_path / "again.safetensors").read_bytes()


def test_a_damaged_file_is_refused_in_a_sentence(saved):
    metadata, tensors, whole = metadata_of(saved), weights_of(saved), saved.read_bytes()
    assert format_of(saved) == FORMAT
    saved.write_bytes(whole[: len(whole) // 2])
    assert format_of(saved) == ""
    with pytest.raises(BadCheckpoint, match="model.safetensors is not a valid heedful model"):
        load_encoder(saved)
    save_file(tensors, saved, metadata)
    with pytest.raises(BadCheckpoint, match="its checksum is missing"):
        heedful.load(str(saved))
    write_tensors(saved, {**tensors, "W_e": tensors["W_e"] * float("nan")}, metadata)
    with pytest.raises(BadCheckpoint, match="not finite"):
        heedful.load(str(saved))
    write_tensors(saved, {name: weight for name, weight in tensors.items() if name != "W_e"}, metadata)
    with pytest.raises(BadCheckpoint, match="not a valid heedful model"):
        heedful.load(str(saved))


@pytest.mark.parametrize("change", [{"depth": 1}, {"depth": 10**6}, {"T_max": 10**6}, {"d_e": 10**6}, {"n_classes": 2}])
def test_settings_that_do_not_fit_the_weights_are_refused(saved, change):
    metadata = metadata_of(saved)
    metadata["config"] = json.dumps({**json.loads(metadata["config"]), **change})
    write_tensors(saved, weights_of(saved), metadata)
    with pytest.raises(BadCheckpoint, match="not a valid heedful model"):
        heedful.load(str(saved))


@pytest.mark.parametrize("change", [{"classes": '["a", "a", "b"]'}, {"classes": "3"}, {"pieces": "a\nb"}])
def test_wrong_names_are_refused(saved, change):
    write_tensors(saved, weights_of(saved), metadata_of(saved) | change)
    with pytest.raises(BadCheckpoint, match="not a valid heedful model"):
        heedful.load(str(saved))
