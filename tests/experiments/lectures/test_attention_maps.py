import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.lectures.attention_maps import AttentionMaps
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return AttentionMaps().measure(Workspace(tmp_path_factory.mktemp("maps")))


def matrix(numbers, kind):
    return np.array(column(numbers["cells"], "attention", kind=kind)).reshape(6, 6)


def test_masked_attention_is_unmasked_attention_renormalised(numbers):
    free, masked = matrix(numbers, "free"), matrix(numbers, "masked")
    assert np.allclose(free.sum(axis=1), 1)
    for s in range(6):
        assert np.allclose(masked[s, : s + 1], free[s, : s + 1] / free[s, : s + 1].sum())
        assert (masked[s, s + 1 :] == 0).all()


def test_every_cell_shows_its_number(numbers):
    drawn = AttentionMaps().draw(numbers)
    for axes, kind in zip(drawn["maps"].axes, ("free", "masked"), strict=True):
        A = matrix(numbers, kind)
        assert np.allclose(axes.images[0].get_array(), A)
        assert [text.get_text() for text in axes.texts] == [f"{value:.2f}" for value in A.ravel()]
    (line,) = drawn["start"].axes[0].lines
    spreads = sorted({row["spread"] for row in numbers["start"]})
    assert np.allclose(line.get_ydata(), [np.mean(column(numbers["start"], "distance", spread=s)) for s in spreads])


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in AttentionMaps().claims(numbers)] == ["corrected", "corrected", "agrees"]
    near = [{**row, "distance": 0.001} for row in numbers["start"]]
    assert AttentionMaps().claims({**numbers, "start": near})[1].verdict == "agrees"
    far = [{**row, "distance": 0.5} for row in numbers["start"]]
    bent = {**numbers, "start": far, "exchange": [{"gap": 0.1}]}
    assert [claim.verdict for claim in AttentionMaps().claims(bent)] == ["corrected", "differs", "differs"]
