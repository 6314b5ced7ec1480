import numpy as np
import pytest

from heedful.evaluation.verdict import CONTROL, NO_WINNER, relative_scores, texts_for_significance, verdicts

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


def test_relative_scores_are_those_by_hand():
    values = np.array([[[3.0, 1.0, 5.0]], [[2.5, 1.0, np.nan]], [[1.0, np.nan, np.nan]]])
    scores = relative_scores(values, [True])
    assert scores[:, 0].tolist() == [1.0, 0.75, 0.0]
    assert scores[:2, 1].tolist() == [0.5, 0.5]
    assert np.isnan(scores[2, 1])
    assert scores[0, 2] == 0.5
    assert relative_scores(values, [False])[:, 0].tolist() == [0.0, 0.25, 1.0]


def test_the_better_method_is_recommended():
    verdict = judged({"good": 2.0, "middling": 0.8, CONTROL: 0.0})
    assert verdict["rank words"].recommended == "good"
    assert verdict["rank words"].as_good == ("good",)
    assert verdict["rank words"].sentence == "use good."
    assert [standing.method for standing in verdict["rank words"].standings] == ["good", "middling", CONTROL]


def test_methods_that_are_not_distinguishable_are_named_with_the_cheapest():
    result = judged({"one": 1.0, "two": 1.0, "three": 1.0, CONTROL: 0.0}, {"one": 50.0, "two": 50.0, "three": 2.0})
    verdict = result["rank words"]
    assert set(verdict.as_good) == {"one", "two", "three"}
    assert "not distinguishable" in verdict.sentence
    assert verdict.recommended == "three" or "three costs least" in verdict.sentence


def test_cheap_screening_is_for_cheap_methods():
    verdict = judged({"dear": 3.0, "cheap": 1.0, CONTROL: 0.0}, {"dear": 500.0})
    assert verdict["rank words"].recommended == "dear"
    assert verdict["cheap screening"].recommended == "cheap"
    assert "dear" not in [standing.method for standing in verdict["cheap screening"].standings]


def test_a_method_worse_than_the_control_is_not_recommended():
    verdict = judged({"bad": -2.0, CONTROL: 0.0})
    assert verdict["rank words"].recommended is None
    assert verdict["rank words"].sentence == f"{NO_WINNER}."


def test_unsigned_methods_do_not_stand_for_evidence_against():
    strength = {"unsigned": 3.0, "signed": 1.0, CONTROL: 0.0}
    values = made(strength)
    values[0, METRICS.index("evidence-against")] = np.nan
    by_use = {v.use: v for v in verdicts(tuple(strength), METRICS, HIGHER, values, np.ones(3), 0)}
    assert by_use["find the evidence against"].recommended == "signed"
    assert by_use["rank words"].recommended == "unsigned"


@pytest.mark.slow
@pytest.mark.parametrize("n_documents", [10, 25])
def test_random_scores_win_in_at_most_five_of_a_hundred_runs(n_documents):
    alarms = 0
    for seed in range(100):
        result = judged({**{f"method {n}": 0.0 for n in range(8)}, CONTROL: 0.0}, n_documents=n_documents, seed=seed)
        alarms += any(verdict.recommended is not None for verdict in result.values())
    assert alarms <= 5


def test_uses_without_their_metrics_get_no_verdict():
    verdict_list = verdicts(("a", CONTROL), ("gini",), (True,), made({"a": 1.0, CONTROL: 0.0})[:, :1], np.ones(2), 0)
    assert verdict_list == ()


def test_a_method_with_few_values_does_not_change_the_verdict():
    strength = {"seldom": 5.0, "good": 2.0, CONTROL: 0.0}
    values = made(strength)
    values[0, :, 3:] = np.nan
    by_use = {v.use: v for v in verdicts(tuple(strength), METRICS, HIGHER, values, np.ones(3), 0)}
    assert by_use["rank words"].standings[0].method == "seldom"
    assert by_use["rank words"].recommended == "good"


def test_texts_on_which_the_control_has_no_number_do_not_help():
    """Worse than the control wherever both have numbers, it is not recommended for being good elsewhere."""
    strength = {"elsewhere": -2.0, CONTROL: 0.0, "third": -4.0}
    values = made(strength, n_documents=120)
    values[0, :, 60:] += 8 * np.where(HIGHER, 1, -1)[:, None]
    values[1, :, 60:] = np.nan
    by_use = {v.use: v for v in verdicts(tuple(strength), METRICS, HIGHER, values, np.ones(3), 0)}
    assert by_use["rank words"].recommended is None


def test_a_method_that_wins_wherever_both_have_values_ranks_higher():
    values = np.full((3, 1, 200), np.nan)
    values[0], values[1, :, :30], values[2] = 1.0, 2.0, 0.0
    values[2, :, :10] = 3.0
    (verdict, _) = verdicts(("often", "seldom", CONTROL), ("deletion",), (True,), values, np.ones(3), 0)
    assert verdict.recommended == "seldom"
    assert verdict.as_good == ("seldom",)


@pytest.mark.slow
def test_on_fewer_documents_no_difference_is_significant():
    for n_methods in (2, 5, 12):
        strength = {**{f"method {n}": 0.0 for n in range(n_methods - 1)}, CONTROL: 0.0}
        strength["method 0"] = 1000.0
        n_pairs = n_methods * (n_methods - 1) // 2
        for n_documents, can in (
            (texts_for_significance(3 * n_pairs) - 1, False),
            (texts_for_significance(3 * n_pairs) + 1, True),
        ):
            verdict = judged(strength, n_documents=n_documents)
            assert (verdict["rank words"].recommended == "method 0") is can
