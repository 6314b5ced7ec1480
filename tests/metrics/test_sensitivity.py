from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import heedful
from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.explainers import configure
from heedful.explainers.run import run_explainer
from heedful.metrics import Evaluation, measure
from heedful.metrics.sensitivity import NonSensitivity, Sensitivity, SignedSensitivity
from heedful.models.question import ask
from heedful.perturb.document_values import DocumentValues
from tests.metrics.masked_text import evaluation_of, masked_text, value

TEXT = "good film was not bad but very dull"
HOLES = {"replace": "neverseen", "delete": None}


class Saturated(nn.Module):
    """f(x) = 1 − ReLU(1 − x) of the sum x of the words' numbers: "two" is 2, any other word 0."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(torch.tensor([[0.0], [2.0], [0.0]], dtype=torch.float64))

    def forward(self, ids):
        f = 1 - torch.relu(1 - self.table(ids).sum(dim=(1, 2)))
        return torch.stack([torch.zeros_like(f), f], dim=1)


def numbered(text):
    tokens, start = [], 0
    for word in text.split():
        start = text.index(word, start)
        tokens.append(({"two": 1, "none": 2}.get(word, 0), start, start + len(word)))
        start += len(word)
    return tokens


@pytest.mark.parametrize(
    ("method", "sensitivity", "non_sensitivity"),
    [
        ("gradient-mean", 0.0, 1),
        ("gradient-x-input", 0.0, 1),
        ("leave-one-out", 1.0, 0.0),
        ("integrated-gradients", 1.0, 0.0),
    ],
)
def test_plain_gradients_fail_where_the_output_is_saturated(method, sensitivity, non_sensitivity):
    """At x = 2 the slope is zero, and yet f goes from 1 to 0 without the word."""
    model = heedful.wrap(Saturated(), numbered)
    question = ask(model, ["two none"], target=1)
    assert (question.logits[0, 1], model(["none none"])[0, 1]) == (1.0, 0.0)
    evaluation = Evaluation(
        question, run_explainer(configure(method, {}), question)[0], DocumentValues(question, "word")
    )
    assert measure(Sensitivity(), evaluation) == sensitivity
    assert measure(SignedSensitivity(), evaluation) == sensitivity
    assert measure(NonSensitivity(), evaluation) == non_sensitivity


@pytest.mark.parametrize("absence", HOLES)
def test_they_are_counted_over_the_units_that_change_the_output_alone(tiny, absence):
    rng = np.random.default_rng(0)
    n_words = len(TEXT.split())
    whole = value(tiny, TEXT)
    lost = [
        whole - value(tiny, masked_text(TEXT, set(range(n_words)) - {place}, HOLES[absence]))
        for place in range(n_words)
    ]
    for tolerance in (0.0, 0.2, 0.6):
        changing = [abs(one) > tolerance * max(map(abs, lost)) for one in lost]
        scores = rng.standard_normal(n_words) * (rng.random(n_words) < 0.7)
        scored = [(score, one) for score, one, change in zip(scores, lost, changing, strict=True) if change]
        evaluation = evaluation_of(tiny, TEXT, scores)
        settings = {"absence": absence, "tolerance": tolerance}
        there = np.mean([score != 0 for score, _ in scored])
        right = np.mean([score != 0 and (score > 0) == (one > 0) for score, one in scored])
        assert right < there
        assert measure(Sensitivity(**settings), evaluation) == pytest.approx(there)
        assert measure(SignedSensitivity(**settings), evaluation) == pytest.approx(right)
        without = {place for place, score in enumerate(scores) if abs(score) <= tolerance * np.abs(scores).max()}
        idle = {place for place, change in enumerate(changing) if not change}
        expected = len(without.symmetric_difference(idle))
        exact = replace(evaluation, explanation=replace(evaluation.explanation, error=np.zeros(n_words)))
        assert measure(NonSensitivity(**settings), exact) == expected
        assert measure(NonSensitivity(**settings, count="share"), exact) == pytest.approx(expected / n_words)


def test_a_score_whose_interval_contains_zero_counts_as_zero():
    model = heedful.wrap(lambda texts: [[0.0, 3.0 * text.count("good")] for text in texts])
    evaluation = evaluation_of(model, "a good film", [0.2, 1.0, -0.3])
    assert measure(NonSensitivity(), evaluation) == 2
    sure = replace(evaluation.explanation, error=np.array([0.25, 0.5, 0.25]))
    assert measure(NonSensitivity(), replace(evaluation, explanation=sure)) == 1


def test_leaving_one_out_is_sensitive_by_definition(tiny):
    question = ask(tiny, [TEXT])
    evaluation = Evaluation(question, heedful.explain(tiny, TEXT, "leave-one-out"), DocumentValues(question, "word"))
    assert measure(Sensitivity(), evaluation) == 1.0
    assert measure(SignedSensitivity(), evaluation) == 1.0
    assert measure(NonSensitivity(), evaluation) == 0.0


@pytest.mark.parametrize("metric", [Sensitivity, SignedSensitivity, NonSensitivity])
def test_where_no_unit_changes_anything_there_is_no_number(metric):
    model = heedful.wrap(lambda texts: [[0.0, 1.0] for _ in texts])
    with pytest.raises(Unsupported, match="removing any single unit does not change the output"):
        measure(metric(), evaluation_of(model, "a film", [1.0, 2.0]))


@pytest.mark.parametrize("metric", [Sensitivity, SignedSensitivity, NonSensitivity])
def test_settings_that_mean_nothing_are_refused(metric, tiny):
    with pytest.raises(BadInput, match="0 ≤ tolerance < 1"):
        measure(metric(tolerance=1.0), evaluation_of(tiny, TEXT, [1.0] * 8))
    with pytest.raises(UnknownName, match="absence"):
        metric(absence="gone")


def test_a_method_without_sign_is_judged_by_whether_there_is_a_score(tiny):
    """Sundararajan et al.: the attribution must not be zero; only our stricter form asks for a sign."""
    scores = [1.0, 0.0, 2.0, 0.5, 0.0, 1.0, 1.0, 3.0]
    unsigned = evaluation_of(tiny, TEXT, scores, signed=False)
    # Every word of the text has an effect, and two of eight have no score.
    assert measure(Sensitivity(tolerance=0.0), unsigned) == 6 / 8
    assert measure(Sensitivity(tolerance=0.0), evaluation_of(tiny, TEXT, np.negative(scores))) == 6 / 8
    with pytest.raises(Unsupported, match="needs signed scores"):
        measure(SignedSensitivity(), unsigned)
