from math import sqrt

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from heedful.experiments.claim import column
from heedful.experiments.toy_tasks import histogram, histogram_minima
from heedful.experiments.toy_tasks.histogram import Sizes
from heedful.experiments.toy_tasks.histogram_minima import HistogramMinima
from heedful.experiments.workspace import Workspace

KINDS = ("semantic", "positional")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("histogram-minima"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return HistogramMinima().measure(workspace)


@pytest.fixture(scope="module")
def test_set():
    return histogram.examples(Sizes(), 50_000, 0)[1]


def computed(weights, run, tokens):
    """Logits of a saved run, by torch's own attention, and its map."""
    w = {name: tensor[run] for name, tensor in weights.items()}
    e = torch.cat([w["W_e"][tokens], w["W_p"].expand(*tokens.shape, -1)], dim=-1)
    q = e @ w["W_q"].T
    pooled = layer_norm(scaled_dot_product_attention(q, q, e), (64,))
    logits = (pooled @ w["W_1"].T + w["b_1"]).clamp(min=0) @ w["W_2"].T + w["b_2"]
    return logits, (q @ q.transpose(1, 2) / sqrt(64)).softmax(dim=-1)


def test_both_minima_count_and_only_one_sees_the_tokens(numbers):
    for phase in ("restricted", "lifted"):
        of = {kind: [row for row in numbers["runs"] if (row["kind"], row["phase"]) == (kind, phase)] for kind in KINDS}
        assert min(column(of["semantic"] + of["positional"], "test_accuracy")) >= 0.99
        assert max(column(of["positional"], "token_dependence")) < 0.05
        assert min(column(of["semantic"], "token_dependence")) > 0.5


def test_accuracies_are_those_of_the_saved_weights(numbers, workspace, test_set):
    weights = load_file(workspace.folder / "steps" / "tied-lifted.safetensors")
    for run, kind in enumerate((*KINDS, "none")):
        logits, _ = computed(weights, run, test_set.tokens[:3_000])
        right = (logits.argmax(dim=-1) == test_set.counts[:3_000]).double().mean()
        [value] = column(numbers["runs"], "test_accuracy", kind=kind, phase="lifted")
        # The first fifth of the test set against all of it.
        assert value == pytest.approx(float(right), abs=0.01)
    for kind in KINDS:
        rows = [row for row in numbers["counts"] if row["kind"] == kind]
        mean = np.average(column(rows, "accuracy"), weights=column(rows, "n"))
        [value] = column(numbers["runs"], "test_accuracy", kind=kind, phase="lifted")
        assert value == pytest.approx(mean, abs=1e-6)


def test_maps_are_those_of_the_saved_weights_and_show_both_kinds(numbers, workspace, test_set):
    weights = load_file(workspace.folder / "steps" / "tied-lifted.safetensors")
    tokens = torch.cat([histogram.from_letters("DATAIAIAIA"), test_set.tokens[:2]])
    value = {kind: np.array(column(numbers["maps"], "weight", kind=kind)).reshape(3, 10, 10) for kind in KINDS}
    for run, kind in enumerate(KINDS):
        assert np.allclose(value[kind], computed(weights, run, tokens)[1].numpy(), atol=1e-4)
    equal = (tokens[:, :, None] == tokens[:, None, :]).numpy()
    other = ~np.eye(10, dtype=bool)[None]
    assert value["semantic"][equal & other].mean() > 3 * value["semantic"][~equal].mean()
    assert np.ptp(value["positional"], axis=0).max() < 0.02


def test_the_minima_stay_and_the_control_does_not(numbers):
    moved = {kind: column(numbers["runs"], "moved", kind=kind, phase="lifted")[0] for kind in (*KINDS, "none")}
    assert 5 * max(moved[kind] for kind in KINDS) < moved["none"]


def test_started_again_it_trains_nothing_and_finds_the_same(numbers, workspace, monkeypatch):
    monkeypatch.setattr(histogram_minima, "fit_runs", None)
    assert HistogramMinima().measure(workspace) == numbers


def test_the_maps_on_the_figure_are_the_numbers(numbers):
    drawn = HistogramMinima().draw(numbers)["maps"]
    panels = [axes for axes in drawn.axes if axes.get_title()]
    sequences = list(dict.fromkeys(row["sequence"] for row in numbers["maps"]))
    assert sequences[0] == "DATAIAIAIA"
    for axes, (kind, sequence) in zip(panels, [(k, s) for k in KINDS for s in sequences], strict=True):
        shown = axes.images[0].get_array()
        expected = column(numbers["maps"], "weight", kind=kind, sequence=sequence)
        assert np.allclose(shown.ravel(), expected)
        assert axes.get_title() == kind
        assert "".join(label.get_text() for label in axes.get_xticklabels()) == sequence


def test_the_curves_on_the_figure_are_the_numbers(numbers):
    drawn = HistogramMinima().draw(numbers)["training"]
    for axes, phase, kinds in zip(drawn.axes, ("restricted", "lifted"), (KINDS, (*KINDS, "none")), strict=True):
        assert len(axes.lines) == len(kinds)
        for line, kind in zip(axes.lines, kinds, strict=True):
            for name, shown in zip(("step", "loss"), line.get_data(), strict=True):
                assert np.allclose(shown, column(numbers["curves"], name, kind=kind, phase=phase))


def test_the_bars_on_the_figure_are_the_numbers(numbers):
    [axes] = HistogramMinima().draw(numbers)["dependence"].axes
    for bar, label in zip(axes.patches, axes.get_yticklabels(), strict=True):
        _, kind, phase = label.get_text().split(", ")
        scores = column(numbers["runs"], "token_dependence", kind=kind, phase=phase)
        assert bar.get_width() == pytest.approx(np.mean(scores))


def test_the_claims_hold_and_can_fail(numbers):
    claims = HistogramMinima().claims(numbers)
    assert [claims[place].verdict for place in (0, 1, 4)] == ["agrees"] * 3
    for place, score in ((2, "of_whole_maps"), (3, "off_diagonal")):
        [by_place], [by_token] = (
            column(numbers["runs"], score, kind=kind, phase="lifted") for kind in ("positional", "semantic")
        )
        assert claims[place].verdict == ("agrees" if by_place < 0.05 and by_token > 0.5 else "differs")
    answers = {row["kind"]: row["answer"] for row in numbers["answers"]}
    right = all(answer == "1 5 1 5 3 5 3 5 3 5" for answer in answers.values())
    assert claims[5].verdict == ("agrees" if right else "differs")
    assert claims[6].verdict == "not measured"
    changed = {
        0: {"test_accuracy": 0.98},
        1: {"token_dependence": 0.3},
        2: {"of_whole_maps": 0.3},
        3: {"off_diagonal": 0.3},
        4: {"moved": 0.5},
    }
    for place, cells in changed.items():
        runs = [
            {**row, **cells} if row["kind"] == "positional" and row["phase"] == "lifted" else row
            for row in numbers["runs"]
        ]
        assert HistogramMinima().claims({**numbers, "runs": runs})[place].verdict == "differs"
    worse = [
        {**row, "test_accuracy": row["test_accuracy"] - 0.006} if row["phase"] == "lifted" else row
        for row in numbers["runs"]
    ]
    assert HistogramMinima().claims({**numbers, "runs": worse})[4].verdict == "differs"


def test_the_authors_untied_form_is_claimed_where_it_was_trained(numbers):
    twice = {name: [*rows, *({**row, "weights": "untied"} for row in rows)] for name, rows in numbers.items()}
    claims = HistogramMinima().claims(twice)
    assert [claim.verdict for claim in claims[:6]] == [claim.verdict for claim in claims[6:]]
    assert all("untied" in claim.what for claim in claims[6:])
    assert len(HistogramMinima().draw(twice)["training"].axes) == 4
