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
