import json

import pytest

from heedful.models.checkpoints import check_sealed, read_config, read_names


def test_names_and_settings_must_be_whole():
    metadata = {"config": "{}", "classes": json.dumps(["a", "b"]), "words": "[cls]\n[unk]\nfilm\n[cls]"}
    vocabulary, classes = read_names(metadata, 2)
    assert classes == ("a", "b")
    assert len(vocabulary) == 4
    assert read_config(metadata) == {}
    for wrong in ({"classes": '["a"]'}, {"classes": '["a", " "]'}, {"words": "film"}, {"words": "[cls]\n[unk]\na\na"}):
        with pytest.raises(ValueError, match="its (classes|words)|it has"):
            read_names({**metadata, **wrong}, 2)


def test_only_the_first_format_may_lack_a_checksum(tmp_path):
    check_sealed(tmp_path / "a.safetensors", {"format": "heedful/single-layer/1"})
    with pytest.raises(ValueError, match="missing"):
        check_sealed(tmp_path / "a.safetensors", {"format": "heedful/single-layer/2"})


def test_the_bundled_model_has_a_checksum():
    from importlib.resources import files

    from heedful.run_folder import read_tensors

    _, metadata = read_tensors(files("heedful.models") / "checkpoints" / "paper.safetensors")
    assert "checksum" in metadata
