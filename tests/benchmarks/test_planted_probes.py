"""Every probe gives the right answer on planted models, which do what they say; too short a training is no answer."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.planted_probes import RECIPES, RIGHT, averaging, drawn, of_kinds, planted
from heedful.evaluation.probe import probes
from heedful.evaluation.probe_report import ProbeOutcome, ProbeReport
from heedful.evaluation.probes import ProbeResult
from heedful.statistics.quantity import difference_of, mean_quantity

TRAINING = [name for name, kind in probes().items() if kind.retrains]
SCRIPT = """
import dataclasses, json, torch
from benchmarks.planted_probes import RIGHT, answer_of, build_probe, planted, probes, verdicts_of

def too_short(name):
    short = dataclasses.replace(build_probe(name), n_epochs=1, learning_rate=1e-6)
    return short.measure(planted(name, "faithful", 40, 0).inquiry(40, 0))[1:3]

torch.set_num_threads(1)
seeds = {name: [1000] if kind.trains else [1000, 1001] for name, kind in probes().items()}
answers = {name: {case: [answer_of(name, case, seed) for seed in seeds[name]] for case in RIGHT} for name in seeds}
short = {name: too_short(name) for name, kind in probes().items() if kind.retrains}
print(json.dumps([answers, {case: verdicts_of(case, 1000) for case in RIGHT}, short]))
"""


@cache
def measured():
    """Answers, verdicts, and answers after too short a training; the checks of types would take most of the time."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("case", RIGHT)
def test_every_probe_tells_a_planted_case_from_its_opposite(case):
    answers, _, _ = measured()
    assert {name: set(cases[case]) for name, cases in answers.items()} == {name: {RIGHT[case]} for name in probes()}


@pytest.mark.parametrize("case", RIGHT)
def test_the_verdicts_of_a_planted_model_agree_for_every_use(case):
    _, verdicts, _ = measured()
    assert len(verdicts[case]) == 5
    assert set(verdicts[case].values()) == {RIGHT[case]}


@pytest.mark.parametrize("name", TRAINING)
def test_too_short_a_training_is_no_answer(name):
    answer, why = measured()[2][name]
    assert answer == "unknown"
    assert why.startswith("Trained too little")


def test_a_planted_model_averages_the_values_of_its_words_by_their_scores():
    kinds = RECIPES["agreement", "faithful"]
    words, texts, _ = drawn(np.random.default_rng(3), kinds, 5)
    made = of_kinds(np.random.default_rng(3), kinds, 5, averaging, 8)
    margins, by_hand = [], []
    for text, document in zip(texts, made.documents, strict=True):
        scores, values = np.array([words[word] for word in text]).T
        alpha = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(made.model.attention([document])[0, 0, 0, 1:], alpha, rtol=1e-4)
        no, yes = made.model.logits([document])[0]
        margins.append(yes - no)
        by_hand.append((alpha * values).sum())
    np.testing.assert_allclose(np.array(margins) / by_hand, margins[0] / by_hand[0], rtol=1e-3)


@pytest.mark.parametrize("case", RIGHT)
def test_the_planted_model_of_pairs_answers_every_question(case):
    made = planted("deceived", case, 20, 0)
    assert (made.model.logits(made.documents).argmax(axis=1) == made.labels).all()


def test_the_interval_of_equal_values_reaches_to_where_the_other_values_would_show():
    # With probability 0.025 none of 100 texts shows what a share q of them has: (1 − q)^100 = 0.025.
    q = 1 - np.exp(np.log(0.025) / 100)
    assert mean_quantity(np.zeros(100)) == pytest.approx((0, 0, q))
    assert difference_of(np.ones(100), np.ones(100)) == pytest.approx((0, -q, q))
    assert mean_quantity(np.full(100, 0.5), (0.0, 2.0)) == pytest.approx((0.5, 0.5 - 0.5 * q, 0.5 + 1.5 * q))


def only_explanation(**answers):
    outcomes = tuple(ProbeOutcome(probes()[name](), {}, ProbeResult((), one, "")) for name, one in answers.items())
    return {v.use: v.answer for v in ProbeReport("", "", "", 1, "word", 0, outcomes).verdicts}["the only explanation"]


def test_identifiable_weights_are_no_proof_of_the_only_explanation_but_a_counterexample_is_one_against_it():
    assert only_explanation(identifiability="yes", adversarial="no") == "no"
    assert only_explanation(identifiability="yes") == "unknown"
    assert only_explanation(identifiability="yes", adversarial="yes") == "yes"
    assert only_explanation(identifiability="no", adversarial="yes") == "partly"
