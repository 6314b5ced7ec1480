import numpy as np
import pytest

from heedful.document import UNITS
from heedful.document.units import plural, sum_to, unit_maps, unit_scores
from tests.families import build, texts_for


def test_parts_are_summed_and_special_tokens_left_out():
    assert sum_to(np.array([-1, 0, 1, 0]), 3, np.array([9.0, 1.0, 2.0, 3.0])).tolist() == [4.0, 2.0, 0.0]


def test_what_words_special_tokens_and_padding_receive_is_everything(tiny):
    document = tiny.encode("good film good")
    scores = np.random.default_rng(0).random(16)
    words, apart = unit_scores(document, "type", scores)
    assert words.tolist() == [scores[1] + scores[3], scores[2]]
    assert apart == {"[cls]": scores[0], "padding": scores[4:].sum()}


@pytest.mark.parametrize("unit", ["token", "word", "type", "sentence"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_maps_between_units_sum_to_and_average_from_and_their_rows_still_sum_to_one(family, unit):
    model = build(family)
    document = model.encode(texts_for(family)[1])
    maps = model.maps(document)
    looking, seen, between = unit_maps(document, unit, maps)
    assert between.shape == (*maps.shape[:2], len(looking), len(seen))
    assert np.allclose(between.sum(axis=-1), 1)
    segments = np.zeros_like(document.ids) if document.segments is None else document.segments
    cross = family == "bart"
    sides = [np.flatnonzero(segments == (1 if cross else 0)), np.flatnonzero(segments == 0)]
    unit_of = document.unit_of(unit)
    names = [[("token", t) if unit_of[t] < 0 else ("unit", int(unit_of[t])) for t in side.tolist()] for side in sides]
    order = [list(dict.fromkeys(name)) for name in names]
    for i, row in enumerate(order[0]):
        for j, column in enumerate(order[1]):
            cells = [
                [maps[0, 1, s, t] for t, other in enumerate(names[1]) if other == column]
                for s, one in enumerate(names[0])
                if one == row
            ]
            assert between[0, 1, i, j] == pytest.approx(np.mean([sum(cell) for cell in cells]))


def test_units_have_their_plural():
    assert [plural(unit) for unit in UNITS] == [
        "tokens",
        "words",
        "types",
        "segments",
        "sentences",
        "passages",
        "patches",
    ]
