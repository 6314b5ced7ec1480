import heedful
from heedful.render.text_strip import pieces, visible

TEXT = "Good film, GOOD   story."


def test_pieces_are_the_text_from_first_to_last_character(tiny):
    explanation = heedful.explain(tiny, TEXT, "leave-one-out", unit="type")
    assert "".join(piece.text for piece in pieces(explanation)) == TEXT


def test_every_occurrence_carries_its_type_s_score(tiny):
    explanation = heedful.explain(tiny, TEXT, "leave-one-out", unit="type")
    goods = [piece.score for piece in pieces(explanation) if piece.text.lower() == "good"]
    assert goods == [explanation.scores[0]] * 2


def test_an_unread_rest_is_marked(tiny):
    assert pieces(heedful.explain(tiny, "good film " * 20, "attention-mean"))[-1].text == " …"


def test_nothing_that_steers_a_terminal_or_cannot_be_written_is_left():
    assert visible("a\x1bb\u202ec\ud800d\x85e") == "a�b�c�d�e"
    assert visible("plain é 😀 שלום") == "plain é 😀 שלום"
