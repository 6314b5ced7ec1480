from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.document import SPECIAL
from tests.alignments import AWKWARD, aligned, check, document, encoded, known, replayed, without_spaces
from tests.tokenizers import FAST, TEXTS, Replayed, every_text, every_tokenizer, made, written_words


def ends(words):
    """How many characters, spaces apart, lie before the end of each word."""
    return np.cumsum([len(without_spaces(word)) for word in words]).tolist()


@every_tokenizer
@every_text
def test_every_character_belongs_to_one_word_and_words_end_only_where_written_words_end(name, text):
    code, alignment = known(name, text)
    check(code, alignment)
    read = document(code, alignment)
    assert without_spaces("".join(read.word_texts)) == without_spaces(text)
    assert all(read.word_texts)
    assert all(end <= start for (_, end), (start, _) in pairwise(read.word_spans))
    assert set(ends(read.word_texts)) <= set(ends(written_words(text)))


@pytest.mark.parametrize("name", [*FAST, "ByT5", "slow"])
@pytest.mark.parametrize("second", [TEXTS["accents"], "", " "])
@pytest.mark.parametrize("first", [TEXTS["unknown"], ""])
def test_words_of_a_pair_are_the_words_of_both_counted_on(name, first, second):
    code = encoded(made(name), first, second)
    alignment = aligned(code)
    check(code, alignment)
    alone = [document(*known(name, text)) for text in (first, second)]
    # A text of white space alone has an empty word, unless nobody says that its tokens are not the other's.
    texts = [word for document in alone for word in document.word_texts if word]
    assert [word for word in document(code, alignment).word_texts if word] == texts
    real = alignment.words != SPECIAL
    starts = np.array([start for start, _ in alignment.spans])
    held = np.array([start < end for start, end in alignment.spans])
    assert np.array_equal(alignment.segments[real & held] == 1, starts[real & held] > len(first))
    assert alignment.segments[0] == 0
    for t in np.flatnonzero(~real)[1:]:
        assert alignment.segments[t] == alignment.segments[t - 1]


def test_a_token_of_white_space_belongs_to_the_next_word():
    alignment, read = replayed("a\n\nb  c", "a", "\n", "\n", "b", " ", " c")
    assert read.word_texts == ("a", "b", "c")
    assert alignment.words.tolist() == [0, 1, 1, 1, 2, 2]
    assert alignment.spans == ((0, 1), (3, 3), (3, 3), (3, 4), (6, 6), (6, 7))
    assert alignment.pieces == ("a", "\n", "\n", "b", " ", "c")
    alignment, _ = replayed("a b", "a", " ", "<mask>", "b", special=["<mask>"])
    assert alignment.words.tolist() == [0, 1, SPECIAL, 1]


def test_white_space_after_the_last_word_belongs_to_it_and_alone_is_an_empty_word():
    alignment, read = replayed("a \t", "a", " ", "\t")
    assert read.word_texts == ("a",)
    assert alignment.spans == ((0, 1), (1, 1), (1, 1))
    assert replayed("  ", " ", " ")[1].word_texts == ("",)
    code = encoded(made("ByT5"), "a ", " b")
    assert aligned(code).words.tolist() == [0, 0, SPECIAL, 1, 1, SPECIAL]


def test_a_space_put_before_the_text_belongs_to_its_first_word():
    code = encoded(made("Llama"), "😀 x")
    alignment = aligned(code)
    assert made("Llama").convert_ids_to_tokens(code.ids)[1] == "▁"
    assert (alignment.pieces[1], alignment.spans[1], alignment.words[1]) == (" ", (0, 0), 0)
    assert document(code, alignment).word_texts == ("😀", "x")


def test_a_token_over_two_words_makes_them_one():
    _, read = replayed('He said "no." Now', "He", " said", ' "', "no", '."', " Now")
    assert read.word_texts == ("He", "said", '"', "no", '."', "Now")
    _, read = replayed("a new york day", "a", " new york", " day")
    assert read.word_texts == ("a", "new york", "day")
    _, read = replayed("dogs' tails", "dog", "s'", " tails")
    assert read.word_texts == ("dogs'", "tails")


def test_tokens_that_cannot_be_found_share_the_text_and_are_words_of_their_own():
    alignment, read = replayed("abc def", "xx", "yy", "zz", offsets=[(0, 2), (2, 4), (4, 7)])
    assert alignment.how == "pieces"
    assert read.word_texts == ("ab", "c d", "ef")
    alignment, read = replayed("abc def", "xx", " ", "yy")
    assert read.word_texts == ("abc", "def")
    assert alignment.pieces == ("xx", " ", "yy")
    alignment, _ = replayed("a", "xx", "yy", "zz")
    assert alignment.words.tolist() == [0, 1, 2]
    alignment, _ = replayed("", "xx", "yy")
    assert alignment.words.tolist() == [0, 1]


def test_no_tokens_and_no_text_give_an_empty_alignment():
    alignment, read = replayed("")
    assert read.word_texts == ()
    assert alignment.how == "characters"
    code = encoded(made("WordPiece"), "")
    assert aligned(code).words.tolist() == [SPECIAL] * len(code.ids)


@given(
    AWKWARD, AWKWARD, st.lists(AWKWARD.filter(bool), max_size=8), st.lists(st.integers(-1, 14), min_size=40), st.data()
)
@settings(max_examples=50)
def test_any_tokens_of_any_texts_get_a_valid_alignment(first, second, names, numbers, data):
    n = len(names)
    special = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    sequence = data.draw(st.none() | st.lists(st.sampled_from([0, 1]), min_size=n, max_size=n).map(sorted))
    claims = [tuple(sorted(numbers[2 * t : 2 * t + 2])) for t in range(n)]
    for texts in ((first,), (first, second)):
        code = SimpleNamespace(
            tokenizer=Replayed(*names, unknown=0),
            ids=list(range(n)),
            texts=texts,
            special=special,
            offsets=claims,
            sequence=sequence if len(texts) == 2 else None,
        )
        check(code, aligned(code))
        check(code, aligned(code, offsets=None))
