from math import comb

import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.mathematics import proposition_b1
from heedful.experiments.mathematics.conditional_means import mean_given_kept
from heedful.experiments.mathematics.proposition_b1 import EPSILONS, PropositionB1, term_games
from heedful.experiments.mathematics.proposition_b1_sums import printed_law
from heedful.experiments.mathematics.random_documents import random_documents
from heedful.experiments.mathematics.subsets import all_kept, lime_law
from heedful.experiments.workspace import Workspace
from heedful.statistics.intervals import NORMAL_97_5


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return PropositionB1().measure(Workspace(tmp_path_factory.mktemp("proposition-b1")))


def over_all_sets(documents, term, kept):
    """E[A_t V_t | ℓ ∉ S] from every set of removed words, by attention's definition."""
    d, padding = documents.d, documents.g.shape[1] - documents.d
    keep = all_kept(d)
    law = lime_law(keep) * keep[:, kept]
    total = 0.0
    for row, mass in zip(keep, law, strict=True):
        here = np.append(row, np.ones(padding, dtype=bool))
        g, w = (np.where(here, x, x_h)[0] for x, x_h in ((documents.g, documents.g_h), (documents.w, documents.w_h)))
        total += mass * g[term] * w[term] / g.sum()
    return total / law.sum()


def test_the_exact_values_are_those_over_all_sets():
    documents = random_documents(14, 7, 1, seed=0)
    games = term_games(documents)
    exact = mean_given_kept(games) + games.whole.numpy()[:, None]
    for term in range(3):
        for kept in (0, 2, 6):
            assert exact[term, kept] == pytest.approx(over_all_sets(documents, term, kept), abs=1e-12)


def test_the_law_of_sizes_is_bayes_rule(numbers):
    d = proposition_b1.N_WORDS
    keeps = np.array([0.0] + [comb(d - 1, s) / comb(d, s) / d for s in range(1, d)])
    assert np.allclose(column(numbers["law"], "counted"), keeps / keeps.sum(), atol=1e-14)
    assert column(numbers["law"], "s") == list(range(d))
    assert sum(column(numbers["law"], "drawn")) == pytest.approx(1)


def test_the_printed_law_misses_by_the_constant_that_it_should(numbers):
    """At the largest T_max what the wrong law costs Eq. (30) is (g_h v_h − g v)/(6 Σg), one half for one third of x."""
    T_max = int(max(column(numbers["errors"], "T_max")))
    n_documents = len(set(column(numbers["errors"], "document")))
    documents = random_documents(T_max, round(T_max**0.5), n_documents, seed=0)
    for document in range(n_documents):
        g, w, g_h, w_h = (x[document] for x in (documents.g, documents.w, documents.g_h, documents.w_h))
        cost = np.sqrt((((g_h * w_h - g * w)[:3] / (6 * g.sum())) ** 2).mean())
        where = {"epsilon": 0.5, "T_max": T_max, "document": document, "equation": "(30)", "form": "printed"}
        assert column(numbers["errors"], "error", **where)[0] == pytest.approx(cost, rel=0.15)


def test_the_draws_agree_with_the_exact_values_and_not_with_the_print(numbers):
    mean, high, exact, printed = (
        np.array(column(numbers["drawn"], name)) for name in ("mean", "high", "exact", "printed")
    )
    error = (high - mean) / NORMAL_97_5
    assert (np.abs(mean - exact) < 4 * error).all()
    assert (np.abs(mean - printed) > 4 * error).any()


def test_the_claims_hold_and_can_fail(numbers):
    verdicts = [claim.verdict for claim in PropositionB1().claims(numbers)]
    assert verdicts == ["corrected", "agrees", "corrected", "corrected", "corrected"]
    uniform = [{**row, "counted": row["printed"]} for row in numbers["law"]]
    assert PropositionB1().claims({**numbers, "law": uniform})[0].verdict == "agrees"
    third = [{**row, "corrected": row["corrected"] + 0.01} for row in numbers["law"]]
    assert PropositionB1().claims({**numbers, "law": third})[0].verdict == "differs"
    slow = [{**row, "error": row["error"] * row["T_max"] ** 0.8} for row in numbers["sizes"]]
    assert PropositionB1().claims({**numbers, "sizes": slow})[1].verdict == "differs"
    fast = [{**row, "error": row["error"] / row["T_max"]} for row in numbers["errors"]]
    assert [claim.verdict for claim in PropositionB1().claims({**numbers, "errors": fast})[2:4]] == ["agrees", "agrees"]
    right = [{**row, "printed": row["exact"]} for row in numbers["drawn"]]
    assert PropositionB1().claims({**numbers, "drawn": right})[4].verdict == "agrees"


def test_an_exponent_is_given_only_where_the_costs_of_the_printed_law_do_not_cancel(numbers):
    """1/d + a/6 changes its sign within these documents of T_max^0.7 words, and only there."""
    costs = {
        epsilon: [
            1 / row["d"] + row["a"] / 6 for row in numbers["errors"] if row["epsilon"] == epsilon and row["T_max"] > 256
        ]
        for epsilon in EPSILONS
    }
    mixed = {epsilon for epsilon, values in costs.items() if min(values) < 0 < max(values)}
    assert mixed == {0.7}
    ours = PropositionB1().claims(numbers)[2].ours
    assert "for ε = 0.3, 0.5, 0.9 as printed" in ours
    assert "for ε = 0.3, 0.5, 0.7, 0.9 corrected" in ours


def test_with_the_printed_law_in_place_of_the_right_one_nothing_is_corrected(monkeypatch, numbers):
    monkeypatch.setattr(proposition_b1, "corrected_law", printed_law)
    errors = [row for power in (6, 7, 8, 9) for row in proposition_b1._errors(2**power, 8, 0)]
    assert PropositionB1().claims({**numbers, "errors": errors})[3].verdict == "differs"


def test_lines_are_the_numbers(numbers):
    law, of_29, of_30 = PropositionB1().draw(numbers)["expectations"].axes
    for line, name in zip(law.lines, ("printed", "corrected", "counted"), strict=False):
        assert np.allclose(line.get_ydata(), column(numbers["law"], name))
    for axes, equation in ((of_29, "(29)"), (of_30, "(30)")):
        labelled = {line.get_label(): line for line in axes.lines}
        for epsilon in EPSILONS:
            where = {"equation": equation, "form": "corrected", "epsilon": epsilon, "T_max": 64}
            errors = np.array(column(numbers["errors"], "error", **where))
            assert labelled[f"ε = {epsilon}"].get_ydata()[0] == pytest.approx(np.sqrt((errors**2).mean()))
