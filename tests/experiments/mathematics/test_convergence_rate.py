import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.mathematics import convergence_rate
from heedful.experiments.mathematics.convergence_rate import (
    CORRECTED,
    EPSILONS,
    EQUATION_17,
    LIME,
    PRINTED,
    ConvergenceRate,
    forms,
    points,
)
from heedful.experiments.mathematics.document_game import DocumentGame
from heedful.experiments.mathematics.random_documents import random_documents
from heedful.experiments.mathematics.subsets import all_kept, lime_law
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return ConvergenceRate().measure(Workspace(tmp_path_factory.mktemp("convergence-rate")))


def in_loops(documents, document, constant, centred):
    """constant × [α_t (v_t − c) − α_{h,t} (v_{h,t} − c)] word by word, c = Σ α v or 0."""
    g, w, g_h, w_h = (x[document] for x in (documents.g, documents.w, documents.g_h, documents.w_h))
    centre = sum(g[t] * w[t] for t in range(len(g))) / sum(g) if centred else 0.0
    return [
        constant * (g[t] / sum(g) * (w[t] - centre) - g_h[t] / sum(g_h) * (w_h[t] - centre)) for t in range(documents.d)
    ]


def test_the_forms_are_the_formulas_in_slow_loops():
    documents = random_documents(20, 6, 2, seed=1)
    values = forms(documents, 1)
    for name, constant, centred in (
        (PRINTED, 1.5, False),
        ("constant corrected", 1.0, False),
        ("centre corrected", 1.5, True),
        (CORRECTED, 1.0, True),
    ):
        assert np.allclose(values[name], in_loops(documents, 1, constant, centred), atol=1e-14)
    assert np.allclose(values["corrected − mean"], values[CORRECTED] - np.mean(values[CORRECTED]), atol=1e-14)


def test_the_errors_are_those_against_the_regression_over_all_sets(numbers):
    """T_max = 64 and ε = 0.5: 8 words, 256 sets."""
    where = {"epsilon": 0.5, "T_max": 64, "document": 3}
    n_documents = len(set(column(numbers["errors"], "document")))
    documents = random_documents(64, 8, n_documents, seed=0)
    keep = all_kept(8)
    f, law = DocumentGame.of(documents.games(), 3).values(keep), lime_law(keep)
    design = np.column_stack([np.ones(256), keep]) * np.sqrt(law)[:, None]
    line = (np.linalg.pinv(design) @ (f * np.sqrt(law)))[1:]
    given = np.array([np.average(f[keep[:, j]], weights=law[keep[:, j]]) for j in range(8)])
    for against, beta in ((LIME, line), (EQUATION_17, 3 * (given - given.mean()))):
        for name, scores in forms(documents, 3).items():
            rows = [row for row in numbers["errors"] if row["form"] == name and row["against"] == against]
            error = np.sqrt(((scores - beta) ** 2).mean())
            assert column(rows, "error", **where)[0] == pytest.approx(error, rel=1e-6)
            assert column(rows, "size", **where)[0] == pytest.approx(np.sqrt((beta**2).mean()), rel=1e-8)


def test_the_verdicts_stand(numbers):
    verdicts = [claim.verdict for claim in ConvergenceRate().claims(numbers)]
    assert verdicts == ["corrected", "new", "corrected", "corrected"]


def test_the_verdicts_can_fail(numbers):
    def scaled(form, against, power):
        rows = [
            {**row, "error": row["error"] * row["T_max"] ** power}
            if (row["form"], row["against"]) == (form, against)
            else row
            for row in numbers["errors"]
        ]
        return ConvergenceRate().claims({"errors": rows})

    assert scaled(PRINTED, LIME, -0.5)[0].verdict == "agrees"
    slower = scaled(CORRECTED, LIME, 0.3)
    assert [slower[0].verdict, slower[2].verdict] == ["differs", "differs"]
    assert scaled("corrected − mean", EQUATION_17, -0.4)[3].verdict == "agrees"
    assert scaled("corrected − mean", EQUATION_17, 0.4)[3].verdict == "differs"
    assert "in some of these" in scaled("constant corrected", LIME, -0.5)[1].why


def test_a_wrong_constant_in_the_corrected_form_is_detected(monkeypatch):
    right = convergence_rate.lime_leading_term
    monkeypatch.setattr(convergence_rate, "lime_leading_term", lambda *scores: 1.1 * right(*scores))
    rows = [row for power in (6, 7, 8, 9) for row in convergence_rate._errors(2**power, 6, 0)]
    verdicts = [claim.verdict for claim in ConvergenceRate().claims({"errors": rows})]
    assert verdicts[2] == "differs"


def test_lines_are_the_numbers(numbers):
    drawn = ConvergenceRate().draw(numbers)["rates"]
    for axes, epsilon in zip(drawn.axes, EPSILONS, strict=True):
        lines = {line.get_label(): line for line in axes.lines}
        for form in (PRINTED, CORRECTED):
            T_max, error = points(numbers, epsilon, form, LIME)
            line = lines[f"{form}, against {LIME}"]
            assert np.allclose(line.get_xdata(), T_max)
            assert np.allclose(line.get_ydata(), np.sqrt((error**2).mean(axis=0)))
        ends = lines["slope ε − 2"]
        fall = np.log(ends.get_ydata()[-1] / ends.get_ydata()[0]) / np.log(ends.get_xdata()[-1] / ends.get_xdata()[0])
        assert fall == pytest.approx(epsilon - 2)
