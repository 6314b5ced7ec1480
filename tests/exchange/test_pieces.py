"""Words and pieces find their characters, and their numbers the units that hold these."""

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.exchange.in_order import find_in_order
from heedful.exchange.pieces import find_words, token_row
from tests.families import PAIR, TEXTS, build

TEXT = "The film was good, the plot: not good!"


def texts_at(document, places):
    return [[document.text[a:b] for a, b in spots] for spots in places]


def scores_of(explanation):
    return dict(zip(explanation.units, explanation.scores.tolist(), strict=True))


def test_words_with_scores_are_types_and_the_rest_score_zero(tiny):
    e = heedful.read(tiny, TEXT, {"good": 0.5, "plot": -0.25, "The": 0.125})
    assert (e.unit, e.method, e.signed) == ("type", "words (read)", True)
    assert scores_of(e) == {"the": 0.125, "good": 0.5, "plot": -0.25} | dict.fromkeys(
        ["film", "was", ",", "not", "!"], 0.0
    )
    assert e.notes[-1] == "5 of 8 different words are not among the pieces and have score 0."
    same = heedful.read(tiny, TEXT, [("plot", -0.25), ["good", 0.5], ("The", 0.125)])
    assert same.scores.tobytes() == e.scores.tobytes()


def test_each_occurrence_has_its_share_of_a_word_s_score(tiny):
    e = heedful.read(tiny, TEXT, {"good": 0.5, "was": 1.0}, unit="word")
    assert [score for unit, score in zip(e.units, e.scores, strict=True) if unit == "good"] == [0.25, 0.25]
    assert scores_of(e.to("type"))["good"] == 0.5


def test_a_list_of_ours_comes_back(tiny):
    ours = heedful.explain(tiny, TEXT, "leave-one-out", unit="type")
    read = heedful.read(tiny, TEXT, ours.as_list(), name="again")
    assert np.allclose(read.scores, ours.scores, atol=1e-15)
    assert read.method == "again (read)"


def test_words_that_are_not_in_the_text_are_refused_by_name(tiny):
    for given, sentence in (
        ({"good": 1.0, "awful": 2.0}, "'awful' of 2 words are not in the text; give words of the text."),
        ([("awful", 2.0), ("goo", 1.0)], "'awful' and 1 more of 2 words are not in the text; give words of the text."),
        ({"goo": 1.0}, "'goo' of 1 words are not in the text; give words of the text."),
        ({"": 1.0}, "'' of 1 words are not in the text; give words of the text."),
    ):
        with pytest.raises(BadInput) as error:
            heedful.read(tiny, TEXT, given)
        assert str(error.value) == sentence
    with pytest.raises(BadInput, match="^'good' is named more than once, and the pieces are not in the order of the"):
        heedful.read(tiny, TEXT, [("good", 0.5), ("film", 1.0), ("good", 0.25)])
    with pytest.raises(BadInput, match="^Scores of words must be pairs of a word and a number; 3 was given"):
        heedful.read(tiny, TEXT, [("good", 1.0), 3])
    with pytest.raises(BadInput, match="^Scores must be numbers, one per unit; a list with 'much' was given"):
        heedful.read(tiny, TEXT, {"good": "much"})
    with pytest.raises(BadInput, match="^The keys of a dictionary of scores must be words; {} was given"):
        heedful.read(tiny, TEXT, {})
    with pytest.raises(BadInput, match="^Number 1 of 1 is nan"):
        heedful.read(tiny, TEXT, {"good": float("nan")})


def test_pieces_in_the_order_of_the_text_are_read_one_after_another(tiny):
    given = [("film", 1.0), ("was ", 2.0), ("good, ", 4.0), ("plot:", 8.0), ("good", 16.0)]
    e = heedful.read(tiny, TEXT, given)
    assert e.unit == "word"
    assert e.scores.tolist() == [0.0, 1.0, 2.0, 4.0, 0.0, 0.0, 8.0, 0.0, 16.0, 0.0]
    assert e.notes[-1] == "5 of 10 words are not among the pieces and have score 0."


