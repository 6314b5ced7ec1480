from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.document import SPECIAL, Document, Pair, Picture
from heedful.document.rationale import Box, marked_units
from heedful.errors import BadInput
from tests.families import build

TEXT = "Not bad, not bad at all!"


def cut(text, pieces, words):
    """A document of the given pieces, found in the text one after another, with a special token before them."""
    spans, start = [(0, 0)], 0
    for piece in pieces:
        start = text.index(piece, start)
        spans.append((start, start + len(piece)))
        start += len(piece)
    return Document(
        text=text,
        ids=np.arange(len(spans)),
        pieces=("[cls]", *(piece.lower() for piece in pieces)),
        spans=tuple(spans),
        words=np.array([SPECIAL, *words]),
        known=np.ones(len(spans), dtype=bool),
    )


DOCUMENT = cut(TEXT, ["Not", "ba", "d", ",", "not", "ba", "d", "at", "all", "!"], [0, 1, 1, 2, 3, 4, 4, 5, 6, 7])


def picture(rows, columns, n_special=1):
    n_tokens = n_special + rows * columns
    rgb = np.zeros((8 * rows, 8 * columns, 3), dtype=np.uint8)
    rgb[:, 4 * columns :] = 255
    return Document(
        text="picture",
        ids=np.arange(n_tokens),
        pieces=("",) * n_tokens,
        spans=((0, 0),) * n_tokens,
        words=np.maximum(np.arange(n_tokens) - n_special, SPECIAL),
        known=np.ones(n_tokens, dtype=bool),
        picture=Picture(rgb, np.zeros((3, 8 * rows, 8 * columns), dtype=np.float32), (rows, columns)),
    )


def named(unit, *spans):
    units = DOCUMENT.units(unit)
    return [units[index] for index in np.flatnonzero(marked_units(DOCUMENT, unit, spans))]


def test_a_span_marks_its_words():
    assert named("word", (0, 7)) == ["Not", "bad"]
    assert named("word", (0, 3), (17, 19)) == ["Not", "at"]


def test_a_span_that_cuts_a_word_marks_all_of_it_but_only_its_own_tokens():
    assert named("word", (6, 8)) == ["bad", ","]
    assert named("token", (6, 8)) == ["d", ","]


def test_a_span_between_two_words_marks_neither_neighbour():
    assert named("word", (7, 8)) == [","]


def test_coarser_units_are_marked_by_any_of_their_parts():
    assert named("type", (13, 16)) == ["bad"]
    assert named("segment", (9, 12)) == ["not bad at all!"]
    assert named("sentence", (9, 12)) == [TEXT]


@given(st.lists(st.tuples(st.integers(0, len(TEXT)), st.integers(0, len(TEXT))), min_size=1, max_size=4))
def test_words_are_marked_as_a_walk_over_characters_says(pairs):
    spans = tuple((min(pair), max(pair)) for pair in pairs)
    characters = {place for start, end in spans for place in range(start, end)}
    truth = [not characters.isdisjoint(range(start, end)) for start, end in DOCUMENT.word_spans]
    if all(TEXT[start:end].strip() for start, end in spans):
        assert marked_units(DOCUMENT, "word", spans).tolist() == truth
    else:
        with pytest.raises(BadInput):
            marked_units(DOCUMENT, "word", spans)


@pytest.mark.parametrize(
    ("spans", "sentence"),
    [
        (((0, 99),), r"The span \(0, 99\) does not fit a text of 24 characters"),
        (((-3, 2),), r"The span \(-3, 2\) does not fit"),
        (((5, 2),), r"The span \(5, 2\) does not fit"),
        (((5, 5),), r"The span \(5, 5\) does not fit"),
        (((0, 3), (8, 9)), r"The span \(8, 9\) contains only white space"),
        ((), "The rationale has no spans"),
        (Box(0, 0, 1, 1, 2, 2), "A text is marked by spans and an image by a Box; Box"),
    ],
)
def test_spans_that_do_not_fit_the_text_are_one_sentence(spans, sentence):
    with pytest.raises(BadInput, match=sentence):
        marked_units(DOCUMENT, "word", spans)


