import numpy as np
import pytest

from heedful.evaluation.probes import Finding
from heedful.experiments.debate.classic_runs import ClassicModel, ProbeRun, finding_row, measure_runs
from heedful.experiments.debate.corpora import SyntheticReviews
from heedful.experiments.debate.probes import Probes
from heedful.experiments.workspace import Workspace
from heedful.models.load import load
from heedful.statistics.quantity import Quantity


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("probes"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return Probes().measure(workspace)


def test_every_probe_is_run_and_every_model_learns(numbers):
    import heedful

    assert {row["probe"] for row in numbers["findings"]} == heedful.probes().keys()
    assert all(row["accuracy"] > 0.8 for row in numbers["models"])


def test_a_finding_is_that_of_the_model_whose_file_is_kept(numbers, workspace):
    import heedful

    model = load(str(workspace.folder / "models" / "synthetic-average-tanh-0.1-0"))
    report = heedful.probe(model, SyntheticReviews(), "agreement", 12, progress=None)
    wanted = {f.key: f.value.value for f in report["agreement"].result.findings if f.key}
    rows = [row for row in numbers["findings"] if row["probe"] == "agreement" and row["encoder"] == "average"]
    assert {row["key"]: row["value"] for row in rows if row["key"]} == pytest.approx(wanted)
    test = SyntheticReviews().examples("test")
    right = model.logits([model.encode(row.text) for row in test]).argmax(axis=1) == [row.label for row in test]
    (accuracy,) = [row["accuracy"] for row in numbers["models"] if row["encoder"] == "average"]
    # The file has word vectors in half precision.
    assert abs(accuracy - np.mean(right)) <= 0.01


def test_the_quick_form_decides_nothing_and_draws_both_figures(numbers):
    assert Probes.smaller_when_quick
    assert {claim.verdict for claim in Probes().claims(numbers)} <= {"not measured", "new"}
    figures = Probes().draw(numbers)
    assert figures.keys() == {"agreement", "accuracies"}
    (axes,) = figures["agreement"].axes
    assert "synthetic reviews, bilstm: attention–gradient" in [label.get_text() for label in axes.get_yticklabels()]


def test_a_finished_run_is_read_again(numbers, workspace, monkeypatch):
    monkeypatch.setattr("heedful.experiments.debate.classic_runs.probe", None)
    monkeypatch.setattr("heedful.experiments.debate.classic_runs.train_classic", None)
    run = ProbeRun(
        ClassicModel("synthetic", "bilstm"),
        tuple(dict.fromkeys(row["probe"] for row in numbers["findings"] if row["encoder"] == "bilstm")),
        12,
    )
    again = measure_runs(workspace, [run])["findings"]
    assert again == [row for row in numbers["findings"] if row["encoder"] == "bilstm"]


def test_the_cells_of_a_finding_have_none_for_what_is_not_known():
    row = finding_row(Finding("what", Quantity(0.5), None, key="name"))
    assert row == {"key": "name", "finding": "what", "value": 0.5, "low": None, "high": None, "null": None}
