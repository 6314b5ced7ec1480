"""Figure 4: five LIME runs, Theorem 5.1 and the exact value, on the page as they were measured."""

import numpy as np
import pytest
from matplotlib.cbook import boxplot_stats

import heedful
from heedful.experiments.claim import column
from heedful.experiments.paper import figure_4
from heedful.experiments.paper.figure_4 import _COVERED, LAWS, N_RUNS, Figure4, scores_of, within_whiskers
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Figure4().measure(Workspace(tmp_path_factory.mktemp("figure-4")))


def test_runs_and_marks_are_those_of_the_catalogue(numbers, paper):
    asked = {"target": "positive", "unit": "type"}
    for name, method, own in (
        ("theorem", "lime-theorem", {}),
        ("corrected", "lime-theorem", {"form": "corrected"}),
        ("exact", "lime-exact", {}),
    ):
        expected = heedful.explain(paper, FIGURE_4, method, **own, **asked)
        assert [row["word"] for row in numbers["words"]] == list(expected.units)
        np.testing.assert_allclose(column(numbers["words"], name), expected.scores, atol=1e-12)
    assert scores_of(numbers, "delete").shape == (N_RUNS, 71)
    for law in LAWS:
        run = heedful.explain(paper, FIGURE_4, "lime", absence=law, design="independent", seed=3, **asked)
        np.testing.assert_allclose(scores_of(numbers, law)[3], run.scores, atol=1e-9)
        assert np.abs(np.diff(scores_of(numbers, law), axis=0)).min(axis=1).max() > 0


def test_whiskers_are_matplotlibs():
    runs = np.random.default_rng(0).standard_t(2, (N_RUNS, 300))
    values = np.random.default_rng(1).standard_normal(300)
    expected = [s["whislo"] <= value <= s["whishi"] for s, value in zip(boxplot_stats(runs), values, strict=True)]
    assert within_whiskers(runs, values.tolist()).tolist() == expected
    assert 0.2 < np.mean(expected) < 0.9


def test_whiskers_hold_the_mean_as_often_as_the_claim_says():
    runs = np.random.default_rng(0).standard_normal((N_RUNS, 200_000))
    assert within_whiskers(runs, np.zeros(200_000).tolist()).mean() == pytest.approx(_COVERED, abs=0.004)


def test_the_document_is_like_the_captions_and_the_exact_value_is_where_lime_replaces(numbers):
    theirs, deleted, replaced, error_deleted, error_replaced = Figure4().claims(numbers)
    assert theirs.verdict == "agrees"
    assert replaced.verdict == "new"
    inside = int(within_whiskers(scores_of(numbers, "replace"), column(numbers["words"], "exact")).sum())
    assert f"exact value: {inside} of 71" in replaced.ours
    runs = scores_of(numbers, "replace")
    gap = np.linalg.norm(runs.mean(axis=0) - column(numbers["words"], "exact"))
    assert gap < 1.5 * np.linalg.norm(runs.std(axis=0, ddof=1)) / np.sqrt(N_RUNS)
    assert error_replaced.ours.endswith(f"exact value: {gap:.3f}")
    assert deleted.published
    assert not error_deleted.published


def test_verdicts_follow_the_numbers(numbers):
    means = {law: scores_of(numbers, law).mean(axis=0) for law in LAWS}

    def said(values):
        words = [{**row, "theorem": value, "exact": value} for row, value in zip(numbers["words"], values, strict=True)]
        return [claim.verdict for claim in Figure4().claims({**numbers, "words": words})]

    assert said(means["delete"].tolist())[1] == "agrees"
    assert said((means["delete"] + 1).tolist())[1] == "differs"
    assert said(means["replace"].tolist())[2] == "new"
    assert said((means["replace"] + 1).tolist())[2] == "differs"
    other = {**numbers, "about": [{**numbers["about"][0], "n_words": 98}]}
    assert Figure4().claims(other)[0].verdict == "differs"


def test_the_boxes_crosses_and_diamonds_are_the_numbers(numbers):
    (drawn,) = Figure4().draw(numbers).values()
    assert len(drawn.axes) == 2 * len(LAWS)
    exact, theorem = (np.array(column(numbers["words"], name)) for name in ("exact", "theorem"))
    halves = np.array_split(np.arange(71), 2)
    panels = [(law, half) for law in LAWS for half in halves]
    for axes, (law, chosen) in zip(drawn.axes, panels, strict=True):
        assert axes.get_title() == (LAWS[law] if chosen[0] == 0 else "")
        assert [tick.get_text() for tick in axes.get_xticklabels()] == [numbers["words"][i]["word"] for i in chosen]
        marks = {line.get_label(): line.get_ydata() for line in axes.lines}
        np.testing.assert_array_equal(marks["Theorem 5.1"], theorem[chosen])
        np.testing.assert_array_equal(marks["exact value"], exact[chosen])
        medians = np.median(scores_of(numbers, law)[:, chosen], axis=0)
        assert [2 * (number,) for number in medians.tolist()] == [
            tuple(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) == 2 and line.get_color() == "k"
        ]


def test_a_long_text_s_weakest_words_are_left_out_with_a_word(monkeypatch):
    """Before, half of the 71 words of the published text were missing without a word."""
    monkeypatch.setattr(figure_4, "_ROWS", 1)
    rng = np.random.default_rng(0)
    names = [f"w{number}" for number in range(40)]
    runs = [
        {"law": law, "run": run, "word": word, "score": float(rng.normal())}
        for law in LAWS
        for run in range(5)
        for word in names
    ]
    (drawn,) = Figure4().draw({"words": [{"word": word} for word in names], "runs": runs}).values()
    assert drawn.get_suptitle() == "The 36 of 40 words with the largest coefficients"
    assert sum(len(axes.get_xticklabels()) for axes in drawn.axes) == 2 * 36


def test_a_text_of_ones_own_is_explained(tmp_path):
    numbers = Figure4().measure(Workspace(tmp_path, text="a good film with a bad end ."))
    assert [row["word"] for row in numbers["words"]] == ["a", "good", "film", "with", "bad", "end", "."]
    assert Figure4().claims(numbers)[0].verdict == "differs"
    assert Figure4().draw(numbers)
