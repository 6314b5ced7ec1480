import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from heedful.document import SPECIAL
from heedful.errors import BadInput
from heedful.models.encoder.word_pieces import SPECIAL_PIECES, WordPieces, parts_kept, without_breaks

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,'’“”…!?-ß£"
WORDS = ("film", "the", "don", "does", "good", "not", "dull", "un", "##able", "##ing", "##s", "believ", "##n")
PIECES = WordPieces((*SPECIAL_PIECES, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS))
TEXTS = [
    "The film doesn't work: it's un-believable & BELIEVABLE!",
    "don’t — “quoted” naïve Ünï\u0301 \x0b\x1c a\u200bb £5 3€ İstanbul ΣΑΣ \ue000 \ufffd x\x85y a\xa0b \u2028 … 😀 ﬁ ½",
    "a" * 101 + " " + "b" * 100 + "\t\n\rc",
    "[MASK] [CLS] ##s",
    "",
    " \n ",
]


@pytest.fixture(scope="module")
def theirs():
    tokenizer = Tokenizer(models.WordPiece({p: n for n, p in enumerate(PIECES.pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(handle_chinese_chars=False, strip_accents=True, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def check_equal(theirs, text):
    encoded, ours = theirs.encode(without_breaks(text)), PIECES.split(text)
    assert [piece.id for piece in ours] == encoded.ids
    assert [(piece.start, piece.end) for piece in ours] == encoded.offsets


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_pieces_and_spans_are_those_of_the_tokenizers_library(theirs, text):
    check_equal(theirs, text)


@given(st.lists(st.sampled_from([*WORDS, *LETTERS, *" .'\n\té£ÉǅΣ—’☃😀\u0301\u200b", "<br />"]), max_size=30))
def test_so_are_those_of_random_texts(theirs, parts):
    check_equal(theirs, "".join(parts))


@pytest.mark.slow
def test_so_are_those_of_real_sentences(theirs, data_folder):
    from heedful.datasets.sst import Sst

    for example in Sst().examples("validation"):
        check_equal(theirs, example.text)


def test_a_word_keeps_its_apostrophe_and_a_line_break_is_white_space():
    document = PIECES.read("I don't<br /><br />like it's <BR>end.", 64)
    assert document.word_texts == ("I", "don't", "like", "it's", "end", ".")
    assert document.word_keys == ("i", "don't", "like", "it's", "end", ".")
    assert document.pieces[:5] == ("[CLS]", "i", "don", "'", "t")
    assert document.notes == ()


def test_words_that_share_a_piece_are_one_word():
    document = PIECES.read("3€ film", 64)
    assert document.word_texts == ("3€", "film")
    assert [note.kind for note in document.notes] == ["unknown-words"]
    assert "1 of 2 tokens are unknown to the model: 3€" in document.notes[0]


def test_of_a_long_text_the_beginning_and_the_end_are_read():
    text = " ".join("abcdefghijklmnopqrstuvwxyz")
    document = PIECES.read(text, 11)
    assert document.pieces == ("[CLS]", *"abc", "[CUT]", *"uvwxyz")
    assert len(document.ids) == 11
    assert np.flatnonzero(document.words == SPECIAL).tolist() == [0, 4]
    assert document.word_texts == tuple("abcuvwxyz")
    (note,) = document.notes
    assert note.kind == "truncated"
    assert "first 3 and the last 6 of 26 tokens" in note
    assert "17 between them were left out" in note
    assert PIECES.read(text[: 10 * 2 - 1], 11).notes == ()


def test_what_is_kept_fills_the_model():
    for n in range(40):
        head, tail = parts_kept(n, 16)
        assert head + tail == (n if n < 16 else 14)


def test_an_empty_text_is_its_first_token():
    assert PIECES.read("", 16).pieces == ("[CLS]",)
    with pytest.raises(BadInput, match="string"):
        PIECES.read(3, 16)
