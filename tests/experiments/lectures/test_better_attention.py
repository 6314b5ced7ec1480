import numpy as np
import pytest

from heedful.experiments.lectures import better_attention
from heedful.experiments.lectures.better_attention import BetterAttention
from heedful.experiments.workspace import Workspace
from heedful.statistics.intervals import student_97_5

WEIGHTS = {"single layer": {"none": 0.0, "entropy": 0.1, "rationale": 1.0}}


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(better_attention, "_WEIGHTS", WEIGHTS)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("better-attention")


@pytest.fixture(scope="module")
def numbers(small, folder):
    return BetterAttention().measure(Workspace(folder))


def values(numbers, loss, measure):
    return [row["value"] for row in numbers["runs"] if (row["loss"], row["measure"]) == (loss, measure)]


def test_a_finished_run_is_read_from_its_file(numbers, folder, monkeypatch):
    monkeypatch.setattr(better_attention, "train_with_losses", lambda *_: pytest.fail("it was trained again"))
    assert BetterAttention().measure(Workspace(folder)) == numbers
    (folder / "steps" / "single-layer-entropy-1.json").unlink()
    with pytest.raises(pytest.fail.Exception):
        BetterAttention().measure(Workspace(folder))


def test_rationales_move_attention_onto_marked_words_and_other_losses_do_not(numbers):
    for seed, moved in enumerate(values(numbers, "rationale", "marked")):
        assert moved > 2 * values(numbers, "none", "marked")[seed]
        assert moved > values(numbers, "entropy", "marked")[seed]


def test_changes_are_paired_by_seed_with_student_s_interval(numbers):
    change = better_attention._change(numbers, "single layer", "rationale", "marked")
    gains = np.subtract(values(numbers, "rationale", "marked"), values(numbers, "none", "marked"))
    half = student_97_5(1.0) * abs(gains[0] - gains[1]) / 2
    assert (change.value, change.low, change.high) == pytest.approx(
        (gains.mean(), gains.mean() - half, gains.mean() + half)
    )


def test_every_claim_follows_from_the_numbers_and_can_fail(small):
    def table(marked, entropy):
        rows = []
        for loss in WEIGHTS["single layer"]:
            for measure in better_attention._MEASURES:
                shift = {"attention entropy": entropy}.get(measure, 0.0) * (loss != "none")
                shift += marked * (loss != "none" and measure in ("marked", "auprc", "comprehensiveness gain"))
                rows += [
                    {"model": "single layer", "loss": loss, "measure": measure, "value": 0.5 + shift + noise}
                    for noise in ((0.0, 0.01, 0.02) if loss == "none" else (0.001, 0.009, 0.021))
                ]
        return {"runs": rows}

    def verdicts(numbers):
        return [claim.verdict for claim in BetterAttention().claims(numbers)]

    assert verdicts(table(0.1, -0.1)) == ["agrees"] * 4 + ["new"] * 2
    assert verdicts(table(-0.1, 0.1)) == ["differs"] * 4 + ["new"] * 2
    assert verdicts(table(0.0, 0.0)) == ["not measured"] * 4 + ["new"] * 2
    *_, rest = BetterAttention().claims(table(0.1, 0.0))
    assert rest.ours.startswith("attention on marked words 0.510 → 0.610 (+0.100 [")
    assert "entropy" not in rest.ours
    assert "entropy of attention 0.510 → 0.510" in rest.why


def test_a_training_without_a_value_is_left_out_of_both_sides():
    def row(loss, seed, value):
        return {"model": "BiLSTM", "loss": loss, "seed": seed, "measure": "for", "value": value}

    rows = [row("none", seed, value) for seed, value in enumerate((0.1, 0.2, 0.9))]
    rows += [row("leak", seed, value) for seed, value in enumerate((0.3, 0.5, None))]
    text = better_attention._before_and_after({"runs": rows}, "BiLSTM", "leak", "for")
    assert text.startswith("0.150 → 0.400 (+0.250 [")
    assert text.endswith("], 2 of 3 trainings)")


def test_every_run_has_every_measure(numbers):
    runs = {(row["loss"], row["seed"]) for row in numbers["runs"]}
    for measure in (*better_attention._MEASURES, "conicity", "leak"):
        assert {(row["loss"], row["seed"]) for row in numbers["runs"] if row["measure"] == measure} == runs
    assert np.isnan(values(numbers, "none", "conicity")).all()


def test_the_points_are_the_numbers(numbers):
    drawn, names = BetterAttention().draw(numbers)["losses"], [*WEIGHTS["single layer"]]
    assert len(drawn.axes) == len(better_attention._MEASURES)
    for axes, measure in zip(drawn.axes, better_attention._MEASURES, strict=True):
        # The dots of trainings are pale; means and the ends of their intervals are not.
        pale = [line for line in axes.lines if line.get_alpha() == 0.4]
        for loss, dots in zip(WEIGHTS["single layer"], pale, strict=True):
            assert list(dots.get_xdata()) == pytest.approx(values(numbers, loss, measure))
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == [
        f"single layer, {loss}" for loss in names
    ]
