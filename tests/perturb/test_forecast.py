"""Forecasts of time and memory against counted and measured runs."""

from dataclasses import replace

import pytest
import torch

from heedful.errors import BadInput
from heedful.models.budget import Budget
from heedful.models.question import ask
from heedful.perturb.forecast import Forecast, MaskCount, _Meter, as_time, forecast, planned
from tests.families import build

TEXT = "a very good film , but not dull"


def test_a_forecast_counts_its_own_probes():
    model, rows = build("bert"), []
    hook = model.network.register_forward_hook(lambda _m, _a, output: rows.append(len(output.logits)))
    try:
        cost = forecast(ask(model, [TEXT], 0, budget=Budget(at_once=16)), 0, "word", "replace", 1000, at_most=False)
    finally:
        hook.remove()
    assert cost.n_probes == 4 + 8 + 16
    # One more row is the text itself, whose logits name the target.
    assert sum(rows) - cost.n_probes in (0, 1)
    assert cost.at_once == 16
    assert cost.seconds == 1000 * cost.a_mask > 0


def test_a_time_limit_leaves_a_tenth():
    cost = Forecast(1000, False, 0.5, 0, 8, 12)
    assert cost.affordable(100.0) == 180
    assert cost.limited(100.0) == replace(cost, n_masks=180)
    assert cost.limited(500.0) is cost


def test_a_memory_limit_lowers_the_masks_in_a_pass_or_is_refused():
    question = ask(build("bert"), [TEXT], 0, budget=Budget(at_once=64))
    free = forecast(question, 0, "word", "replace", 100, at_most=False)
    tight = replace(question, budget=replace(question.budget, memory=free.memory // 2))
    cost = forecast(tight, 0, "word", "replace", 100, at_most=False)
    assert 1 <= cost.at_once < 64
    assert cost.memory <= free.memory // 2
    assert planned(tight, cost).budget.at_once == cost.at_once
    with pytest.raises(BadInput, match="A forward pass of this text needs about"):
        forecast(replace(question, budget=replace(question.budget, memory=1000)), 0, "word", "replace", 100, False)


def test_the_meter_measures_the_tensors_that_are_alive_together():
    with _Meter() as meter:
        first = torch.zeros(1000)
        second = torch.ones(500)
        del first
        third = torch.zeros(200)
    assert meter.peak == 6000
    assert len(second) + len(third) == 700


@pytest.mark.parametrize(("seconds", "text"), [(0.5, "0.5 s"), (600.0, "10 min"), (9000.0, "2.5 h")])
def test_times_are_written_with_their_unit(seconds, text):
    assert as_time(seconds) == text


def test_only_a_budget_is_an_upper_limit():
    assert [MaskCount(5, setting).at_most for setting in ("budget", "n_samples", None)] == [True, False, False]
