import pytest

from heedful.errors import BadInput, Unsupported
from heedful.evaluation.journal import DocumentResult, Journal, SkipReason


def test_results_are_read_back_and_an_incomplete_line_is_dropped(tmp_path):
    journal = Journal(tmp_path / "run", {"seed": 0})
    journal.add(DocumentResult(3, "a fine film", 1, values={"lime": {"gini": 0.5}}))
    with (tmp_path / "run" / "documents.jsonl").open("a") as file:
        file.write('{"place": 4, "tex')
    again = Journal(tmp_path / "run", {"seed": 0})
    assert again.done == journal.done
    again.add(DocumentResult(4, "dull"))
    assert list(Journal(tmp_path / "run", {"seed": 0}).done) == [3, 4]


def test_another_run_and_a_damaged_line_are_refused(tmp_path):
    journal = Journal(tmp_path, {"seed": 0})
    journal.add(DocumentResult(0, "fine"))
    with pytest.raises(BadInput, match="differs in seed"):
        Journal(tmp_path, {"seed": 1})
    (tmp_path / "documents.jsonl").write_text('{"strange": 1}\n')
    with pytest.raises(BadInput, match="Line 1 of .* is damaged"):
        Journal(tmp_path, {"seed": 0})


def test_a_repeated_text_is_refused(tmp_path):
    Journal(tmp_path, {"seed": 0}).add(DocumentResult(0, "fine"))
    rows = (tmp_path / "documents.jsonl").read_text()
    (tmp_path / "documents.jsonl").write_text(rows * 2)
    with pytest.raises(BadInput, match="Line 2 of .* repeats a text; remove it, or the folder."):
        Journal(tmp_path, {"seed": 0})


def test_without_a_folder_results_stay_in_memory(tmp_path):
    journal = Journal(None, {})
    journal.add(DocumentResult(0, "fine"))
    assert list(journal.done) == [0]
    assert list(tmp_path.iterdir()) == []


def test_reasons_keep_their_subject_and_kind(tmp_path):
    def refuse(n):
        raise Unsupported(f"needs {n} words.", "lime")

    reasons = []
    for n in (2, 3):
        try:
            refuse(n)
        except Unsupported as error:
            reasons.append(SkipReason.of(error))
    assert [reason.sentence for reason in reasons] == ["needs 2 words.", "needs 3 words."]
    assert {reason.subject for reason in reasons} == {"lime"}
    # The same place in the code is the same kind, whatever numbers the sentence has.
    assert len({reason.kind for reason in reasons}) == 1
    assert reasons[0].kind.endswith("refuse")
    journal = Journal(tmp_path / "run", {})
    journal.add(DocumentResult(0, "a", skipped=reasons[0], reasons={"lime": {"": reasons[1]}}))
    assert Journal(tmp_path / "run", {}).done == journal.done
