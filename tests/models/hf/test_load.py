import json
import sys

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import heedful
from heedful.errors import BadCheckpoint, BadInput, Unsupported
from heedful.models.hf.decoder import HfDecoder
from heedful.models.hf.load import load_pretrained, wrap_pretrained
from tests.families import network_of, word_pieces


def test_a_network_is_wrapped_by_the_shape_of_its_task():
    network, tokenizer = network_of("gpt2")
    assert isinstance(wrap_pretrained(network.eval(), tokenizer), HfDecoder)
    with pytest.raises(BadInput, match="tokenizer"):
        wrap_pretrained(network, None)
    with pytest.raises(Unsupported):
        wrap_pretrained(network.transformer.eval(), tokenizer)


def test_a_precision_that_does_not_exist_is_refused():
    with pytest.raises(BadInput, match="float13"):
        load_pretrained("anything", "cpu", "float13")


@pytest.fixture
def folder(tmp_path):
    """A classifier that was saved by transformers."""
    network, tokenizer = network_of("bert")
    network.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("kind", ["bert", "evil"])
def test_code_in_a_folder_is_never_run_and_nothing_is_asked(folder, tmp_path, monkeypatch, heedful_command, file, kind):
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    classes = {"AutoConfig": "evil.Config", "AutoModelForSequenceClassification": "evil.Model"}
    auto_map = classes if file == "config.json" else {"AutoTokenizer": ["evil.Tokenizer", None]}
    edit(folder / "config.json", model_type=kind)
    edit(folder / file, auto_map=auto_map)
    code, _, err = heedful_command("explain", "good film", "--model", folder, stdin=b"y\ny\n")
    assert code == 2
    assert "brings Python code of its own" in err
    assert err.count("\n") == 1
    assert sys.stdin.read() == "y\ny\n"
    assert not (tmp_path / "ran").exists()


def test_a_configuration_with_fewer_layers_than_the_weights_is_refused(folder):
    edit(folder / "config.json", num_hidden_layers=2)
    with pytest.raises(BadCheckpoint, match=r"has weights that .* would ignore \(bert.encoder.layer.2"):
        heedful.load(str(folder))


@pytest.mark.parametrize(
    ("key", "used"),
    [
        ("bert.encoder.layer.0.attention.self.query.extra", True),
        ("bert.encoder.layer.0.crossattention.self.query.weight", True),
        ("bert.embeddings.projection.weight", True),
        ("bert.embeddings.position_ids", False),
        ("cls.predictions.bias", False),
        ("bert.second_pooler.dense.weight", False),
        ("lm_head.weight", False),
    ],
)
def test_weights_without_a_place_are_refused_unless_they_are_of_another_head(folder, key, used):
    path = folder / "model.safetensors"
    whole = heedful.load(str(folder))(["good film"])
    save_file({**load_file(path), key: torch.ones(3)}, path, {"format": "pt"})
    if used:
        with pytest.raises(BadCheckpoint, match=f"would ignore .{key}"):
            heedful.load(str(folder))
    else:
        assert np.allclose(heedful.load(str(folder))(["good film"]), whole, rtol=0, atol=1e-6)


def test_missing_weights_are_refused_and_tied_ones_are_not_missing(folder, tmp_path):
    path = folder / "model.safetensors"
    weights = load_file(path)
    del weights["classifier.bias"]
    save_file(weights, path, {"format": "pt"})
    with pytest.raises(BadCheckpoint, match=r"lacks weights of .* \(classifier.bias\)"):
        heedful.load(str(folder))
    network, tokenizer = network_of("gpt2")
    network.save_pretrained(tmp_path / "tied")
    tokenizer.save_pretrained(tmp_path / "tied")
    assert "lm_head.weight" not in load_file(tmp_path / "tied" / "model.safetensors")
    heedful.load(str(tmp_path / "tied"))


def test_a_length_that_is_no_number_is_refused_in_a_sentence(folder):
    edit(folder / "tokenizer_config.json", model_max_length="long")
    with pytest.raises(BadCheckpoint, match="is not a complete Hugging Face model"):
        heedful.load(str(folder))


def test_a_model_for_another_task_is_refused_for_what_it_is():
    """A model with two heads does classify: the refusal must not say that it does not."""
    network = hf.BertForPreTraining(network_of("bert")[0].config)
    with pytest.raises(Unsupported, match="^heedful does not support BertForPreTraining: it explains"):
        wrap_pretrained(network.eval(), word_pieces())


@pytest.mark.parametrize("family", ["marian", "gpt2"])
def test_names_of_classes_are_never_ignored(family):
    network, reader = network_of(family)
    with pytest.raises(BadInput, match="names its classes itself; leave `classes` out"):
        heedful.wrap(network, reader, classes=["a", "b"])
