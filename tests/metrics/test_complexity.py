from math import ceil

import numpy as np
import pytest

from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.metrics import measure
from heedful.metrics.complexity import EffectiveComplexity
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of, masked_text, value

TEXT = "good film was not bad but very dull and a bright story ?"
PERCENT = [1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]


@pytest.mark.parametrize(("absence", "hole"), [("replace", "neverseen"), ("delete", None)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_the_smallest_share_from_which_on_the_output_stays_near(tiny, absence, hole, epsilon, seed):
    scores = np.random.default_rng(seed).standard_normal(13)
    order = sorted(range(13), key=lambda place: -abs(scores[place]))

    def f(keep):
        return value(tiny, masked_text(TEXT, keep, hole))

    whole = f(set(range(13)))
    # The whole text is near itself, whatever rounding says.
    allowed = epsilon * abs(whole - f(set())) + 1e-9
    counts = sorted({max(1, ceil(percent * 13 / 100)) for percent in PERCENT})
    near = {count: abs(whole - f(set(order[:count]))) <= allowed for count in counts}
    expected = next(count for count in counts if all(near[more] for more in counts if more >= count)) / 13
    assert measure(EffectiveComplexity(absence=absence, epsilon=epsilon), evaluation_of(tiny, TEXT, scores)) == expected


def test_by_hand_two_of_ten_words_are_enough():
    text, scores = " ".join(["w9", "w8", *(f"w{number}" for number in range(20, 28))]), np.zeros(10)
    scores[:2] = -3, 49 / 18
    assert measure(EffectiveComplexity(), evaluation_of(linear(), text, scores)) == 0.2
    # Without a sign they are still the strongest.
    assert measure(EffectiveComplexity(), evaluation_of(linear(), text, np.abs(scores), signed=False)) == 0.2
    # The weaker of them comes last: all are needed.
    scores[1] = 1e-9
    scores[2:] = 1
    assert measure(EffectiveComplexity(), evaluation_of(linear(), text, scores)) == 1


def test_an_output_that_is_close_only_by_coincidence_does_not_count():
    # f(x) is 1/2 − 3 + 49/18 = 2/9; with the first word alone it is 1/2, with two of them −5/2.
    evaluation = evaluation_of(linear(), "w0 w9 w8", [3.0, -2.0, 1.0])
    assert abs(1 / 2 - 2 / 9) < 1.5 * 2 / 9 < abs(-5 / 2 - 2 / 9)
    assert measure(EffectiveComplexity(epsilon=1.5), evaluation) == 1


def test_a_text_of_one_word_needs_it(tiny):
    assert measure(EffectiveComplexity(), evaluation_of(tiny, "dull", [1.0])) == 1


def test_a_text_that_moves_nothing_has_none():
    with pytest.raises(
        Unsupported, match=r"^effective-complexity is undefined: removing the whole text does not change"
    ):
        measure(EffectiveComplexity(), evaluation_of(linear(), "w30 w31", [1.0, 2.0]))


def test_settings_that_cannot_be_are_refused_in_a_sentence():
    with pytest.raises(BadInput, match=r"^epsilon is -0\.1; it must be 0 or larger\.$"):
        EffectiveComplexity(epsilon=-0.1)
    with pytest.raises(UnknownName, match="^There is no absence 'vanish'"):
        EffectiveComplexity(absence="vanish")
