import json

import numpy as np
import pytest

from heedful.generation.patching import locate
from tests.families import build

CLEAN, CORRUPTED = "the film was good and very bright .", "the film was and and very bright ."


def test_rows_and_json_hold_every_number(tmp_path):
    location = locate(build("gpt2"), CLEAN, CORRUPTED)
    frame = location.to_frame()
    assert len(frame) == location.values.size
    row = frame[(frame.layer == 1) & (frame.position == 4)].iloc[0]
    assert row.score == location.scores[1, 4]
    assert row.token == location.tokens[4]
    kept = json.loads(json.dumps(location.as_dict()))
    assert kept["values"] == location.values.tolist()
    assert kept["target"]["index"] == location.target.index
    location.save(tmp_path / "map.json")
    assert "scores" in (tmp_path / "map.json").read_text(encoding="utf-8")


def test_the_strongest_places_come_first():
    location = locate(build("gpt2"), CLEAN, CORRUPTED)
    (layer, position, score), *_ = location.top()
    assert abs(score) == pytest.approx(np.abs(location.scores).max())
    assert location.scores[layer, position] == score
    assert location.layers == (0, 1, 2)
    assert repr(location).startswith("<residual for the logit of ")
