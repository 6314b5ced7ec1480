import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.alignments import AWKWARD, known, replayed, without_spaces
from tests.tokenizers import every_text, made


def bare(text):
    plain = unicodedata.normalize("NFKD", text).casefold()
    return [c for c in plain if not c.isspace() and not unicodedata.combining(c) and c != "\u200d"]


@pytest.mark.parametrize("name", ["bytes", "bytes with prefix and untrimmed offsets", "bytes of emoji merged", "ByT5"])
@every_text
def test_spans_of_byte_tokens_are_the_characters_of_their_bytes(name, text):
    code, alignment = known(name, text)
    owner = [place for place, character in enumerate(text) for _ in character.encode()]
    names = made(name).convert_ids_to_tokens(code.ids)
    # One sign stands for one byte; a space put before the text stands for none of its bytes.
    sizes = [0 if is_special else len(token) for token, is_special in zip(names, code.special, strict=True)]
    ahead = sum(sizes) - len(owner)
    for (start, end), stop, size in zip(alignment.spans, np.cumsum(sizes) - ahead, sizes, strict=True):
        places = owner[max(stop - size, 0) : max(stop, 0)]
        claimed = [place for place in places if not text[place].isspace()]
        assert (start, end) == (claimed[0], claimed[-1] + 1) if claimed else start == end


def test_what_no_token_spells_belongs_to_the_tokens_between():
    alignment, read = replayed("say ``yes'' now", "say", '"', "yes", '"', "now")
    assert [read.text[start:end] for start, end in alignment.spans] == ["say", "``", "yes", "''", "now"]
    alignment, read = replayed("Xaz a Xaz b", "?", " a", "?", " b")
    assert read.word_texts == ("Xaz", "a", "Xaz", "b")


def test_a_character_without_a_token_counts_only_within_a_word():
    _, read = replayed("a ☃ b☃c", "a", " b", "c")
    assert read.word_texts == ("a", "b", "c")
    _, read = replayed("soft\u00adware", "soft", "ware")
    assert read.word_texts == ("soft\u00adware",)


@given(AWKWARD.filter(lambda text: "?" not in text and "\ufffd" not in text), st.lists(st.integers(1, 3), min_size=12))
def test_any_cut_of_any_text_is_found_again(text, sizes):
    stops = [0, *np.minimum(np.cumsum(sizes), len(text)).tolist()]
    names = [text[a:b] for a, b in pairwise(stops) if a < b]
    alignment, read = replayed(text, *names)
    assert without_spaces("".join(read.word_texts)) == without_spaces(text)
    for (start, end), name in zip(alignment.spans, names, strict=True):
        assert bare(text[start:end]) == bare(name)
