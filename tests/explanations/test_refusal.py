import math

from heedful.explanations.refusal import Refusal


def test_a_refusal_has_the_fields_of_an_explanation_and_no_units():
    refusal = Refusal("superb", "Lime needs at least 2 words; the document has 1.", "lime")
    assert refusal.refused
    assert refusal.units == ()
    assert len(refusal.scores) == 0
    assert refusal.top() == []
    assert refusal.as_rows() == []
    assert math.isnan(refusal.output)
    assert [note.kind for note in refusal.notes] == ["refused"]
    assert "at least 2 words" in repr(refusal)
