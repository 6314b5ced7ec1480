"""Errors: their kinds and their sentences."""

import pickle

import pytest

from heedful import errors
from heedful.errors import BadInput, HeedfulError, UnknownName, describe_error, unknown_name


def test_every_error_is_one_that_a_user_can_catch():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    assert len(kinds) > 5
    assert all(issubclass(kind, HeedfulError) for kind in kinds)
    assert issubclass(BadInput, ValueError)


def test_an_error_stores_its_sentence_and_its_method_separately():
    error = BadInput("needs at least 2 words.", "lime")
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert (str(same), same.sentence, same.subject) == (
            "lime needs at least 2 words.",
            "needs at least 2 words.",
            "lime",
        )
    assert str(BadInput("No text was given.")) == BadInput("No text was given.").sentence


def test_an_unknown_name_comes_with_the_most_similar_one():
    error = unknown_name("method", "lyme", ["shapley", "lime"])
    assert isinstance(error, UnknownName)
    assert str(error) == "There is no method 'lyme'; did you mean 'lime'? Known: lime, shapley."
    assert str(unknown_name("class", 7, ["a"])) == "There is no class '7'. Known: a."


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("too large.\nmore"), "ValueError: too large"),
        (KeyError(), "KeyError: no reason given"),
        (RuntimeError("x" * 500), f"RuntimeError: {'x' * 200}…"),
        (OSError("bad \udcff byte"), "OSError: bad \\udcff byte"),
    ],
)
def test_an_error_of_another_package_is_one_printable_line(error, line):
    assert describe_error(error) == line
    describe_error(error).encode("utf-8")


def test_a_message_can_always_be_printed():
    error = BadInput("There is no '\ud800'.", "lime")
    assert str(error).encode() == b"lime There is no '\\ud800'."
    assert error.sentence == "There is no '\\ud800'."


def test_another_case_is_the_most_similar_name():
    assert "did you mean 'positive'?" in str(unknown_name("class", "POSITIVE", ["positive", "negative"]))


def test_where_there_is_no_name_to_choose_none_is_listed():
    assert str(unknown_name("setting", "x", ())) == "There is no setting 'x'. There are none."
