"""The quick form of the variants, its numbers against loops, and what is on its pictures."""

import numpy as np
import pytest
import torch
from scipy.stats import t as student

from heedful.experiments.claim import column
from heedful.experiments.toy_tasks.dyck_training import DyckRun, quick_dyck_settings
from heedful.experiments.toy_tasks.dyck_variants import VARIANTS, DyckVariants, _at_the_best_rate
from heedful.experiments.workspace import Workspace

EXPERIMENT = DyckVariants()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("dyck-variants"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return EXPERIMENT.measure(workspace)


def test_every_variant_closes_held_out_brackets(numbers):
    assert [row["variant"] for row in numbers["variants"]] == list(VARIANTS)
    assert min(column(numbers["variants"], "best accuracy")) >= 0.99


def test_accuracy_and_weight_are_those_of_a_loop_over_strings(workspace, numbers):
    """Each string alone, each row by hand, from the weights that the run left behind."""
    settings, name = quick_dyck_settings(0), "no attention residual"
    index = list(VARIANTS).index(name) * 2 + 1
    trained = workspace.tensors("weights", dict)
    weights = {key: w[index] for key, w in trained.items()} | settings.fixed(DyckRun(name, VARIANTS[name], 1))
    right, on_stack = [], []
    for row in settings.held_out:
        word = [int(token) for token in row if token != settings.language.end]
        read = settings.network.run(weights, torch.tensor([word]))
        stack: list[int] = []
        for place, token in enumerate(word):
            if stack:
                on_stack.append(float(read.attention[0, place, stack[-1] + 1]))
            if token < 2:
                stack.append(place)
            else:
                closes = 2 + word[stack.pop()]
                assert closes == token
                right.append(int(read.logits[0, place, 2:4].argmax()) + 2 == closes)
    result = numbers["models"][index]
    assert (result["variant"], result["seed"]) == (name, 1)
    assert result["accuracy"] == pytest.approx(np.mean(right), abs=1e-3)
    assert result["on stack"] == pytest.approx(np.mean(on_stack), rel=1e-4)


def test_every_variant_is_evaluated_on_longer_strings(numbers):
    strings = {row["strings"]: row for row in numbers["strings"]}
    assert strings["longer"]["shortest"] > strings["training"]["longest"]
    longer = column(numbers["variants"], "longer accuracy")
    assert len(longer) == len(VARIANTS)
    assert all(0.5 < value <= 1 for value in longer)
    text = next(claim for claim in EXPERIMENT.claims(numbers) if claim.what.startswith("accuracy on strings of 60"))
    assert all(f"{name} {value:.1%}" in text.ours for name, value in zip(VARIANTS, longer, strict=True))


def test_summaries_are_means_over_seeds(numbers):
    for row in numbers["variants"]:
        own = [model for model in numbers["models"] if model["variant"] == row["variant"]]
        assert row["n"] == len(own) == 2
        for what in ("accuracy", "longer accuracy", "on stack", "balance violation"):
            values = [float(model[what]) for model in own]
            assert row[what] == pytest.approx(sum(values) / 2)
            half = student.ppf(0.975, df=1) * np.std(values, ddof=1) / np.sqrt(2)
            most = np.inf if what == "balance violation" else 1.0
            ends = (None, None) if np.ptp(values) == 0 else (max(row[what] - half, 0), min(row[what] + half, most))
            for name, end in zip(("low", "high"), ends, strict=True):
                found = row[f"{what} {name}"]
                assert found is None if end is None else found == pytest.approx(end, rel=1e-4, abs=1e-9)
        assert row["share stack-like"] == sum(model["on stack"] > 0.5 for model in own) / 2


def test_a_second_run_gives_the_same_numbers(workspace, numbers):
    (workspace.folder / "steps" / "models.json").unlink()
    assert EXPERIMENT.measure(workspace) == numbers


def test_the_picture_of_accuracies_shows_every_model_and_mean(numbers):
    axes = EXPERIMENT.draw(numbers)["accuracy"].axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(VARIANTS)
    points = [line for line in axes.lines if line.get_marker() == "."]
    shown = sorted(float(x) for line in points for x in line.get_xdata())
    wanted = [100 * float(model[what]) for model in numbers["models"] for what in ("accuracy", "longer accuracy")]
    assert shown == pytest.approx(sorted(wanted))
    means = [container.lines[0] for container in axes.containers]
    for line, what in zip(means, ("accuracy", "longer accuracy"), strict=True):
        assert line.get_xdata() == pytest.approx(100 * np.array(column(numbers["variants"], what)))


def test_the_scatter_shows_every_model(numbers):
    drawn = EXPERIMENT.draw(numbers)["stack"]
    for axes, what in zip(drawn.axes, ("accuracy", "longer accuracy"), strict=True):
        lines = {line.get_label(): line for line in axes.lines}
        for name in VARIANTS:
            assert list(lines[name].get_xdata()) == column(numbers["models"], "on stack", variant=name)
            assert lines[name].get_ydata() == pytest.approx(
                np.multiply(column(numbers["models"], what, variant=name), 100)
            )
    assert "stack-like to the right" in {text.get_text() for text in drawn.legends[0].get_texts()}


def changed(numbers, **cells):
    return {
        **numbers,
        "models": [{**row, **cells} for row in numbers["models"]],
        "every rate": [{**row, **cells} for row in numbers["every rate"]],
        "variants": [{**row, **cells} for row in numbers["variants"]],
    }


def test_claims_agree_and_can_fail(numbers):
    accuracy, share, *_ = EXPERIMENT.claims(numbers)
    assert accuracy.verdict == "agrees"
    poor = [{**numbers["variants"][0], "best accuracy": 0.98}, *numbers["variants"][1:]]
    failed = EXPERIMENT.claims({**numbers, "variants": poor})[0]
    assert failed.verdict == "differs"
    assert "whole" in failed.why
    n_stack = sum(bool(row["right"] and row["stack-like"]) for row in numbers["models"])
    assert share.ours.startswith(f"{n_stack} of {sum(bool(row['right']) for row in numbers['models'])}")
    flipped = EXPERIMENT.claims(changed(numbers, **{"stack-like": True}))[1]
    assert flipped.verdict == "differs"
    assert EXPERIMENT.claims(changed(numbers, right=False))[1].verdict == "not measured"


def test_a_map_that_predicts_the_accuracy_is_reported(numbers):
    with_more = [{**row, "accuracy": 0.9 + 0.1 * row["on stack"]} for row in numbers["models"]]
    against = [{**row, "accuracy": 0.9 - 0.1 * row["on stack"]} for row in numbers["models"]]
    one, other = (EXPERIMENT.claims({**numbers, "every rate": models})[2] for models in (with_more, against))
    assert (one.verdict, other.verdict) == ("differs", "agrees")
    assert "1.000 [0.994, 1.000]" in one.ours
    assert "more stack-like models are more accurate" in one.why
    assert "less stack-like models are more accurate" in other.why
    same = EXPERIMENT.claims(changed(numbers, accuracy=1.0))[2]
    assert same.verdict == "not measured"


def test_a_diverged_model_is_left_out_of_correlations(numbers):
    lost = [{**numbers["models"][0], "on stack": None, "balance violation": None}, *numbers["models"][1:]]
    claims = EXPERIMENT.claims({**numbers, "models": lost})
    assert all("nan" not in claim.ours for claim in claims)
    EXPERIMENT.draw({**numbers, "models": lost})


def test_the_rate_is_chosen_by_the_loss_in_training(numbers):
    slow = [{**row, "rate": 1e-3, "final loss": row["final loss"] * 0.5} for row in numbers["every rate"]]
    astray = [{**row, "final loss": None} for row in numbers["every rate"] if row["variant"] == "whole"]
    others = [row for row in numbers["every rate"] if row["variant"] != "whole"]
    assert {row["rate"] for row in _at_the_best_rate([*numbers["every rate"], *slow])} == {1e-3}
    kept = _at_the_best_rate([*astray, *others, *({**row, "final loss": 9.0} for row in slow)])
    assert {row["variant"]: row["rate"] for row in kept}["whole"] == 1e-3
    assert {row["rate"] for row in kept if row["variant"] != "whole"} == {1e-2}


def test_the_published_rate_has_a_line_of_its_own(numbers):
    *_, last = EXPERIMENT.claims(numbers)
    assert (last.verdict, last.ours) == ("agrees", "16 of 16 models at least 99%")
    poor = [{**row, "right": row["right"] and row["variant"] != "no layer norm"} for row in numbers["every rate"]]
    *_, last = EXPERIMENT.claims({**numbers, "every rate": poor})
    assert last.verdict == "differs"
    assert "no layer norm" in last.why
