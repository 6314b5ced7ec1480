from dataclasses import replace
from fractions import Fraction

import pytest

from heedful.experiments.mathematics.probability_lines import Line, claims_of_lines, counted, drawn

RIGHT = Line("P(a ∉ S)", "(n−s)/n", lambda kept: kept[0], lambda n, s: Fraction(n - s, n))
WRONG = replace(RIGHT, printed=lambda n, s: Fraction(n - s, n + 1))
ONCE = replace(RIGHT, printed=lambda n, s: Fraction(n - s, n) + (n == 4 and s == 2))


def numbers_of(line):
    return {
        "counted": counted([line], [3, 4], lambda n: n),
        "drawn": drawn([line], 6, 6, 5_000, seed=0),
    }


def test_a_right_line_agrees():
    claim = claims_of_lines([RIGHT], numbers_of(RIGHT))[0]
    assert claim.verdict == "agrees"
    assert claim.ours.startswith("7 of 7 counts")


@pytest.mark.parametrize("line", [WRONG, ONCE])
def test_a_wrong_line_differs_and_the_sentence_says_where(line):
    claim = claims_of_lines([line], numbers_of(line))[0]
    assert claim.verdict == "differs"
    assert "With n = " in claim.why


def test_draws_alone_find_a_wrong_line():
    found = {"counted": counted([RIGHT], [3], lambda n: n), "drawn": drawn([WRONG], 6, 6, 5_000, seed=0)}
    claim = claims_of_lines([RIGHT], found)[0]
    assert claim.verdict == "differs"
    assert "intervals" in claim.why


def test_a_condition_is_counted_among_the_sets_where_it_holds():
    line = replace(RIGHT, given=lambda kept: kept[2], printed=lambda n, s: Fraction(n - 1 - s, n - 1))
    assert all(row["equal"] for row in counted([line], [5], lambda n: n - 1))
