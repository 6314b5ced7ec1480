import copy

from heedful.document.note import Note


def test_a_note_is_its_sentence_with_a_kind():
    note = Note("Stopped by the user after 3 of 9 masks.", "stopped")
    assert note == "Stopped by the user after 3 of 9 masks."
    assert note.kind == "stopped"
    assert f"{note}" == str(note)


def test_copies_and_json_keep_the_kind():
    note = Note("Only the first 255 words were read.", "truncated")
    for again in (copy.copy(note), copy.deepcopy(note), Note.of(note.as_dict())):
        assert (str(again), again.kind) == (str(note), "truncated")


def test_a_bare_sentence_of_an_older_file_is_a_remark():
    assert Note.of("The text was cut.").kind == "remark"
