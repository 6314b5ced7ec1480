import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import heedful
from heedful.errors import BadCheckpoint
from heedful.models.classic.classifier import Classic
from heedful.models.classic.file import load_classic, save_classic
from heedful.run_folder import write_tensors
from tests.models.classic.models import KINDS, classic


def metadata_of(path):
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    save_classic(classic(), path)
    return path


@pytest.mark.parametrize("pairs", [False, True], ids=["text", "pair"])
@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_a_model_comes_back_as_it_was_with_half_the_precision_of_its_word_vectors(encoder, attention, pairs, tmp_path):
    model, path = classic(encoder, attention, pairs), tmp_path / "model.safetensors"
    save_classic(model, path)
    for again in (load_classic(path), heedful.load(str(tmp_path))):
        assert isinstance(again, Classic)
        assert (again.classes, again.network.config) == (model.classes, model.network.config)
        assert again.vocabulary == model.vocabulary
        for name, weight in model.network.state_dict().items():
            stored = weight.half().float() if name == "W_e" else weight.float()
            assert torch.equal(again.network.state_dict()[name], stored)


def test_a_damaged_file_is_refused_in_a_sentence(saved):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadCheckpoint, match="model.safetensors is not a valid heedful model"):
        load_classic(saved)
    saved.write_bytes(whole)
    tensors, metadata = load_file(saved), metadata_of(saved)
    tensors["W_e"] = tensors["W_e"] * float("nan")
    save_file(tensors, saved, metadata)
    with pytest.raises(BadCheckpoint, match=r"the checksum does not match\.$"):
        heedful.load(str(saved))
    del metadata["checksum"]
    save_file(tensors, saved, metadata)
    with pytest.raises(BadCheckpoint, match="its checksum is missing"):
        heedful.load(str(saved))
    write_tensors(saved, tensors, metadata)
    with pytest.raises(BadCheckpoint, match="not finite"):
        heedful.load(str(saved))
    del tensors["W_c.weight"]
    write_tensors(saved, tensors, metadata)
    with pytest.raises(BadCheckpoint, match="the shapes of its weights"):
        heedful.load(str(saved))


@pytest.mark.parametrize(
    "change", [{"d_hidden": 10**6}, {"d_hidden": 10**12}, {"encoder": "gru"}, {"pairs": True}, {"n_classes": 4}]
)
def test_settings_that_do_not_fit_the_weights_are_refused(saved, change):
    metadata = metadata_of(saved)
    del metadata["checksum"]
    metadata["config"] = json.dumps({**json.loads(metadata["config"]), **change})
    write_tensors(saved, load_file(saved), metadata)
    with pytest.raises(BadCheckpoint, match="not a valid heedful model"):
        heedful.load(str(saved))
