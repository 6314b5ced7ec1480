import numpy as np
import pytest

from heedful.errors import BadInput
from heedful.generation.reliance import Reliance
from tests.generation.test_context import OUTPUT, told


def test_a_reliance_is_saved_and_loaded(tmp_path):
    reliance = told(alpha=0.9)
    reliance.save(tmp_path / "it.json")
    loaded = Reliance.load(tmp_path / "it.json")
    assert loaded.as_dict() == reliance.as_dict()
    assert loaded.cues == reliance.cues
    assert len(reliance.to_frame()) == len(OUTPUT)
    assert repr(reliance).startswith("<")
    with pytest.raises(BadInput, match=r"\.html or \.json"):
        reliance.save(tmp_path / "it.txt")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(BadInput, match="not a reliance"):
        Reliance.load(tmp_path / "other.json")


def test_the_numbers_follow_from_the_log_probabilities():
    reliance = told(alpha=0.9)
    for row in reliance.as_rows():
        assert row["difference"] == pytest.approx(np.exp(row["log_p"]) - np.exp(row["log_p_without"]))
        assert row["p_cxmi"] == pytest.approx(row["log_p"] - row["log_p_without"])
        assert row["reliant"] == (row["output_p_value"] <= 0.9)
        assert bool(row["cues"]) == row["reliant"]


def test_the_strongest_cues_come_first():
    reliance = told(alpha=0.99, context="a b c d e f")
    assert reliance.cues
    for place, cues in reliance.cues.items():
        strongest = np.sort(np.abs(reliance.attribution.scores[place]))[::-1][:3]
        assert [abs(score) for _, score, _ in cues] == pytest.approx(strongest.tolist())