def test_marks_in_what_was_cut_off_are_left_out_and_nothing_left_is_one_sentence():
    document = cut(TEXT, ["Not", "bad"], [0, 1])
    assert marked_units(document, "word", ((4, 7), (17, 23))).tolist() == [False, True]
    with pytest.raises(
        BadInput, match="reads 7 of the text's 24 characters, and the first of the 1 marked spans begins at 17"
    ):
        marked_units(document, "word", ((17, 23),))


def test_characters_that_the_model_does_not_read_are_not_marked():
    document = cut(TEXT, ["Not", "bad", "not"], [0, 1, 2])
    assert marked_units(document, "word", ((4, 8),)).tolist() == [False, True, False]
    with pytest.raises(BadInput, match="The model reads no character of the 1 marked spans"):
        marked_units(document, "word", ((7, 8),))


def test_a_real_model_that_cuts_a_text_keeps_the_marks_it_reads(tiny):
    text = "the film was good . " * 10
    marked = marked_units(tiny.encode(text), "word", ((13, 17), (113, 117)))
    assert np.flatnonzero(marked).tolist() == [3]
    with pytest.raises(BadInput, match="nothing is marked"):
        marked_units(tiny.encode(text), "word", ((113, 117),))


def test_a_pair_is_marked_across_both_texts():
    document = build("bert").encode(Pair("a good film", "a bad film"))
    marked = marked_units(document, "word", ((2, 6), (14, 17)))
    assert [document.units("word")[index] for index in np.flatnonzero(marked)] == ["good", "bad"]


def test_a_real_picture_is_marked_whatever_its_size():
    document = build("deit").encode(np.zeros((64, 32, 3), dtype=np.uint8))
    marked = marked_units(document, "patch", Box(0, 32, 16, 64, 32, 64)).reshape(4, 4)
    assert np.argwhere(marked).tolist() == [[2, 0], [2, 1], [3, 0], [3, 1]]


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_patches_are_marked_as_a_walk_over_their_centres_says(rows, columns, data):
    width, height = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 70))
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    right, bottom = data.draw(st.integers(left + 1, width)), data.draw(st.integers(top + 1, height))
    box = Box(left, top, right, bottom, width, height)
    half = Fraction(1, 2)
    truth = [
        left <= (column + half) / columns * width < right and top <= (row + half) / rows * height < bottom
        for row in range(rows)
        for column in range(columns)
    ]
    if any(truth):
        assert marked_units(picture(rows, columns), "patch", box).tolist() == truth
    else:
        with pytest.raises(BadInput, match=f"No patch of the {rows}×{columns} has its centre in Box"):
            marked_units(picture(rows, columns), "patch", box)


def test_regions_of_a_picture_are_marked_by_any_of_their_patches():
    document = picture(4, 4)
    marked = marked_units(document, "segment", Box(0, 0, 20, 64, 64, 64))
    holder = document.coarsening("patch", "segment")
    patches = marked_units(document, "patch", Box(0, 0, 20, 64, 64, 64))
    assert np.flatnonzero(marked).tolist() == sorted(set(holder[patches].tolist()))
    assert 0 < marked.sum() < len(marked)


@pytest.mark.parametrize(
    "box", [Box(3, 0, 2, 5, 9, 9), Box(0, 0, 10, 5, 9, 9), Box(-1, 0, 3, 3, 9, 9), Box(0, 4, 3, 4, 9, 9)]
)
def test_a_box_that_does_not_fit_its_picture_is_one_sentence(box):
    with pytest.raises(BadInput, match="does not fit its own image"):
        marked_units(picture(2, 2), "patch", box)


def test_spans_do_not_mark_a_picture():
    with pytest.raises(BadInput, match="an image by a Box"):
        marked_units(picture(2, 2), "patch", ((0, 3),))
