from copy import deepcopy

import numpy as np
import pytest
import torch
import transformers as hf

from heedful.document import Pair
from heedful.errors import BadCheckpoint, BadInput, HeedfulError, Unsupported
from heedful.models.hf.fill import filler_of
from tests.families import SMALL, byte_pairs, hf_config, masked_model, network_of, word_pieces


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A masked language model that nobody trained, with a vocabulary of word pieces."""
    path = tmp_path_factory.mktemp("fill")
    for part in masked_model(room=24):
        part.save_pretrained(path)
    return str(path)


def by_hand(folder, text, place):
    """The model's probabilities of words at a token, from transformers itself."""
    network = hf.BertForMaskedLM.from_pretrained(folder).eval()
    tokenizer = word_pieces()
    with torch.no_grad():
        p = network(**tokenizer(text, return_tensors="pt")).logits[0, place].double().softmax(-1).numpy()
    vocabulary = tokenizer.get_vocab()
    words = {word: p[n] for word, n in vocabulary.items() if not word.startswith(("##", "[")) and word.strip()}
    return {word: share / sum(words.values()) for word, share in words.items()}


def test_probabilities_are_those_of_the_model_among_whole_words(folder):
    filler = filler_of(folder)
    found = filler.distributions("the [MASK] was good", 1)[0]
    expected = by_hand(folder, "the [MASK] was good", 2)
    for word, share in expected.items():
        assert found[word_pieces().get_vocab()[word]] == pytest.approx(share, rel=1e-4)
    assert found.sum() == pytest.approx(1)
    assert sum(found > 0) == len(expected)


def test_words_are_drawn_as_often_as_they_are_probable_and_the_same_with_the_same_seed(folder):
    filler = filler_of(folder)
    drawn = filler.draw("the [MASK] was [MASK]", 2, 2000, np.random.default_rng(0))
    for place, token in ((0, 2), (1, 4)):
        words = [row[place] for row in drawn]
        for word, share in by_hand(folder, "the [MASK] was [MASK]", token).items():
            assert words.count(word) / 2000 == pytest.approx(share, abs=4 * (share / 2000) ** 0.5 + 1e-3)
    assert drawn == filler.draw("the [MASK] was [MASK]", 2, 2000, np.random.default_rng(0))


def test_of_a_pair_both_texts_are_read_and_nothing_removed_draws_nothing(folder):
    filler = filler_of(folder)
    assert len(filler.draw(Pair("the [MASK]", "was good"), 1, 3, np.random.default_rng(0))) == 3
    assert filler.draw("the film", 0, 2, np.random.default_rng(0)) == [[], []]


def test_pieces_that_continue_a_word_are_never_drawn_from_a_vocabulary_that_marks_the_start_of_words(tmp_path):
    tokenizer = deepcopy(byte_pairs())
    tokenizer.add_special_tokens({"mask_token": "<mask>"})
    config = hf_config("roberta", vocab_size=len(tokenizer), max_position_embeddings=24, pad_token_id=0, **SMALL)
    hf.RobertaForMaskedLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    filler = filler_of(str(tmp_path))
    pieces = tokenizer.convert_ids_to_tokens(np.flatnonzero(filler.whole).tolist())
    assert pieces
    assert all(piece.startswith("Ġ") for piece in pieces)


def test_what_cannot_fill_is_refused_in_one_sentence(folder, tmp_path):
    with pytest.raises(Unsupported, match="reads 24"):
        filler_of(folder).draw("the film " * 20 + "[MASK]", 1, 1, np.random.default_rng(0))
    with pytest.raises(Unsupported, match="contains"):
        filler_of(folder).draw("the [MASK] was [MASK]", 1, 1, np.random.default_rng(0))
    network, tokenizer = network_of("bert")
    network.save_pretrained(tmp_path / "classifier")
    tokenizer.save_pretrained(tmp_path / "classifier")
    with pytest.raises(BadCheckpoint, match="lacks weights"):
        filler_of(str(tmp_path / "classifier"))
    hf_config("gpt2").save_pretrained(tmp_path / "decoder")
    with pytest.raises(Unsupported, match="is a gpt2, which does not fill in words; give a masked language model"):
        filler_of(str(tmp_path / "decoder"))
    with pytest.raises(HeedfulError, match="There is no folder"):
        filler_of("/nowhere/at/all")


def test_a_model_without_a_mask_token_is_refused(folder, tmp_path):
    hf.BertForMaskedLM.from_pretrained(folder).save_pretrained(tmp_path)
    byte_pairs().save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="has no mask token"):
        filler_of(str(tmp_path))
