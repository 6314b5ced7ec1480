from collections import Counter

import pytest

import heedful
from heedful.errors import BadInput, UnknownName
from heedful.perturb.drawn_words import drawn_words


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("a bright story\n\nthe plot , the plot\n", encoding="utf-8")
    return str(path)


def test_a_word_is_drawn_from_a_random_text(lines):
    shares = {word: count / 20_000 for word, count in Counter(drawn_words(lines, 20_000, 0)).items()}
    expected = {"a": 1 / 6, "bright": 1 / 6, "story": 1 / 6, "the": 1 / 5, "plot": 1 / 5, ",": 1 / 10}
    assert shares == pytest.approx(expected, abs=0.015)
    assert drawn_words(lines, 10, 1) == drawn_words(lines, 10, 1) != drawn_words(lines, 10, 2)


def test_data_that_are_not_there_or_no_texts_are_refused(tmp_path):
    with pytest.raises(UnknownName, match="data set or file 'nowhere'"):
        drawn_words("nowhere", 3, 0)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n", encoding="utf-8")
    with pytest.raises(BadInput, match="contains no texts"):
        drawn_words(str(empty), 3, 0)


def test_of_a_table_only_the_texts_are_drawn(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("comment,label\na film,toxic\nthe plot,fine\n", encoding="utf-8")
    assert {*drawn_words(str(table), 200, 0)} == {"a", "film", "the", "plot"}


def test_a_data_set_of_the_catalogue_gives_words(data_folder):
    assert all(isinstance(word, str) and word for word in drawn_words("imdb", 30, 0))
    assert "imdb" in heedful.datasets()
