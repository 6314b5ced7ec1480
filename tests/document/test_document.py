import numpy as np
import pytest

import heedful
from heedful.document.regions import regions
from heedful.errors import UnknownName
from heedful.models.hf.text import read_text
from tests.conftest import tiny_model
from tests.families import byte_pairs

TEXT = "Good film, good STORY. Not dull!"


@pytest.fixture
def document():
    return tiny_model().encode(TEXT)


def test_units_are_read_from_the_text(document):
    assert document.units("token") == ("good", "film", ",", "good", "story", ".", "not", "dull", "!")
    assert document.units("word") == ("Good", "film", ",", "good", "STORY", ".", "Not", "dull", "!")
    assert document.units("type") == ("good", "film", ",", "story", ".", "not", "dull", "!")
    assert document.units("sentence") == ("Good film, good STORY.", "Not dull!")


def test_special_tokens_belong_to_no_unit(document):
    for unit in ("token", "word", "type", "sentence"):
        assert document.unit_of(unit)[0] == -1
        assert document.unit_of(unit)[1:].min() == 0


def test_occurrences_of_a_word_are_one_type(document):
    types = document.unit_of("type")
    assert types[1] == types[4] == 0
    assert document.n_units("type") == 8


def test_coarsening_holds_every_fine_unit_once(document):
    assert document.coarsening("word", "sentence").tolist() == [0] * 6 + [1] * 3
    assert np.array_equal(document.coarsening("token", "type"), document.unit_of("type")[1:])


def test_coarsening_cannot_go_back(document):
    with pytest.raises(UnknownName, match="from unit 'type' to unit 'word'"):
        document.coarsening("type", "word")


def test_a_run_of_marks_closes_one_sentence():
    assert tiny_model().encode("good ! ? bad").units("sentence") == ("good ! ?", "bad")


def test_a_segment_ends_with_a_mark():
    document = heedful.load("paper").encode("a fine film, but (alas) too long! really")
    assert document.units("segment") == ("a fine film,", "but (alas)", "too long!", "really")
    assert document.coarsening("segment", "sentence").tolist() == [0, 0, 0, 1]
    explanation = heedful.explain(heedful.load("paper"), document.text, "shapley-exact", unit="segment")
    assert len(explanation.scores) == 4


def test_a_region_holds_neighbours_of_one_colour():
    rgb = np.zeros((64, 64, 3), dtype=np.uint8)
    rgb[:32, :32], rgb[:32, 32:], rgb[32:, :32], rgb[32:, 32:] = (255, 0, 0), (0, 255, 0), (0, 0, 255), (250, 250, 0)
    region_of = regions(rgb, (4, 4)).reshape(4, 4)
    assert region_of.tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    noise = np.random.default_rng(0).integers(0, 255, (112, 112, 3), dtype=np.uint8)
    region_of = regions(noise, (14, 14))
    assert len(np.unique(region_of)) == 14
    for number in range(14):
        left = {divmod(int(patch), 14) for patch in np.flatnonzero(region_of == number)}
        near = {left.pop()}
        while near:
            row, column = near.pop()
            near |= {(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)} & left
            left -= near
        assert not left


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("pi is 3.14. it is odd.", ("pi is 3.14.", "it is odd.")),
        ("the U.S.A. is big. so is 1,000,000!", ("the U.S.A. is big.", "so is 1,000,000!")),
        ("we like the U.S.A. They do not.", ("we like the U.S.A.", "They do not.")),
        ("e.g. this, i.e. that. fine", ("e.g. this, i.e. that.", "fine")),
        ("a bad film.The end", ("a bad film.", "The end")),
        ("it was plan b. it failed.", ("it was plan b.", "it failed.")),
    ],
)
def test_a_mark_inside_of_a_number_or_abbreviation_closes_no_sentence(text, sentences):
    function = heedful.wrap(lambda texts: [[float(len(text))] for text in texts])
    for model in (heedful.load("paper"), function):
        assert model.encode(text).units("sentence") == sentences
    commas = function.encode("1,000 films, at 3:45").units("segment")
    assert commas == ("1,000 films,", "at 3:45")


def test_a_type_of_several_tokens_for_one_character_is_that_character():
    document = read_text(byte_pairs(), "fun 🎉 film 🎉🎉 ☃", None)
    assert len(document.ids) > 12
    assert document.units("type") == ("fun", "🎉", "film", "☃")
    assert document.word_keys == ("fun", "🎉", "film", "🎉", "🎉", "☃")
