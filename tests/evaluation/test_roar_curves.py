"""Curves of ROAR: intervals over seeds, paired differences, rows, files."""

import json

import numpy as np
import pytest
from scipy import stats

import heedful
from heedful.errors import BadInput, UnknownName
from heedful.evaluation.roar_curves import RoarCurves

RNG = np.random.default_rng(0)


def curves(n_seeds=3, **changes):
    about = {"dataset": "planted", "explained": "a model", "imputation": "unknown", "n_train": 8, "n_test": 4}
    about |= {"modes": ("remove", "keep"), "methods": ("random", "lime"), "shares": (0.0, 0.5, 1.0)}
    return RoarCurves(**about | {"accuracies": RNG.uniform(0.3, 0.7, (2, 2, 3, n_seeds))} | changes)


def test_differences_from_random_are_paired_by_seed_and_averaged_over_the_shares_above_0():
    result = curves()
    by_hand = result.accuracies[1, 1] - result.accuracies[1, 0]
    for number, away in enumerate(result.differences("lime", "keep")):
        ends = stats.t.interval(0.95, 2, by_hand[number].mean(), stats.sem(by_hand[number]))
        assert away == pytest.approx((by_hand[number].mean(), *ends))
    mean = result.from_random("lime", "keep")
    assert mean == pytest.approx((by_hand[1:].mean(), *stats.t.interval(0.95, 2, *_of(by_hand[1:].mean(axis=0)))))
    assert np.isnan(curves(shares=(0.0,), accuracies=np.ones((2, 2, 1, 3))).from_random("lime").value)


def _of(draws):
    return draws.mean(), stats.sem(draws)


def test_there_is_a_row_for_every_point_and_a_frame_of_them():
    pd, result = pytest.importorskip("pandas", reason="to_frame makes a pandas frame"), curves()
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["share"]) == [0.0, 0.5, 1.0] * 4
    row = frame[(frame["mode"] == "keep") & (frame["method"] == "lime") & (frame["share"] == 0.5)].iloc[0]
    assert row["accuracy"] == pytest.approx(result.accuracies[1, 1, 1].mean())
    assert row["from_random"] == pytest.approx((result.accuracies[1, 1, 1] - result.accuracies[1, 0, 1]).mean())
    with pytest.raises(UnknownName, match="no method in this result 'lim'"):
        result.curve("lim")


def test_a_saved_result_is_read_back_and_a_damaged_one_refused(tmp_path):
    result = curves(1)
    result.save(tmp_path / "r.json")
    again = heedful.RoarCurves.load(tmp_path / "r.json")
    assert again.as_dict() == result.as_dict()
    assert json.loads((tmp_path / "r.json").read_text())["rows"][0]["low"] is None
    (tmp_path / "r.json").write_text((tmp_path / "r.json").read_text().replace("planted", "other"))
    with pytest.raises(BadInput, match=r"r\.json is not a result of ROAR, or it is damaged"):
        RoarCurves.load(tmp_path / "r.json")
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        RoarCurves.load(tmp_path / "none.json")
