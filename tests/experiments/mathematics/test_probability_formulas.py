from dataclasses import replace
from fractions import Fraction

import pytest

from heedful.experiments.mathematics.probability_formulas import (
    ProbabilityFormula,
    count_formulas,
    draw_formulas,
    formula_claims,
)

RIGHT = ProbabilityFormula("P(a ∉ S)", "(n−s)/n", lambda kept: kept[0], lambda n, s: Fraction(n - s, n))
WRONG = replace(RIGHT, printed=lambda n, s: Fraction(n - s, n + 1))
ONCE = replace(RIGHT, printed=lambda n, s: Fraction(n - s, n) + (n == 4 and s == 2))


def numbers_of(formula):
    return {
        "counted": count_formulas([formula], [3, 4], lambda n: n),
        "drawn": draw_formulas([formula], 6, 6, 5_000, seed=0),
    }


def test_a_right_line_agrees():
    claim = formula_claims([RIGHT], numbers_of(RIGHT))[0]
    assert claim.verdict == "agrees"
    assert claim.ours.startswith("7 of 7 counts")


@pytest.mark.parametrize("formula", [WRONG, ONCE])
def test_a_wrong_line_differs_and_the_sentence_says_where(formula):
    claim = formula_claims([formula], numbers_of(formula))[0]
    assert claim.verdict == "differs"
    assert "With n = " in claim.why


def test_draws_alone_find_a_wrong_line():
    tables = {
        "counted": count_formulas([RIGHT], [3], lambda n: n),
        "drawn": draw_formulas([WRONG], 6, 6, 5_000, seed=0),
    }
    claim = formula_claims([RIGHT], tables)[0]
    assert claim.verdict == "differs"
    assert "intervals" in claim.why


def test_a_condition_is_counted_among_the_sets_where_it_holds():
    formula = replace(RIGHT, condition=lambda kept: kept[2], printed=lambda n, s: Fraction(n - 1 - s, n - 1))
    assert all(row["equal"] for row in count_formulas([formula], [5], lambda n: n - 1))
