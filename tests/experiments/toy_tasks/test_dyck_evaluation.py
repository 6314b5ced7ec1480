"""What is asked of networks, against loops over strings and rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.experiments.toy_tasks.dyck_evaluation import (
    RIGHT,
    STACK_LIKE,
    balance_violation,
    boxes_of,
    describe_strings,
    evaluate_run,
    evaluate_strings,
    finite_or_none,
    opened_last,
    uniform_on_stack,
    weights_of,
)
from heedful.experiments.toy_tasks.dyck_network import DyckParts
from heedful.experiments.toy_tasks.dyck_training import DyckRun, quick_dyck_settings
from heedful.experiments.toy_tasks.side_by_side import stack_runs

COURSE = replace(quick_dyck_settings(0), n_training=200, n_asked=400, n_far=130)
RUNS = [
    DyckRun("whole", DyckParts(), 0),
    DyckRun("uniform", DyckParts(content=False), 1),
    DyckRun("no norm", DyckParts(norm=False), 2),
]
UNTRAINED = stack_runs([COURSE.network.initial(run.seed) for run in RUNS])


def stack_keys(word: list[int]) -> list[int]:
    """For each row the key of the last open bracket, 0 where there is none."""
    keys, result = [], [0]
    for place, token in enumerate(word):
        if token < 2:
            keys.append(place + 1)
        elif token < 4:
            keys.pop()
        result.append(keys[-1] if keys else 0)
    return result


@pytest.mark.parametrize("index", range(3), ids=[run.name for run in RUNS])
def test_results_are_those_of_loops(index):
    weights = weights_of(COURSE, RUNS[index], index, UNTRAINED)
    tokens = COURSE.longer
    # More strings than are read at a time.
    assert len(tokens) > 100
    read = COURSE.network.run(weights, torch.tensor(tokens))
    right, on_box = [], []
    for string, row in enumerate(tokens.tolist()):
        for place, box in enumerate(stack_keys(row)):
            if box:
                on_box.append(float(read.attention[string, place, box]))
            if place < len(row) and 2 <= row[place] < 4:
                round_one, square_one = read.logits[string, place, 2], read.logits[string, place, 3]
                right.append((row[place] == 2) == bool(round_one >= square_one))
    answer = evaluate_strings(COURSE, weights, tokens)
    assert answer.accuracy == np.mean(right)
    assert answer.on_stack == pytest.approx(np.mean(on_box), rel=1e-6)
    if RUNS[index].name == "uniform":
        assert answer.on_stack == pytest.approx(uniform_on_stack(COURSE.language, tokens), rel=1e-5)


def test_boxes_are_where_the_stack_ends():
    assert boxes_of(COURSE.language, COURSE.longer).tolist() == [stack_keys(row) for row in COURSE.longer.tolist()]


def test_the_weight_on_the_stack_is_one_less_the_distance_to_the_stack_like_pattern():
    weights, tokens = weights_of(COURSE, RUNS[0], 0, UNTRAINED), COURSE.held_out
    attention = COURSE.network.run(weights, torch.tensor(tokens)).attention.double()
    boxes = torch.tensor(boxes_of(COURSE.language, tokens))
    like = torch.nn.functional.one_hot(boxes, attention.shape[-1])
    apart = (attention - like).abs().sum(dim=-1)[boxes > 0].mean() / 2
    assert evaluate_strings(COURSE, weights, tokens).on_stack == pytest.approx(1 - float(apart), rel=1e-5)


def test_closing_brackets_that_need_a_stack_are_those_after_another_type():
    language = Dyck()
    rows = np.stack([language.read(text, 8) for text in ("[()]", "(())[]", "[([])()]")])
    same, other = opened_last(language, rows)
    marks = ["".join(row) for row in np.select([same, other], ["s", "o"], ".")]
    assert marks == ["..so....", "..ss.s..", "...so.so"]


def test_the_strings_are_described():
    rows = {row["strings"]: row for row in describe_strings(COURSE)}
    assert [rows[kind]["n"] for kind in rows] == [200, len(COURSE.held_out), 130]
    longer = rows["longer"]
    n_closing = int(((COURSE.longer >= 2) & (COURSE.longer < 4)).sum())
    assert (
        longer["accuracy of the type opened last"] == opened_last(COURSE.language, COURSE.longer)[0].sum() / n_closing
    )
    assert (longer["shortest"], longer["longest"]) == (
        min(len(COURSE.language.spell(row)) for row in COURSE.longer),
        max(len(COURSE.language.spell(row)) for row in COURSE.longer),
    )


def test_the_violation_is_that_of_a_loop():
    weights = weights_of(COURSE, RUNS[2], 2, UNTRAINED)
    first, second = COURSE.prefixed
    one, other = (COURSE.network.run(weights, torch.tensor(tokens)).pooled.double() for tokens in (first, second))
    apart, sizes = [], []
    for string, row in enumerate(first.tolist()):
        for place, box in enumerate(stack_keys(row)):
            if box and place > COURSE.n_before:
                a, b = one[string, place], other[string, place]
                apart.append(float((a - b).norm()))
                sizes.append(float(a.norm() + b.norm()) / 2)
    assert balance_violation(COURSE, weights) == pytest.approx(np.mean(apart) / np.mean(sizes), rel=1e-6)


def test_a_row_of_results_names_its_settings():
    row = evaluate_run(COURSE, RUNS[1], 1, UNTRAINED)
    weights = weights_of(COURSE, RUNS[1], 1, UNTRAINED)
    near, far = evaluate_strings(COURSE, weights, COURSE.held_out), evaluate_strings(COURSE, weights, COURSE.longer)
    assert (row["variant"], row["seed"]) == ("uniform", 1)
    assert (row["accuracy"], row["longer accuracy"], row["on stack"]) == (near.accuracy, far.accuracy, near.on_stack)
    assert row["stack-like"] == (near.on_stack > STACK_LIKE)
    assert row["right"] == (near.accuracy >= RIGHT)


def test_a_value_that_is_not_finite_is_missing():
    assert finite_or_none(0.5) == 0.5
    assert finite_or_none(float("nan")) is None