def test_a_piece_of_several_words_is_shared_but_by_marks(tiny):
    e = heedful.read(tiny, TEXT, [("the film", 1.0), ("was good,", 2.0), ("the plot: not good!", 4.0)], unit="word")
    assert e.scores.tolist() == [0.5, 0.5, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    assert "3 of 3 pieces contain several words, which share the score evenly." in e.notes
    assert scores_of(heedful.read(tiny, TEXT, {"!": 1.0}))["!"] == 1.0


@pytest.mark.parametrize("family", ["bert", "gpt2-classifier", "roberta", "gpt2", "t5"])
@pytest.mark.parametrize("text", [*TEXTS, "Good film 😀, שלום עולם naïve café don’t 好看"])
def test_the_tokenizer_s_own_tokens_are_the_tokens(family, text):
    model = build(family)
    document = model.encode(text)
    names = model.tokenizer.convert_ids_to_tokens(document.ids.tolist())
    values = np.random.default_rng(0).normal(size=len(names))
    assert token_row(document, names, values).tolist() == values.tolist()
    real = document.words >= 0
    assert token_row(document, [n for n, r in zip(names, real, strict=True) if r], values[real])[real].tolist() == (
        values[real].tolist()
    )
    # The same, by the door: a list as transformers-interpret gives it.
    e = heedful.read(model, text, [*zip(names, values.tolist(), strict=True)], unit="token")
    if len(set(names)) < len(names) or not real.all():
        assert e.scores.tolist() == values[real].tolist()
    # Another text of as many tokens is not taken for this one.
    assert token_row(document, names[::-1], values) is None


def test_emoji_and_scripts_from_right_to_left_have_places():
    model = heedful.wrap(lambda texts: [[float(len(text))] for text in texts])
    text = "שלום 👍🏽 עולם, שלום! 好看 naïve cafe\u0301 ﬁne"
    document = model.encode(text)
    places = find_words(document, ["שלום", "👍", "עולם", "naïve", "好看", "fine"])
    assert [len(spots) for spots in places] == [2, 1, 1, 1, 1, 1]
    assert texts_at(document, places)[:3] == [["שלום", "שלום"], ["👍"], ["עולם"]]
    pieces = ["שלום", "👍🏽", "עולם,", "שלום!", "好看", "naïve", "cafe\u0301", "fine"]
    e = heedful.read(model, text, [(piece, float(2**number)) for number, piece in enumerate(pieces)])
    assert e.unit == "word"
    got = [sum(score for start, score in starts(e) if a <= start < b) for ((a, b),) in find_in_order(document, pieces)]
    assert got == pytest.approx([float(2**number) for number in range(8)])
    assert [score for unit, score in zip(e.units, e.scores, strict=True) if unit == "שלום"] == [1.0, 8.0]


def starts(explanation):
    return [
        (start, score) for (start, _), score in zip(explanation.document.word_spans, explanation.scores, strict=True)
    ]


def test_names_are_found_between_boundaries_and_never_inside_words():
    document = heedful.wrap(lambda texts: [[0.0]] * len(texts)).encode("it's a cat's badge, a bad-mannered cat")
    places = texts_at(document, find_words(document, ["a", "bad", "cat", "s", "dge", "BADGE"]))
    assert places == [["a", "a"], ["bad"], ["cat"], ["s", "s"], [], ["badge"]]


def test_scores_beyond_the_text_that_was_read_have_a_note():
    model = build("bert")
    text = "good film " * 40 + "dull"
    e = heedful.read(model, text, {"good": 1.0, "dull": 2.0})
    assert scores_of(e) == pytest.approx({"good": 1.0, "film": 0.0})
    assert e.facts == {"elsewhere": 2.0}
    assert (
        "1 of 2 pieces are outside the text that the model read; the sum of their scores is facts['elsewhere']."
        in e.notes
    )


def test_a_pair_is_read_over_both_texts():
    model = build("bert")
    e = heedful.read(model, PAIR, {"film": 1.0, "dull": 2.0, "plot": 4.0})
    assert scores_of(e) == {"film": 1.0, "dull": 2.0, "plot": 4.0} | dict.fromkeys(
        ["the", "was", "good", ".", "a"], 0.0
    )
    pieces = ["[CLS]", *PAIR.first.split(), "[SEP]", *PAIR.second.split(), "[SEP]"]
    e = heedful.read(model, PAIR, [(piece, float(number)) for number, piece in enumerate(pieces)])
    assert e.scores.tolist() == [1.0, 2, 3, 4, 5, 7, 8, 9]
    assert e.facts == {"[CLS]": 0.0, "[SEP]": 6.0 + 10}
