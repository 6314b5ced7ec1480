import json
from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.run_folder import sealed, unsealed
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 12, 7, 12]


@pytest.fixture(scope="module")
def table():
    return heedful.attribute(build("gpt2"), PROMPT, OUTPUT, "leave-one-out")


def test_a_saved_table_is_read_back(table, tmp_path):
    table.save(tmp_path / "a.json")
    loaded = heedful.Attribution.load(tmp_path / "a.json")
    assert loaded.as_dict() == table.as_dict()
    assert np.array_equal(loaded.scores, table.scores)
    assert loaded.text == table.text
    assert {id(row.document) for row in loaded.explanations} == {id(loaded.explanations[0].document)}


def test_the_same_call_gives_the_same_file(table, tmp_path):
    table.save(tmp_path / "a.json")
    heedful.attribute(build("gpt2"), PROMPT, OUTPUT, "leave-one-out").save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_file_that_was_changed_is_refused(table, tmp_path):
    table.save(tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "a.json").write_text(text.replace("leave-one-out", "leave-two-out"))
    with pytest.raises(BadInput, match=r"a\.json is not an attribution"):
        heedful.Attribution.load(tmp_path / "a.json")


DAMAGE = {
    "another format": {"format": "heedful/attribution/0"},
    "fewer outputs": {"outputs": ["a"]},
    "no parts": {"outputs": [], "positions": [], "explanations": []},
    "no facts": {"facts": None},
    "another place": {"positions": [[0], [1], [2], [9]]},
    "a text as place": {"positions": ["a", "b", "c", "d"]},
    "too many tokens written": {"n_written": 100},
    "a number of tokens in words": {"n_written": "four"},
    "settings that are no settings": {"settings": {"measure": ["logit"]}},
    "settings in words": {"settings": "none"},
    "no document": {"whole": None},
    "no note": {"notes": [3]},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_in_a_sentence(table, tmp_path, damage):
    kept = json.loads(json.dumps(table.as_dict())) | DAMAGE[damage]
    (tmp_path / "a.json").write_text(sealed(kept))
    assert unsealed(sealed(kept))
    with pytest.raises(BadInput):
        heedful.Attribution.load(tmp_path / "a.json")


def test_an_explanation_of_other_units_is_refused(table):
    kept = json.loads(json.dumps(table.as_dict()))
    kept["explanations"][1] |= {"unit": "token", "units": list(table.explanations[0].document.units("token"))}
    kept["explanations"][1] |= {"scores": [0.0] * 4, "error": None}
    kept["explanations"][2]["scores"] = [1.0]
    with pytest.raises(BadInput):
        heedful.Attribution.from_dict(kept)


def test_a_frame_has_a_row_for_every_part_and_source(table):
    frame = table.to_frame()
    assert len(frame) == 16
    assert frame.score.to_numpy().reshape(4, 4) == pytest.approx(table.scores)
    assert list(frame.source[:4]) == PROMPT.split()
    assert list(frame.output[::4]) == list(table.outputs)


def test_the_strongest_sources_of_a_part_are_named_by_number_or_text(table):
    best = PROMPT.split()[int(np.abs(table.scores[0]).argmax())]
    assert table.top(0, 1)[0][0] == best
    assert table.top(table.outputs[0], 1) == table.top(0, 1)
    with pytest.raises(BadInput, match="occurs 2 times"):
        table.top(table.outputs[1])
    with pytest.raises(BadInput, match="occurs 0 times"):
        table.top("nothing")
    with pytest.raises(BadInput, match="there is no part 4"):
        table.top(4)


def test_it_is_printed_in_300_characters(table):
    assert len(repr(table)) <= 300
    assert len(repr(replace(table, outputs=("x" * 500,) * 4))) <= 300


def test_an_error_is_known_only_if_it_is_known_of_every_part(table):
    assert np.array_equal(table.error, np.zeros((4, 4)))
    unknown = replace(table.explanations[1], error=None)
    assert replace(table, explanations=(table.explanations[0], unknown)).error is None


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5", "bart"])
def test_the_text_is_what_was_written(family):
    model = build(family)
    table = heedful.attribute(model, PROMPT, OUTPUT, "leave-one-out")
    assert table.text.replace(" ", "") == model.spell(OUTPUT).replace(" ", "")
    assert table.document.ids[-table.n_written :].tolist() == OUTPUT
