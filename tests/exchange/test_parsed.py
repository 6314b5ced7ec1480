"""What readers give, and the error for another text."""

import pytest

from heedful.errors import BadInput
from heedful.exchange.parsed import Parsed, another_text_error


def test_an_explanation_says_nothing_that_its_package_does_not():
    parsed = Parsed("captum", [1.0])
    assert (parsed.names, parsed.places, parsed.signed, parsed.output) == (None, None, None, None)
    assert (parsed.unit, dict(parsed.facts), parsed.notes) == ("word", {}, ())


@pytest.mark.parametrize(
    ("theirs", "ours", "first", "second"),
    [
        ("a fine film", "a dull film", "'a fine film'", "'a dull film'"),
        ("a fine film", "a fine film too", "' fine film'", "' fine film too'"),
        ("", "a film", "''", "'a film'"),
        (f"{'x' * 50}a{'y' * 50}", f"{'x' * 50}b{'y' * 50}", f"'{'x' * 10}a{'y' * 19}'", f"'{'x' * 10}b{'y' * 19}'"),
    ],
)
def test_the_error_shows_where_two_texts_begin_to_differ(theirs, ours, first, second):
    error = another_text_error("lime", theirs, ours)
    assert isinstance(error, BadInput)
    assert f"it has {first} where this one has {second};" in str(error)
