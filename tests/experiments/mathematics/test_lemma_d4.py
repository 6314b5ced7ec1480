from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.mathematics import lemma_d4
from heedful.experiments.mathematics.lemma_d4 import LINES, LemmaD4
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return LemmaD4().measure(Workspace(tmp_path_factory.mktemp("lemma-d4")))


def test_the_lines_are_the_counts_of_sets():
    n = 6
    for s in range(1, n + 1):
        sets = list(combinations("abcdef", s))
        events = (
            lambda S: "a" not in S,
            lambda S: "a" not in S and "b" not in S,
            lambda S: "a" not in S and "b" in S,
            lambda S: not {"a", "b", "c"} & set(S),
            lambda S: "a" not in S and "b" in S and "c" not in S,
        )
        for line, event in zip(LINES, events, strict=True):
            assert line.printed(n, s) == Fraction(sum(map(event, sets)), len(sets))


def test_the_claims_hold_and_can_fail(numbers):
    assert {claim.verdict for claim in LemmaD4().claims(numbers)} == {"agrees"}
    assert len(LemmaD4().claims(numbers)) == len(LINES)


@pytest.mark.parametrize("index", range(len(LINES)))
def test_a_line_with_another_formula_is_found_out(monkeypatch, tmp_path, index):
    right = LINES[index]
    wrong = replace(right, printed=lambda n, s: right.printed(n, s) * Fraction(n + 1, n + 2))
    monkeypatch.setattr(lemma_d4, "LINES", (*LINES[:index], wrong, *LINES[index + 1 :]))
    verdicts = [claim.verdict for claim in LemmaD4().claims(LemmaD4().measure(Workspace(tmp_path)))]
    assert verdicts == ["differs" if place == index else "agrees" for place in range(len(LINES))]


def test_points_and_lines_are_the_numbers(numbers):
    left, right = LemmaD4().draw(numbers)["probabilities"].axes
    n = max(column(numbers["counted"], "n"))
    for axes, table, where, name in ((left, "counted", {"n": n}, "counted"), (right, "drawn", {}, "share")):
        printed = [line for line in axes.lines if line.get_label() in {line.text for line in LINES}]
        for line, drawn, points in zip(LINES, printed, axes.containers, strict=True):
            assert np.allclose(drawn.get_ydata(), column(numbers[table], "printed", line=line.text, **where))
            assert np.allclose(points[0].get_ydata(), column(numbers[table], name, line=line.text, **where))
    assert [text.get_text() for text in left.figure.legends[0].texts] == [line.text for line in LINES]
