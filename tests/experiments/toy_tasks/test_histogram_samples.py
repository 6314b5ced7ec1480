import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy, layer_norm, scaled_dot_product_attention

from heedful.experiments.claim import column, mean_over_seeds
from heedful.experiments.toy_tasks import histogram, histogram_samples
from heedful.experiments.toy_tasks.histogram import Sizes
from heedful.experiments.toy_tasks.histogram_samples import HistogramSamples
from heedful.experiments.workspace import Workspace

STARTS = ("none", "semantic", "positional")
SAMPLES = (30, 300, 3_000)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("histogram-samples"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return HistogramSamples().measure(workspace)


def test_every_start_has_every_number_of_samples(numbers):
    places = [(row["phase"], row["n_samples"], row["start"], row["seed"]) for row in numbers["runs"]]
    assert len(set(places)) == len(places) == 2 * len(SAMPLES) * len(STARTS) * 2
    assert {(n, start) for _, n, start, _ in places} == {(n, start) for n in SAMPLES for start in STARTS}


def test_losses_are_those_of_the_saved_weights(numbers, workspace):
    weights = load_file(workspace.folder / "steps" / "free.safetensors")
    sizes = Sizes(length=6, n_tokens=6, width=24, n_hidden=48)
    training, test = histogram.examples(sizes, 50_000, 0)
    free = [row for row in numbers["runs"] if row["phase"] == "free"]
    for run, row in enumerate(free):
        w = {name: tensor[run] for name, tensor in weights.items()}
        order = torch.randperm(len(training), generator=torch.Generator().manual_seed(row["seed"]))
        for name, tokens in (
            ("train_loss", training.tokens[order[: row["n_samples"]]]),
            ("test_loss", test.tokens[:3_000]),
        ):
            e = torch.cat([w["W_e"][tokens], w["W_p"].expand(*tokens.shape, -1)], dim=-1)
            q = e @ w["W_q"].T
            pooled = layer_norm(scaled_dot_product_attention(q, q, e), (24,))
            logits = (pooled @ w["W_1"].T + w["b_1"]).clamp(min=0) @ w["W_2"].T + w["b_2"]
            counts = (tokens[:, :, None] == tokens[:, None, :]).sum(dim=-1)
            expected = float(cross_entropy(logits.flatten(0, 1), counts.flatten()))
            assert row[name] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_restricted_maps_are_of_their_kind(numbers):
    restricted = [row for row in numbers["runs"] if row["phase"] == "restricted"]
    assert max(column(restricted, "token_dependence", start="positional")) == 0.0
    assert min(column(restricted, "token_dependence", start="semantic")) > 0.9


def test_more_samples_are_counted_better(numbers):
    for start in STARTS:
        few, many = (column(numbers["runs"], "test_accuracy", n_samples=n, start=start) for n in (30, 3_000))
        assert max(few) < 0.8 < 0.95 < min(many)


def test_started_again_it_trains_nothing_and_finds_the_same(numbers, workspace, monkeypatch):
    monkeypatch.setattr(histogram_samples, "fit_runs", None)
    assert HistogramSamples().measure(workspace) == numbers


def test_the_lines_on_the_figure_are_the_means_over_seeds(numbers):
    drawn = HistogramSamples().draw(numbers)["preference"]
    shown = (("token_dependence", "free"), ("test_accuracy", "free"), ("train_loss", "restricted"))
    for axes, (name, phase) in zip(drawn.axes, (*shown, ("test_loss", "restricted")), strict=True):
        for line, bars, start in zip(axes.lines, axes.collections, STARTS, strict=True):
            values = [column(numbers["runs"], name, n_samples=n, start=start, phase=phase) for n in SAMPLES]
            assert list(line.get_xdata()) == list(SAMPLES)
            assert np.allclose(line.get_ydata(), [np.mean(group) for group in values])
            for (low, high), group in zip(bars.get_segments(), values, strict=True):
                interval = mean_over_seeds(group, (0.0, 1.0 if name == "test_accuracy" else np.inf))
                assert np.allclose((low[1], high[1]), (interval.low, interval.high))


def test_the_claims_say_what_the_numbers_say(numbers):
    claims = HistogramSamples().claims(numbers)
    free = [row for row in numbers["runs"] if row["phase"] == "free"]
    for n in SAMPLES:
        kept = sum(score < 0.05 for score in column(free, "token_dependence", n_samples=n, start="positional"))
        assert f"{kept} of 2 at {n:,}" in claims[1].ours
    kinds = {n: column(free, "token_dependence", n_samples=n, start="none") for n in SAMPLES}
    semantic = [f"{n:,}" for n, scores in kinds.items() if min(scores) > 0.5]
    assert claims[0].ours.startswith(f"semantic at {', '.join(semantic)}")
    assert len(claims) == 5
    assert "6 tokens out of 6, width 24, 48 hidden units, 1,200 steps" in claims[0].why


def test_the_claims_can_fail(numbers):
    def changed(where, cells):
        return {
            **numbers,
            "runs": [
                {**row, **cells} if all(row[name] == cell for name, cell in where.items()) else row
                for row in numbers["runs"]
            ],
        }

    left = changed({"start": "positional", "phase": "free", "n_samples": 3_000}, {"token_dependence": 0.9})
    assert HistogramSamples().claims(left)[1].verdict == "differs"
    other = changed({"start": "none", "phase": "free", "n_samples": 300}, {"token_dependence": 0.1})
    assert "positional at 300" in HistogramSamples().claims(other)[0].ours
    mixed = changed({"start": "none", "phase": "free", "n_samples": 300, "seed": 0}, {"token_dependence": 0.1})
    assert "one or the other at 300" in HistogramSamples().claims(mixed)[0].ours
    lower = changed({"phase": "restricted"}, {"test_loss": 1.0, "test_accuracy": 0.5})
    for row, seed in zip(lower["runs"], range(len(lower["runs"])), strict=True):
        if row["start"] == "positional" and row["phase"] == "restricted":
            row |= {"test_loss": 0.1 + 1e-4 * (seed % 3), "test_accuracy": 0.9 + 1e-4 * (seed % 3)}
    assert HistogramSamples().claims(lower)[4].ours == "positional at 30, 300, 3,000"
    assert HistogramSamples().claims(lower)[2].ours == "positional at 30, 300, 3,000"
    rounded = changed({"phase": "restricted"}, {"test_loss": 1e-8})
    assert HistogramSamples().claims(rounded)[4].ours == "undecided at 30, 300, 3,000"
    apart = changed({"start": "positional", "phase": "restricted", "seed": 1}, {"test_loss": 1e-6})
    apart = {
        **numbers,
        "runs": [
            {**row, "test_loss": 99.0} if row["seed"] == 0 and row["start"] == "positional" else row
            for row in apart["runs"]
        ],
    }
    assert HistogramSamples().claims(apart)[4].ours == "undecided at 30, 300, 3,000"
