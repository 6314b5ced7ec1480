import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.models.vocabulary import Vocabulary, build_vocabulary, split_plain, split_words
from tests.straightforward import basic_english

AWKWARD = st.lists(
    st.sampled_from(
        ["<br />", '"', "<", "br", " ", "/", ">", "'", "a", "Bad", "İ", ";", ":", ".", "ΑΣ", "\x1c", " ", "é", "😀"]
    )
)


@pytest.mark.slow
@given(st.one_of(st.text(), AWKWARD.map("".join)))
def test_words_are_those_of_the_rules_applied_one_after_another(text):
    assert [word.text for word in split_words(text)] == split_plain(text) == basic_english(text)


@given(st.one_of(st.text(), AWKWARD.map("".join)))
def test_every_span_holds_its_word_and_spans_do_not_overlap(text):
    end = 0
    for word in split_words(text):
        assert end <= word.start < word.end <= len(text)
        # Case folding is looser than lower case: it forgets which sigma ends a word.
        assert word.text.casefold() == text[word.start : word.end].replace('"', "").casefold() or "İ" in text
        end = word.end


def test_marks_are_words_and_quotes_and_line_breaks_are_dropped():
    text = 'It\'s "great"; really: good.<br /><br />(Yes!) a"b'
    assert split_plain(text) == ["it", "'", "s", "great", "really", "good", ".", "(", "yes", "!", ")", "ab"]
    great = split_words(text)[3]
    assert text[great.start : great.end] == "great"


def test_vocabulary_orders_by_frequency_and_gives_unknown_words_one_number():
    vocabulary = build_vocabulary(["b a a", "c b a", "rare"], min_count=2)
    assert vocabulary.words == ("[cls]", "[unk]", "a", "b")
    assert vocabulary.ids(["b", "rare", "zzz"]).tolist() == [3, 1, 1]


def test_a_text_cannot_spell_a_special_token():
    assert Vocabulary(("[cls]", "[unk]", "x")).ids(["[cls]", "[unk]", "x"]).tolist() == [1, 1, 2]


@pytest.mark.slow
def test_imdb_training_half_has_the_published_number_of_words(data_folder):
    from pyarrow import parquet

    texts = parquet.read_table(data_folder / "imdb" / "train.parquet", columns=["text"])["text"].to_pylist()
    assert len(build_vocabulary(texts)) == 100_682 + 2


@pytest.mark.parametrize("text", ["", "   ", "<br />", '";:'])
def test_a_text_without_words_gives_none(text):
    assert split_words(text) == []
