from dataclasses import replace

import numpy as np

import heedful
from heedful.document import Document
from heedful.render.text_strip import pieces, short_title, visible

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


def split_at(explanation, text, *parts):
    """The explanation of a text whose units are these parts, one after the other, scored 1, −2, 3, …"""
    spans, end = [], 0
    for part in parts:
        start = text.index(part, end)
        end = start + len(part)
        spans.append((start, end))
    n = len(parts)
    document = Document(text, np.arange(n), parts, tuple(spans), np.arange(n), np.ones(n, dtype=bool))
    scores = np.array([(-1.0) ** place * (place + 1) for place in range(n)])
    return replace(explanation, document=document, scores=scores, error=None)


def test_a_break_that_the_model_did_not_read_is_a_line_end(tiny):
    explanation = heedful.explain(tiny, "good film", "attention-mean")
    text = "I don't.<br /><BR>So\r\nwhat"
    cut = pieces(split_at(explanation, text, "I", "don", "'", "t", ".", "So", "what"))
    assert "".join(piece.text for piece in cut) == "I don't.\n\nSo \nwhat"
    assert [piece.text for piece in cut if piece.score is not None] == ["I", "don", "'", "t", ".", "So", "what"]


def test_a_break_that_the_model_read_is_one_mark_with_its_strongest_score(tiny):
    explanation = heedful.explain(tiny, "good film", "attention-mean")
    cut = pieces(split_at(explanation, "a<br />b", "a", "<", "br", "/", ">", "b"))
    assert [(piece.text, piece.score) for piece in cut] == [("a", 1.0), ("↵\n", 5.0), ("b", -6.0)]
    words = pieces(split_at(explanation, "year.<br /><br />I", "year.<br", "/><br", "/>I"))
    assert [(piece.text, piece.score) for piece in words] == [("year.↵\n", 1.0), ("↵\n", -2.0), ("I", 3.0)]
    partly = pieces(split_at(explanation, "a<br />b", "a", "br", "b"))
    assert [piece.text for piece in partly] == ["a", "↵\n", "b"]


def test_a_title_is_one_line_of_whole_words_without_tags():
    assert short_title("a <b>fine</b> film", 80) == "a fine film"
    assert short_title("one two<br />three four", 9) == "one two …"
    assert short_title("one two three", 7) == "one two …"
    assert short_title("字" * 30, 10) == "字" * 10 + " …"
    assert short_title("if a <b and c> d", 80) == "if a <b and c> d"
    assert short_title("<br />", 80) == "<br />"


def test_the_tokens_of_one_word_are_one_piece(tiny):
    explanation = split_at(heedful.explain(tiny, "good film", "attention-mean"), "I don't", "I", "don", "'", "t")
    document = replace(explanation.document, words=np.array([0, 1, 1, 1]))
    cut = pieces(replace(explanation, document=document, scores=np.array([1.0, -2.0])))
    assert [(piece.text, piece.score) for piece in cut] == [("I", 1.0), (" ", None), ("don't", -2.0)]
