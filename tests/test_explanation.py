import json

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput

TEXT = "good film , good story . not dull !"


@pytest.mark.parametrize("method", ["attention-mean", "gradient-mean", "lime-theorem"])
def test_a_repeated_word_keeps_a_score_per_occurrence_and_its_type_is_their_sum(tiny, method):
    tokens = heedful.explain(tiny, TEXT, method, unit="token")
    types = tokens.to("type")
    assert tokens.units.count("good") == 2
    assert tokens.scores[0] != tokens.scores[3]
    assert types.scores[types.units.index("good")] == pytest.approx(tokens.scores[0] + tokens.scores[3], abs=1e-14)


def test_half_widths_add_up_so_that_a_sum_is_never_too_sure(tiny):
    words = heedful.explain(tiny, TEXT, "lime", n_samples=200)
    types = words.to("type")
    assert types.error[0] == pytest.approx(words.error[0] + words.error[3])


def test_top_is_by_absolute_score(tiny):
    explanation = heedful.explain(tiny, TEXT, "leave-one-out")
    strengths = [abs(score) for _, score in explanation.top(4)]
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] == np.abs(explanation.scores).max()


def test_rows_say_unit_score_and_error(tiny):
    rows = heedful.explain(tiny, TEXT, "lime", n_samples=100).as_rows()
    assert [row["unit"] for row in rows] == TEXT.split()
    assert all(row["error"] > 0 for row in rows)


def test_save_and_load_keep_everything_but_the_time(tiny, tmp_path):
    explanation = heedful.explain(tiny, TEXT, "lime", n_samples=100, target="positive", against=0)
    explanation.save(tmp_path / "e.json")
    again = heedful.Explanation.load(tmp_path / "e.json")
    assert again.as_dict() == explanation.as_dict()
    assert again.target == explanation.target
    assert again.to("type").scores.tobytes() == explanation.to("type").scores.tobytes()
    assert "seconds" in explanation.facts
    assert "seconds" not in json.loads((tmp_path / "e.json").read_text())["facts"]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"document": 3}'])
def test_a_file_that_is_not_an_explanation_is_refused(tmp_path, content):
    (tmp_path / "e.json").write_text(content)
    with pytest.raises(BadInput, match="e.json is not an explanation"):
        heedful.Explanation.load(tmp_path / "e.json")


def test_settings_are_enough_to_run_it_again(tiny):
    first = heedful.explain(tiny, TEXT, "lime", n_samples=150, seed=3, absence="delete", unit="type")
    second = heedful.explain(tiny, TEXT, first.method, **first.settings)
    assert first.scores.tobytes() == second.scores.tobytes()


def test_notebooks_get_html(tiny):
    explanation = heedful.explain(tiny, "good <b> film", "attention-mean")
    assert "&lt;b&gt;" in explanation._repr_html_()
    assert heedful.compare(tiny, "good film", ["attention-mean"])._repr_html_().count("<tr>") == 2


def test_notes_are_the_explanations_own_and_leave_the_document_alone(tiny):
    explanation = heedful.explain(tiny, "good qwerty film", "occlusion", width=9)
    assert [note.kind for note in explanation.notes] == ["unknown-words", "uninformative"]
    assert [note.kind for note in explanation.document.notes] == ["unknown-words"]


def test_saved_notes_keep_their_kinds_and_older_files_still_load(tiny, tmp_path):
    explanation = heedful.explain(tiny, "good qwerty film", "occlusion", width=9)
    kept = json.loads(json.dumps(explanation.as_dict()))
    again = heedful.Explanation.from_dict(kept)
    assert again.notes == explanation.notes
    assert [note.kind for note in again.notes] == [note.kind for note in explanation.notes]
    del kept["notes"]
    kept["document"]["notes"] = list(map(str, explanation.notes))
    assert heedful.Explanation.from_dict(kept).notes == explanation.notes


def leaves(kept, path=()):
    """Every path to a value that is no dictionary and no list, and to every empty one."""
    inner = kept.items() if isinstance(kept, dict) else enumerate(kept) if isinstance(kept, list) else ()
    if not inner:
        yield path
    for key, value in inner:
        yield from leaves(value, (*path, key))


def changed(kept, path, value):
    """A copy with another value at the path."""
    again = json.loads(json.dumps(kept))
    place = again
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return again


