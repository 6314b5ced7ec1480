import numpy as np
import pytest
import torch

from heedful.experiments.claim import column
from heedful.experiments.lectures import superposition
from heedful.experiments.lectures.superposition import Superposition
from heedful.experiments.workspace import Workspace
from heedful.features.superposition import ToySettings

pytestmark = pytest.mark.slow
N_CLAIMS = 7


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("superposition"))


@pytest.fixture(scope="module")
def numbers(workspace):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(superposition, "_UNIFORM", (1.0, 0.03))
        return Superposition().measure(workspace)


def weights(workspace, name):
    return workspace.tensors(f"toy-{name}", dict)["W"].double().numpy()


def test_the_table_is_the_geometry_of_the_trained_models(workspace, numbers):
    W = weights(workspace, "5-in-2-0.1")
    rows = [row for row in numbers["features"] if row["where"] == "plane" and row["active"] == 0.1]
    assert np.allclose([[row["x"], row["y"]] for row in rows], W, atol=1e-6)
    lengths = np.linalg.norm(W, axis=1)
    shared = np.array([sum((W[i] @ other / lengths[i]) ** 2 for other in W) for i in range(5)])
    assert np.allclose(column(rows, "norm"), lengths, atol=1e-6)
    assert np.allclose(column(rows, "dimensionality"), lengths**2 / shared, atol=1e-5)
    assert rows[0]["squares per dimension"] == pytest.approx((W**2).sum() / 2, rel=1e-5)


def test_what_must_be_recovered_follows_from_the_weights_alone(workspace, numbers):
    for name, where, p in (
        ("5-in-2-0.2", "plane", 0.2),
        ("20-in-5-0.03", "uniform", 0.03),
        ("20-in-5-1", "uniform", 1),
    ):
        W = weights(workspace, name)
        lengths = np.linalg.norm(W, axis=1)
        stored = lengths > 0.5
        angles = np.degrees(np.arccos(np.clip(W @ W.T / np.outer(lengths, lengths), -1, 1)))
        apart = [
            min(angles[i][stored & (np.arange(len(W)) != i)]) > 2 * np.degrees(np.arccos(0.98)) for i in range(len(W))
        ]
        expected = stored & np.array(apart) & ((1 - p) ** (stored.sum() - 1) >= 0.5)
        assert column(numbers["recovered"], "recoverable", where=where, active=p, kind="relu") == expected.tolist()


def test_the_claims_hold(numbers):
    claims = Superposition().claims(numbers)
    assert [claim.verdict for claim in claims] == ["agrees"] * (N_CLAIMS - 1) + ["new"]


def test_every_claim_can_fail(numbers):
    wrong = [{**row, "x": row["y"], "squares per dimension": 1.0} for row in numbers["features"]]
    missed = [{**row, "cosine": 0.97} for row in numbers["recovered"]]
    claims = Superposition().claims({"features": wrong, "recovered": missed})
    assert [claim.verdict for claim in claims] == ["differs"] * (N_CLAIMS - 1) + ["new"]
    none = [{**row, "recoverable": False} for row in numbers["recovered"]]
    assert [claim.verdict for claim in Superposition().claims({**numbers, "recovered": none})][4:6] == ["differs"] * 2


def test_the_points_are_the_numbers(numbers):
    drawn = Superposition().draw(numbers)
    for axes, p in zip(drawn["plane"].axes, (1.0, 0.2, 0.1), strict=True):
        ends = [[line.get_xdata()[1], line.get_ydata()[1]] for line in axes.lines]
        rows = [row for row in numbers["features"] if row["where"] == "plane" and row["active"] == p]
        assert np.allclose(ends, [[row["x"], row["y"]] for row in rows])
    left, right = drawn["dimensions"].axes
    uniform = [row for row in numbers["features"] if row["where"] == "uniform"]
    assert left.lines[0].get_ydata() == pytest.approx(
        [uniform[0]["squares per dimension"], uniform[-1]["squares per dimension"]]
    )
    assert right.lines[0].get_ydata() == pytest.approx(column(uniform, "dimensionality"))
    for axes, kind in zip(drawn["recovered"].axes, ("relu", "topk"), strict=True):
        for line, recoverable in zip(axes.lines[:2], (True, False), strict=True):
            shown = column(numbers["recovered"], "cosine", kind=kind, stored=True, recoverable=recoverable)
            assert sorted(line.get_ydata()) == pytest.approx(sorted(shown))


def test_cosines_are_those_of_the_nearest_direction(workspace, monkeypatch):
    toy = superposition._trained(workspace, ToySettings(5, 2, 0.1, 0.9))

    class Made:
        W_dec = torch.eye(2)

    monkeypatch.setattr(superposition, "fit", lambda *_, **__: Made)
    monkeypatch.setattr(Workspace, "step", lambda _, __, work: work())
    rows = superposition._recovered(workspace, toy, "topk")
    W = weights(workspace, "5-in-2-0.1")
    assert column(rows, "cosine") == pytest.approx((W / np.linalg.norm(W, axis=1, keepdims=True)).max(axis=1), abs=1e-6)
