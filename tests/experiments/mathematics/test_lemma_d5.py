from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.mathematics import lemma_d5
from heedful.experiments.mathematics.lemma_d5 import FORMULAS, LemmaD5
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return LemmaD5().measure(Workspace(tmp_path_factory.mktemp("lemma-d5")))


def test_the_lines_are_the_counts_of_sets_that_leave_l_out():
    n = 6
    for s in range(1, n):
        sets = [S for S in combinations("abcdel", s) if "l" not in S]
        events = (lambda S: "a" not in S, lambda S: "a" in S, lambda S: "a" not in S and "b" not in S)
        for formula, event in zip(FORMULAS, events, strict=True):
            assert formula.printed(n, s) == Fraction(sum(map(event, sets)), len(sets))


def test_the_claims_hold_and_can_fail(numbers):
    assert {claim.verdict for claim in LemmaD5().claims(numbers)} == {"agrees"}
    assert len(LemmaD5().claims(numbers)) == len(FORMULAS)


@pytest.mark.parametrize("index", range(len(FORMULAS)))
def test_a_wrong_formula_is_detected(monkeypatch, tmp_path, index):
    right = FORMULAS[index]
    wrong = replace(right, printed=lambda n, s: right.printed(n, s) * Fraction(n + 1, n + 2))
    monkeypatch.setattr(lemma_d5, "FORMULAS", (*FORMULAS[:index], wrong, *FORMULAS[index + 1 :]))
    verdicts = [claim.verdict for claim in LemmaD5().claims(LemmaD5().measure(Workspace(tmp_path)))]
    assert verdicts == ["differs" if place == index else "agrees" for place in range(len(FORMULAS))]


def test_points_and_lines_are_the_numbers(numbers):
    left, right = LemmaD5().draw(numbers)["probabilities"].axes
    n = max(column(numbers["counted"], "n"))
    for axes, table, where, name in ((left, "counted", {"n": n}, "counted"), (right, "drawn", {}, "share")):
        printed = [formula for formula in axes.lines if formula.get_label() in {formula.text for formula in FORMULAS}]
        for formula, drawn, points in zip(FORMULAS, printed, axes.containers, strict=True):
            assert np.allclose(drawn.get_ydata(), column(numbers[table], "printed", formula=formula.text, **where))
            assert np.allclose(points[0].get_ydata(), column(numbers[table], name, formula=formula.text, **where))
    assert [text.get_text() for text in left.figure.legends[0].texts] == [formula.text for formula in FORMULAS]
