import numpy as np
import pytest

from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.metrics import measure
from heedful.metrics.complexity import EffectiveComplexity
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of, masked_text, sets_of, value

TEXT = "good film was not bad but very dull and a bright story ?"
N = len(TEXT.split())


def losses(model, scores, hole, loss, of="target"):
    """The loss for k = 0, 1, … d, the text spelt out with only its k strongest words."""
    order = sorted(range(N), key=lambda place: -abs(scores[place]))
    values = [value(model, masked_text(TEXT, set(order[:k]), hole), of) for k in range(N + 1)]
    return [loss(values[N], kept) for kept in values]


@pytest.mark.parametrize(("absence", "hole"), [("replace", "neverseen"), ("delete", None)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_the_smallest_number_of_strongest_words_whose_loss_is_within_the_bound(
    tiny, absence, hole, epsilon, seed
):
    """Lecture, chapter 10.2: the least k in [d] such that the loss with only the top k kept is at most ε."""
    scores = np.random.default_rng(seed).standard_normal(N)
    empty, *each = losses(tiny, scores, hole, lambda whole, kept: abs(whole - kept))
    # With all words the loss is zero, whatever rounding says.
    within = [k for k, loss in enumerate(each, start=1) if loss <= epsilon * empty or k == N]
    lasting = min(k for k in within if set(range(k, N + 1)) <= set(within))
    settings = {"absence": absence, "epsilon": epsilon}
    evaluation = evaluation_of(tiny, TEXT, scores)
    assert measure(EffectiveComplexity(**settings), evaluation) == min(within)
    assert measure(EffectiveComplexity(**settings, rule="lasting"), evaluation) == lasting
    assert measure(EffectiveComplexity(**settings, count="share"), evaluation) == min(within) / N


@pytest.mark.parametrize(
    ("name", "of", "loss"),
    [
        ("squared", "target", lambda whole, kept: (whole - kept) ** 2),
        ("cross-entropy", "probability", lambda whole, kept: -np.log(kept)),
        ("zero-one", "probability", lambda whole, kept: float((kept >= 0.5) != (whole >= 0.5))),
    ],
)
def test_any_loss_may_be_bounded_by_a_number(tiny, name, of, loss):
    scores = np.random.default_rng(5).standard_normal(N)
    _, *each = losses(tiny, scores, "neverseen", loss, of)
    for epsilon in (sorted(each)[2] + 1e-6, sorted(each)[6] + 1e-6):
        expected = next(k for k, own in enumerate(each, start=1) if own <= epsilon)
        metric = EffectiveComplexity(loss=name, bound="absolute", epsilon=epsilon)
        assert measure(metric, evaluation_of(tiny, TEXT, scores)) == expected


def test_a_bound_that_no_number_of_words_keeps_has_no_value(tiny):
    metric = EffectiveComplexity(loss="cross-entropy", bound="absolute", epsilon=1e-9)
    with pytest.raises(Unsupported, match="no number of units has a loss of at most epsilon, 1e-09"):
        measure(metric, evaluation_of(tiny, TEXT, np.arange(N)))


def test_by_hand_two_of_ten_words_are_enough():
    text, scores = " ".join(["w9", "w8", *(f"w{number}" for number in range(20, 28))]), np.zeros(10)
    scores[:2] = -3, 49 / 18
    assert measure(EffectiveComplexity(), evaluation_of(linear(), text, scores)) == 2
    # Without a sign they are still the strongest.
    assert measure(EffectiveComplexity(), evaluation_of(linear(), text, np.abs(scores), signed=False)) == 2
    # The weaker of them comes last: all are needed.
    scores[1] = 1e-9
    scores[2:] = 1
    assert measure(EffectiveComplexity(), evaluation_of(linear(), text, scores)) == 10


def test_an_output_that_comes_near_by_chance_and_leaves_again_counts_in_the_source_and_not_in_the_lasting_rule():
    # f(x) is 1/2 − 3 + 49/18 = 2/9; with the first word alone it is 1/2, with two of them −5/2.
    evaluation = evaluation_of(linear(), "w0 w9 w8", [3.0, -2.0, 1.0])
    assert abs(1 / 2 - 2 / 9) < 1.5 * 2 / 9 < abs(-5 / 2 - 2 / 9)
    assert measure(EffectiveComplexity(epsilon=1.5), evaluation) == 1
    assert measure(EffectiveComplexity(epsilon=1.5, rule="lasting"), evaluation) == 3


def test_no_more_masks_are_evaluated_than_twice_the_answer():
    """Long texts are answered by their first words."""
    text = " ".join(["w9", *(f"w{number}" for number in range(10, 60))])
    evaluation = evaluation_of(linear(), text, np.arange(51)[::-1])
    assert measure(EffectiveComplexity(), evaluation) == 1
    assert len(sets_of(evaluation, "replace")) <= 9


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
    with pytest.raises(UnknownName, match="^There is no loss 'cubic'"):
        EffectiveComplexity(loss="cubic")
