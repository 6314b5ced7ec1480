import numpy as np
import pytest

from heedful.errors import UnknownName
from tests.conftest import tiny_model

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
