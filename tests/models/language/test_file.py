import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadCheckpoint
from heedful.models.language.bpe import learn_byte_pairs
from heedful.models.language.file import load_gpt2, save_gpt2, vocabulary_as_text, vocabulary_of_text
from heedful.run_folder import read_tensors, write_tensors
from tests.families import CORPUS, TEXTS, build
from tests.models.language.test_writer import writer


def test_a_saved_model_is_loaded_with_the_same_logits(tmp_path):
    model = writer()
    with torch.no_grad():
        for weight in model.network.parameters():
            weight.copy_(weight.half())
    save_gpt2(model, tmp_path / "model.safetensors")
    for again in (load_gpt2(tmp_path / "model.safetensors"), heedful.load(str(tmp_path))):
        assert again.vocabulary == model.vocabulary
        assert again.starts
        assert np.abs(again(TEXTS) - model(TEXTS)).max() < 1e-5


def test_the_vocabulary_of_a_hugging_face_tokenizer_can_be_written():
    vocabulary = build("own-gpt2").vocabulary
    assert vocabulary_of_text(vocabulary_as_text(vocabulary)) == vocabulary


def test_a_damaged_file_is_refused_in_a_sentence(tmp_path):
    save_gpt2(writer(), tmp_path / "model.safetensors")
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    content[-7] ^= 1
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(BadCheckpoint, match="not a valid heedful model"):
        load_gpt2(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tokens": "a\nb"}, "not those of a vocabulary|vocabulary"),
        ({"merges": "1 2 3"}, "vocabulary|unpack"),
        ({"special": "[]"}, "not those of a vocabulary"),
        ({"config": "{}"}, "word vectors"),
    ],
)
def test_metadata_that_do_not_fit_are_refused(tmp_path, change, reason):
    path = tmp_path / "model.safetensors"
    save_gpt2(writer(), path)
    tensors, metadata = read_tensors(path)
    del metadata["checksum"]
    write_tensors(path, tensors, {**metadata, **change})
    with pytest.raises(BadCheckpoint, match="not a valid heedful model"):
        load_gpt2(path)
    assert reason


def test_a_vocabulary_survives_as_text():
    vocabulary = learn_byte_pairs(CORPUS, 300)
    assert vocabulary_of_text(vocabulary_as_text(vocabulary)) == vocabulary
