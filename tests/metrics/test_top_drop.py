import numpy as np
import pytest

from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.family import build
from heedful.metrics import measure
from heedful.metrics.top_drop import TopDrop
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of, masked_text, value

TEXT = "good film was not bad but very dull"
SCORES = [0.3, -1.2, 0.05, 2.0, -0.4, 0.9, -0.7, -0.01]
ORDER = [3, 5, 0, 2, 7, 4, 6, 1]


@pytest.mark.parametrize(("absence", "hole"), [("replace", "neverseen"), ("delete", None)])
def test_it_is_the_drop_without_the_highest(tiny, absence, hole):
    evaluation = evaluation_of(tiny, TEXT, SCORES)
    whole = value(tiny, TEXT)
    drops = {n: whole - value(tiny, masked_text(TEXT, ORDER[n:][::-1], hole)) for n in (1, 2, 3, 5)}
    for n in drops:
        assert measure(TopDrop(absence=absence, n_top=n), evaluation) == pytest.approx(drops[n], abs=1e-12)
    expected = (drops[1] + drops[3] + drops[5]) / 3
    assert measure(TopDrop(absence=absence), evaluation) == pytest.approx(expected, abs=1e-12)


def test_on_a_sum_of_words_it_is_the_sum_of_their_weights():
    evaluation = evaluation_of(linear(), "w9 w20 w1 w0", [-3.0, 0.0, -7 / 9, 0.5])
    assert measure(TopDrop(n_top=1), evaluation) == pytest.approx(0.5)
    # Of four words a fifth cannot go.
    assert measure(TopDrop(), evaluation) == pytest.approx((0.5 + (0.5 - 7 / 9) + (0.5 - 7 / 9 - 3)) / 3)


def test_settings_are_read_from_words_and_refused_in_a_sentence(tiny):
    assert build(TopDrop, "top-drop", {"n_top": "1,3,5"}) == TopDrop()
    assert build(TopDrop, "top-drop", {"n_top": "2"}) == TopDrop(n_top=2)
    with pytest.raises(BadInput, match=r"^top-drop needs n_top ≥ 1; 0 was given\.$"):
        TopDrop(n_top=0)
    with pytest.raises(BadInput, match=r"^n_top must be a whole number or 1,3,5; 'many' was given\.$"):
        build(TopDrop, "top-drop", {"n_top": "many"})
    with pytest.raises(UnknownName, match="^There is no absence 'vanish'"):
        TopDrop(absence="vanish")
    with pytest.raises(Unsupported, match=r"^top-drop: this metric needs signed scores"):
        measure(TopDrop(), evaluation_of(tiny, TEXT, np.abs(SCORES), signed=False))
