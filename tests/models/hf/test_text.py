import numpy as np
import pytest

from heedful.document import SPECIAL, Pair
from heedful.errors import BadInput
from heedful.models.hf.text import read_text, token_of
from tests.families import byte_pairs, word_pieces


def test_a_text_is_read_as_the_tokenizer_reads_it():
    document = read_text(word_pieces(), "the film was good .", None)
    assert document.ids.tolist() == word_pieces()("the film was good .")["input_ids"]
    assert np.flatnonzero(document.words == SPECIAL).tolist() == [0, 6]


def test_what_is_cut_or_unknown_is_noted():
    long = read_text(word_pieces(), "good film " * 10, 6)
    assert len(long.ids) == 6
    assert [note.kind for note in long.notes] == ["truncated"]
    assert [note.kind for note in read_text(word_pieces(), "good ☃", None).notes] == ["unknown-words"]


def test_a_pair_needs_a_separator_and_a_replacement_one_token():
    with pytest.raises(BadInput, match="does not separate the texts of a pair"):
        read_text(byte_pairs(), Pair("good", "bad"), None)
    with pytest.raises(BadInput):
        token_of(word_pieces(), "unbelievable storytelling")


def test_half_a_character_that_is_replaced_is_noted():
    document = read_text(word_pieces(), "good \ud83d film \udc4d", None)
    assert document.text == "good \ufffd film \ufffd"
    assert "changed-text" in [note.kind for note in document.notes]
    assert document.notes[0] == "Lone surrogates (halves of characters) in the text were replaced by \ufffd: 2."
    assert read_text(word_pieces(), "good film", None).notes == ()