def test_a_file_that_was_edited_anywhere_is_refused(tiny, tmp_path):
    explanation = heedful.explain(tiny, "good qwerty film", "lime", n_samples=50)
    explanation.save(tmp_path / "e.json")
    kept = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))
    for path in leaves(kept):
        if path != ("checksum",):
            (tmp_path / "e.json").write_text(json.dumps(changed(kept, path, "?")), encoding="utf-8")
            with pytest.raises(BadInput, match="e.json is not an explanation .*checksum"):
                heedful.Explanation.load(tmp_path / "e.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("scores", 0), float("nan")),
        (("scores", 0), None),
        (("scores", 0), "x"),
        (("scores",), [1.0]),
        (("error", 0), -1.0),
        (("error", 0), float("nan")),
        (("error",), [1.0]),
        (("output",), float("inf")),
        (("output",), "x"),
        (("output",), None),
        (("unit",), "letter"),
        (("unit",), "sentence"),
        (("units", 0), "another"),
        (("signed",), "yes"),
        (("method",), 3),
        (("model",), None),
        (("settings",), None),
        (("settings", "seed"), []),
        (("facts",), None),
        (("facts", "masks"), "many"),
        (("target",), None),
        (("target", "index"), -1),
        (("target", "index"), "0"),
        (("target", "against"), "1"),
        (("target", "name"), 3),
        (("target", "scale"), "decibel"),
        (("target", "returns"), "decibels"),
        (("notes",), 3),
        (("notes", 0), {"kind": "remark"}),
        (("document",), None),
        (("document", "text"), None),
        (("document", "text"), "short"),
        (("document", "ids"), [1]),
        (("document", "ids", 0), "x"),
        (("document", "pieces", 0), 3),
        (("document", "spans", 1), [0, 99]),
        (("document", "spans", 1), [3, 1]),
        (("document", "spans", 1), [-1, 1]),
        (("document", "spans", 1), [1]),
        (("document", "spans"), []),
        (("document", "words", 1), 7),
        (("document", "words"), [0]),
        (("document", "known"), [True]),
        (("document", "segments"), [1]),
        (("document", "picture"), {"rgb": [[[0, 0, 300]]], "grid": [1, 1]}),
        (("document", "picture"), {"rgb": [[[0, 0, 0]]], "grid": [1]}),
    ],
)
def test_an_explanation_without_a_checksum_must_still_fit_itself(tiny, path, value):
    kept = json.loads(json.dumps(heedful.explain(tiny, "good qwerty film", "lime", n_samples=50).as_dict()))
    assert heedful.Explanation.from_dict(kept).as_dict() == kept
    with pytest.raises(BadInput, match="This is not an explanation that heedful wrote"):
        heedful.Explanation.from_dict(changed(kept, path, value))


def test_files_from_before_targets_said_what_the_model_returns_are_of_logits(tiny):
    explanation = heedful.explain(tiny, TEXT, "leave-one-out")
    kept = explanation.as_dict()
    kept["target"] = {name: value for name, value in kept["target"].items() if name != "returns"}
    assert heedful.Explanation.from_dict(kept).target == explanation.target


@pytest.mark.parametrize(
    ("ending", "start"),
    [(".json", b'{"method"'), (".html", b"<!doctype html>"), (".png", b"\x89PNG"), (".pdf", b"%PDF")],
)
def test_save_writes_by_the_ending(tiny, tmp_path, ending, start):
    path = tmp_path / f"e{ending}"
    heedful.explain(tiny, TEXT, "attention-mean").save(path)
    assert path.read_bytes().startswith(start)


def test_save_refuses_another_ending(tiny, tmp_path):
    with pytest.raises(BadInput, match="must end in .html, .json, .png, .svg or .pdf; 'e.txt' was given"):
        heedful.explain(tiny, TEXT, "attention-mean").save(tmp_path / "e.txt")


def test_samples_are_kept_and_damaged_ones_refused(tiny):
    explanation = heedful.explain(tiny, TEXT, "lime", n_samples=100)
    kept = explanation.as_dict()
    assert heedful.Explanation.from_dict(kept).samples == explanation.samples
    assert heedful.Explanation.from_dict({**kept, "samples": []}).samples == ()
    assert explanation.to("type").samples == ()
    for damaged in ({"kept": "10", "value": 0.0}, {"kept": "2" * len(explanation.units), "value": 0.0}, {"kept": "1"}):
        with pytest.raises(BadInput):
            heedful.Explanation.from_dict({**kept, "samples": [damaged]})
