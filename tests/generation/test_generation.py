import json

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from tests.families import build

PROMPT = "the film was good"


def both():
    model = build("gpt2")
    passages = ["a bad story", "not dull !"]
    yield heedful.generate(model, PROMPT, "nucleus", p=0.7, context=passages, max_new=6)
    yield heedful.generate(model, PROMPT, "beam", width=3, max_new=6)


def test_a_saved_generation_is_read_back(tmp_path):
    for generation in both():
        generation.save(tmp_path / "g.json")
        read = heedful.Generation.load(tmp_path / "g.json")
        assert read.as_dict() == generation.as_dict()
        assert read.steps == generation.steps
        assert read.tree == generation.tree
        assert read.document.ids.tolist() == generation.document.ids.tolist()


def test_a_changed_file_is_refused(tmp_path):
    generation = next(both())
    generation.save(tmp_path / "g.json")
    kept = json.loads((tmp_path / "g.json").read_text())
    (tmp_path / "g.json").write_text(json.dumps({**kept, "text": "other"}))
    with pytest.raises(BadInput, match=r"g\.json is not a generation that heedful saved .*checksum"):
        heedful.Generation.load(tmp_path / "g.json")
    del kept["checksum"]
    for change in ({"steps": 3}, {"ended": "never"}, {"text": None}, {"tree": [{"parent": 4}]}):
        (tmp_path / "g.json").write_text(json.dumps({**kept, **change}))
        with pytest.raises(BadInput, match="is not a generation that heedful saved"):
            heedful.Generation.load(tmp_path / "g.json")


def test_a_table_has_a_row_for_every_token():
    generation = next(both())
    frame = generation.to_frame()
    assert frame["id"].tolist() == list(generation.ids)
    assert np.allclose(frame["log_probability"], generation.log_probabilities)
    assert frame["token"].tolist() == list(generation.tokens)


def test_it_is_printed_in_300_characters():
    generation = heedful.generate(build("gpt2"), PROMPT, max_new=55)
    assert len(repr(generation)) <= 300
    assert repr(generation).startswith("<greedy, ")


@pytest.mark.parametrize("ending", ["html", "png", "svg", "pdf"])
def test_it_is_written_as_a_picture_and_a_page(tmp_path, ending):
    for generation in both():
        generation.save(tmp_path / f"g.{ending}")
        assert (tmp_path / f"g.{ending}").stat().st_size > 1000
    with pytest.raises(BadInput, match="must end in"):
        generation.save(tmp_path / "g.txt")
