import numpy as np
import pytest

from heedful.evaluation.agreement import rank_correlation
from heedful.evaluation.disagreement import explain_disagreement
from heedful.evaluation.disagreement.pairs import rank_positions
from tests.evaluation.disagreement.planted import asked, planted

TEXT = "good film , not dull ! a very bad plot"


def test_places_count_from_the_highest_and_equals_share_theirs():
    assert rank_positions(np.array([0.5, 2.0, 0.5, -1.0])).tolist() == [2.5, 1.0, 2.5, 4.0]


def test_shares_are_parts_of_what_lowers_spearmans_correlation(tiny):
    question, explanations = asked(tiny, TEXT)
    for pair in explain_disagreement(question, explanations).pairs:
        one, other = (next(e for e in explanations if e.method == name) for name in (pair.one, pair.other))
        signed = one.signed and other.signed
        a, b = (e.scores if signed else np.abs(e.scores) for e in (one, other))
        first, second = (1 + (x[None] > x[:, None]).sum(axis=1) for x in (a, b))
        squares = (first - second) ** 2
        n = len(a)
        assert pair.correlation == pytest.approx(1 - 6 * squares.sum() / (n * (n * n - 1)))
        assert pair.correlation == rank_correlation(one, other)
        for unit in pair.units:
            assert unit.places == (first[unit.unit], second[unit.unit])
            assert unit.share == pytest.approx(squares[unit.unit] / squares.sum())
        assert [unit.share for unit in pair.units] == sorted(squares / max(squares.sum(), 1), reverse=True)[
            : len(pair.units)
        ]


def test_the_largest_term_is_named_and_put_into_words():
    words = {"good": ([0.0], [1.0]), "fine": ([0.0], [0.8]), "the": ([2.0], [0.0]), "bad": ([1.0], [-1.0])}
    disagreement = explain_disagreement(*asked(planted(words, T_max=5), "good fine the bad"))
    first = {pair.units[0].word: pair for pair in disagreement.widest(4)}
    assert first["the"].units[0].term == "value"
    assert disagreement.reason(first["the"].units[0]).startswith("value killed: its attention is")
    assert first["bad"].units[0].term == "sign"
    assert disagreement.reason(first["bad"].units[0]).startswith("sign lost: ")
    for pair in first.values():
        (unit,) = pair.units
        assert unit.term == max(unit.terms, key=lambda name: abs(unit.terms[name]))
        low, high = sorted(unit.strengths)
        assert -1 <= low < high <= 1


def test_methods_without_an_account_still_have_places(tiny):
    question, explanations = asked(tiny, TEXT, ["attention-max", "random", "leave-one-out"])
    disagreement = explain_disagreement(question, explanations)
    assert len(disagreement.pairs) == 3
    gap = next(pair for pair in disagreement.pairs if pair.one == "attention-max").units[0]
    assert gap.terms == {}
    assert disagreement.reason(gap) == "the terms of this pair are unknown."
    assert disagreement.widest(3) == ()


def test_a_summary_names_one_method_of_each_kind(tiny):
    names = ["attention-last", "attention-mean", "banzhaf-exact", "lime", "lime-exact", "rollout", "shapley-exact"]
    disagreement = explain_disagreement(*asked(tiny, TEXT, names, n_samples=100))
    named = {name for pair in disagreement.widest(9) for name in (pair.one, pair.other)}
    assert named <= {"attention-mean", "lime-exact", "shapley-exact"}
