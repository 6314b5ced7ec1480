import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful
from heedful.errors import BadCheckpoint
from heedful.models.transformer import Transformer
from heedful.models.transformer_file import load_transformer, save_transformer
from heedful.run_folder import write_tensors
from tests.families import build


@pytest.fixture
def saved(tmp_path):
    model = build("transformer")
    path = tmp_path / "model.safetensors"
    save_transformer(model, path)
    return model, path


def test_a_model_comes_back_as_it_was_to_half_precision(saved):
    model, path = saved
    for again in (load_transformer(path), heedful.load(str(path.parent))):
        assert isinstance(again, Transformer)
        assert again.classes == model.classes
        assert again.network.config == model.network.config
        for name, weight in again.network.state_dict().items():
            assert torch.equal(weight, model.network.state_dict()[name].half().float())
        text = ["the film was good"]
        assert np.allclose(again(text), model(text), rtol=0.02, atol=0.02)
    assert "layers" in repr(again)


def test_a_damaged_file_is_refused_in_a_sentence(saved, tmp_path):
    _, path = saved
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadCheckpoint, match="model.safetensors is not a valid heedful model"):
        load_transformer(path)
    path.write_bytes(whole)
    tensors = load_file(path)
    tensors["W_e"] = tensors["W_e"] * float("nan")
    with_metadata = dict(heedful_metadata(path))
    save_file(tensors, path, with_metadata)
    with pytest.raises(BadCheckpoint, match=r"the checksum does not match\.$"):
        heedful.load(str(path))
    del with_metadata["checksum"]
    write_tensors(path, tensors, with_metadata)
    with pytest.raises(BadCheckpoint, match="not finite"):
        heedful.load(str(path))
    del tensors["W_e"]
    write_tensors(path, tensors, with_metadata)
    with pytest.raises(BadCheckpoint, match="not a valid heedful model"):
        heedful.load(str(path))


@pytest.mark.parametrize("change", [{"depth": 1}, {"depth": 10**12}, {"T_max": 10**12}, {"d_e": 10**6}])
def test_settings_that_do_not_fit_the_weights_are_refused(saved, change):
    _, path = saved
    metadata = dict(heedful_metadata(path))
    del metadata["checksum"]
    metadata["config"] = json.dumps({**json.loads(metadata["config"]), **change})
    write_tensors(path, load_file(path), metadata)
    with pytest.raises(BadCheckpoint, match="not a valid heedful model"):
        heedful.load(str(path))


def heedful_metadata(path):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.metadata()
