from functools import cache

import numpy as np
import pytest

from heedful.evaluation.text_scale import TextScale
from heedful.evaluation.verdict import (
    CONTROL,
    N_COMPARISONS,
    metrics_by_use,
    n_comparisons,
    texts_for_significance,
    too_few_texts,
    verdicts,
)
from heedful.explainers import every_method
from heedful.explainers import methods as all_methods

METRICS = ("deletion", "sufficiency", "evidence-against")
HIGHER = (True, False, True)


def made(strength: dict[str, float], n_documents: int = 60, seed: int = 0) -> np.ndarray:
    """Numbers in which a method is better by its strength, in every metric."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(len(strength), len(METRICS), n_documents))
    values += np.array(list(strength.values()))[:, None, None]
    return values * np.where(HIGHER, 1, -1)[:, None]


def judged(strength: dict[str, float], passes: dict[str, float] | None = None, **changes):
    costs = np.array([(passes or {}).get(name, 1.0) for name in strength])
    return {v.use: v for v in verdicts(tuple(strength), METRICS, HIGHER, made(strength, **changes), costs, 0)}


def test_the_better_method_is_recommended():
    verdict = judged({"good": 2.0, "middling": 0.8, CONTROL: 0.0})
    assert verdict["rank words"].recommended == "good"
    assert verdict["rank words"].as_good == ("good",)
    assert verdict["rank words"].sentence == "use good; it beats the random control and every other method."
    assert [standing.method for standing in verdict["rank words"].standings] == ["good", "middling", CONTROL]


def test_methods_that_are_not_distinguishable_are_named_with_the_cheapest():
    result = judged({"one": 1.0, "two": 1.0, "three": 1.0, CONTROL: 0.0}, {"one": 50.0, "two": 50.0, "three": 2.0})
    verdict = result["rank words"]
    assert set(verdict.as_good) == {"one", "two", "three"}
    assert "not distinguishable" in verdict.sentence
    assert "three costs least" in verdict.sentence


def test_cheap_screening_is_for_cheap_methods():
    verdict = judged({"dear": 3.0, "cheap": 1.0, CONTROL: 0.0}, {"dear": 500.0})
    assert verdict["rank words"].recommended == "dear"
    assert verdict["cheap screening"].recommended == "cheap"
    assert "dear" not in [standing.method for standing in verdict["cheap screening"].standings]


def test_a_method_worse_than_the_control_is_not_recommended():
    verdict = judged({"bad": -2.0, CONTROL: 0.0})
    assert verdict["rank words"].recommended is None
    assert verdict["rank words"].sentence == "no significant winner; no method is shown to beat the random control."


def test_unsigned_methods_do_not_stand_for_evidence_against():
    strength = {"unsigned": 3.0, "signed": 1.0, CONTROL: 0.0}
    values = made(strength)
    values[0, METRICS.index("evidence-against")] = np.nan
    by_use = {v.use: v for v in verdicts(tuple(strength), METRICS, HIGHER, values, np.ones(3), 0)}
    assert by_use["find the evidence against"].recommended == "signed"
    assert by_use["rank words"].recommended == "unsigned"


def test_uses_without_their_metrics_get_no_verdict():
    verdict_list = verdicts(("a", CONTROL), ("gini",), (True,), made({"a": 1.0, CONTROL: 0.0})[:, :1], np.ones(2), 0)
    assert verdict_list == ()


def test_metrics_declare_the_uses_that_they_count_for():
    assert {use: set(names) for use, names in metrics_by_use().items()} == {
        "rank words": {"deletion", "insertion", "comprehensiveness", "sufficiency"},
        "find the evidence against": {"evidence-against"},
        "cheap screening": {"deletion", "insertion", "comprehensiveness", "sufficiency"},
        "find the known words": {"gold-recall", "gold-precision"},
        "find the sources of the output": {"linear-datamodelling", "top-drop"},
    }


def test_the_fixed_correction_is_enough_for_all_methods_in_all_uses():
    kinds = [all_methods()[name] for name in every_method()]
    assert 2 * len(kinds) + sum(kind.signed for kind in kinds) <= N_COMPARISONS


def test_a_method_with_few_values_counts_as_the_worst_elsewhere():
    strength = {"seldom": 5.0, "good": 2.0, CONTROL: 0.0}
    values = made(strength)
    values[0, :, 3:] = np.nan
    found = {v.use: v for v in verdicts(tuple(strength), METRICS, HIGHER, values, np.ones(3), 0)}
    assert found["rank words"].recommended == "good"
    assert found["rank words"].standings[-1].method == "seldom"
    assert found["rank words"].standings[-1].n_missing == 57


def test_texts_on_which_the_control_has_no_number_do_not_help():
    """Worse than the control wherever both have numbers, it is not recommended for being good elsewhere."""
    strength = {"elsewhere": -2.0, CONTROL: 0.0, "third": -4.0}
    values = made(strength, n_documents=120)
    values[0, :, 60:] += 8 * np.where(HIGHER, 1, -1)[:, None]
    values[1, :, 60:] = np.nan
    by_use = {v.use: v for v in verdicts(tuple(strength), METRICS, HIGHER, values, np.ones(3), 0)}
    assert by_use["rank words"].recommended is None


def test_a_method_that_is_not_distinguishable_from_the_best_is_named_though_it_does_not_beat_the_control():
    values = made({"good": 1.2, "noisy": 0.0, CONTROL: 0.0}, n_documents=40)[:, :1]
    values[1, 0] = values[2, 0] + np.random.default_rng(5).normal(1.0, 8.0, size=40)
    (verdict, _) = verdicts(("good", "noisy", CONTROL), ("deletion",), (True,), values, np.ones(3), 0)
    assert verdict.recommended == "good"
    assert verdict.as_good == ("good", "noisy")
    assert verdict.sentence == (
        "use good; it beats the random control; undecided: noisy, "
        "shown to be neither worse than it nor better than random."
    )


@pytest.mark.parametrize("n_methods", [2, 5, 12])
def test_on_fewer_documents_no_difference_is_significant(n_methods):
    strength = {**{f"method {n}": 0.0 for n in range(n_methods - 1)}, CONTROL: 0.0}
    strength["method 0"] = 1000.0
    for n_documents, can in ((texts_for_significance() - 1, False), (texts_for_significance(), True)):
        found = judged(strength, n_documents=n_documents)
        assert (found["rank words"].recommended == "method 0") is can


def test_a_winner_among_eighty_methods_is_possible():
    strength = {"good": 2.0, **{f"method {n}": 0.0 for n in range(79)}, CONTROL: 0.0}
    by_use = judged(strength)
    assert n_comparisons(tuple(by_use.values())) == 162
    assert by_use["rank words"].recommended == "good"


# By simulation: eight methods and the control, four metrics that correlate by ½ and one more, 400 runs a cell. The
# same with more cells: `make bench-verdicts`, whose figures are in docs/trust.md.

RANKING = ("deletion", "insertion", "comprehensiveness", "sufficiency", "evidence-against")
UP = np.array([1.0, 1.0, 1.0, -1.0, 1.0])
NAMES = (*(f"method {number}" for number in range(1, 9)), CONTROL)
HIGHER_5 = tuple((UP > 0).tolist())
N_RUNS = 400


def simulated(rng: np.random.Generator, effects: list[float], n_texts: int) -> np.ndarray:
    effects = [*effects, *[0.0] * (len(NAMES) - len(effects))]
    shared = rng.normal(size=(len(NAMES), 1, n_texts))
    own = rng.normal(size=(len(NAMES), len(RANKING), n_texts))
    return (np.sqrt(0.5) * (shared + own) + np.array(effects)[:, None, None]) * UP[:, None]


def judge(values: np.ndarray, names: tuple[str, ...] = NAMES):
    return verdicts(names, RANKING, HIGHER_5, values, np.ones(len(names)), 0)


@cache
def runs(effects: tuple[float, ...], n_texts: int, n_runs: int = N_RUNS):
    rng = np.random.default_rng(n_texts)
    return [judge(simulated(rng, list(effects), n_texts)) for _ in range(n_runs)]


@pytest.mark.slow
@pytest.mark.parametrize("n_texts", [12, 30, 100])
def test_random_scores_win_in_at_most_five_of_a_hundred_runs(n_texts):
    wins = [any(verdict.recommended for verdict in run) for run in runs((), n_texts)]
    assert np.mean(wins) <= 0.05


@pytest.mark.slow
def test_an_effect_of_a_half_is_found_on_a_hundred_texts_and_no_other_method_is_named():
    named = [run[0].recommended for run in runs((0.5,), 100)]
    assert np.mean([name == "method 1" for name in named]) >= 0.8
    assert np.mean([name not in (None, "method 1") for name in named]) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.6, 1.5])
def test_two_equal_methods_are_named_together(effect):
    named = [set(run[0].as_good) for run in runs((effect, effect), 100, 100) if run[0].recommended]
    assert len(named) >= 90
    assert np.mean([{"method 1", "method 2"} <= names for names in named]) >= 0.95


def standings(verdict):
    return {
        standing.method: (standing.score, standing.gain, standing.beats_control, standing.behind)
        for standing in verdict.standings
    }


@pytest.mark.parametrize("company", ["useless", "duplicated", "refusing", "removed"])
def test_the_company_changes_neither_recommendations_nor_scores(company):
    rng = np.random.default_rng(1)
    for run in range(20):
        values = simulated(rng, [0.8, 0.8, 0.4], 60)
        whole = judge(values)
        if company == "removed":
            kept = [
                row for row, name in enumerate(NAMES) if name in (whole[0].recommended, CONTROL) or rng.random() < 0.5
            ]
            values, names = values[kept], tuple(NAMES[row] for row in kept)
        else:
            added = values[[run % 8]] if company == "duplicated" else simulated(rng, [-0.3 * (run % 3)], 60)[:1]
            if company == "refusing":
                added[:, :, (added - values[-1:])[0, 0] < 0] = np.nan
            values, names = np.concatenate([values, added]), (*NAMES, company)
        # Evidence against is a use of its own, whose recommended method may have been removed.
        before, after = whole[0], judge(values, names)[0]
        assert after.recommended == before.recommended
        assert set(after.as_good) - {company} == set(before.as_good) & set(names)
        was, now = standings(before), standings(after)
        for name in names:
            assert name == company or now[name] == was[name]


def test_who_refuses_where_it_would_be_bad_never_wins():
    rng = np.random.default_rng(2)
    for _ in range(30):
        values = simulated(rng, [], 100)
        values[0, :, ((values[0] - values[-1]) * UP[:, None]).mean(axis=0) < 0] = np.nan
        assert all(verdict.recommended != "method 1" for verdict in judge(values))


def test_where_nothing_has_an_effect_there_is_no_winner():
    """Differences are rounding of outputs of size 3, and one method is always the best by rounding."""
    rng = np.random.default_rng(3)
    for size in (1e-16, 1e-7):
        values = size * simulated(rng, [5.0], 100)
        reach = size * np.ones((5, 100))
        scale = TextScale(np.where(UP[:, None] > 0, 0, reach), np.where(UP[:, None] > 0, reach, 0), 3e-6 + 0 * reach)
        for verdict in verdicts(NAMES, RANKING, HIGHER_5, values, np.ones(9), 0, scale):
            assert verdict.recommended is None
            assert {standing.score for standing in verdict.standings} == {0.5}


def test_texts_without_effect_make_no_method_worse_than_the_best():
    rng = np.random.default_rng(4)
    behind = 0
    for _ in range(40):
        values = simulated(rng, [1.5] * 8, 60)
        values[:, :, 30:] = 1e-9 * simulated(rng, [9.0], 30)
        (verdict, *_) = judge(values)
        behind += set(verdict.as_good) != set(NAMES[:-1])
    assert behind <= 2


def test_a_report_says_what_few_texts_cannot_show():
    # (1 + gain / ½)⁻ⁿ times 100 comparisons must be below 0.05.
    for n, gain in ((12, 0.44), (30, 0.14)):
        sentence = f"On {n} texts only a gain above {gain:.2f} can be significant; smaller ones need more texts."
        assert too_few_texts(n) == sentence
        assert 100 * (1 + gain / 0.5) ** -n == pytest.approx(0.05, rel=0.3)
    assert too_few_texts(200) is None
