import numpy as np
import pytest
from scipy.stats import spearmanr

from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.metrics import measure
from heedful.metrics.monotonicity import LooCorrelation, Monotonicity
from heedful.perturb.drawn_words import drawn_words
from tests.families import build
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of, masked_text, value

TEXT = "good film was not bad but very dull"
# Rounded, so that there are ties.
SCORES = np.random.default_rng(3).standard_normal(8).round(0)


def one_out(model, text, hole):
    everything = set(range(len(text.split())))
    return np.array([value(model, text) - value(model, masked_text(text, everything - {i}, hole)) for i in everything])


@pytest.mark.parametrize(("absence", "hole"), [("replace", "neverseen"), ("delete", None), ("replace:plot", "plot")])
def test_both_are_spearman_s_correlation_with_what_each_word_does_alone(tiny, absence, hole):
    evaluation, effects = evaluation_of(tiny, TEXT, SCORES), one_out(tiny, TEXT, hole)
    expected = spearmanr(np.abs(SCORES), effects**2).statistic
    assert measure(Monotonicity(absences=absence), evaluation) == pytest.approx(expected, abs=1e-12)
    expected = spearmanr(SCORES, effects).statistic
    assert measure(LooCorrelation(absence=absence), evaluation) == pytest.approx(expected, abs=1e-12)


def test_a_bert_s_masked_words_are_mask_tokens():
    model, text = build("bert"), "the film was not very good"
    scores, effects = [0.3, -1.0, 2.0, 0.1, -0.5, 1.5], one_out(build("bert"), text, "[MASK]")
    assert measure(LooCorrelation(), evaluation_of(model, text, scores)) == pytest.approx(
        spearmanr(scores, effects).statistic
    )


def test_several_replacements_count_by_the_mean_of_their_squares(tiny):
    several = [one_out(tiny, TEXT, hole) ** 2 for hole in ("neverseen", "story", "bright")]
    expected = spearmanr(np.abs(SCORES), sum(several)).statistic
    value = measure(Monotonicity(absences="replace,replace:story,replace:bright"), evaluation_of(tiny, TEXT, SCORES))
    assert value == pytest.approx(expected, abs=1e-12)
    assert value != pytest.approx(measure(Monotonicity(), evaluation_of(tiny, TEXT, SCORES)))


@pytest.mark.parametrize(
    ("loss", "of", "formula"),
    [
        ("absolute", "target", lambda whole, changed: abs(whole - changed)),
        ("cross-entropy", "probability", lambda _, changed: -np.log(changed)),
    ],
)
def test_with_any_loss_and_words_of_the_data_it_is_the_rank_correlation_with_the_expected_loss(
    tiny, tmp_path, loss, of, formula
):
    """Lecture, chapter 10.2: E[ℓ(y*, f_j) | x_{−j}], here over words drawn from texts."""
    data = tmp_path / "texts.txt"
    data.write_text("bright story\nplot ?\n", encoding="utf-8")
    words, everything = drawn_words(str(data), 100, 1)[:5], set(range(8))
    assert len(set(words)) > 2

    def loss_without(place, word):
        return formula(value(tiny, TEXT, of), value(tiny, masked_text(TEXT, everything - {place}, word), of))

    expected_loss = [np.mean([loss_without(place, word) for word in words]) for place in everything]
    scores = np.random.default_rng(4).standard_normal(8)
    evaluation = evaluation_of(tiny, TEXT, scores)
    found = measure(Monotonicity(loss=loss, data=str(data), n_draws=5, seed=1), evaluation)
    assert found == pytest.approx(spearmanr(np.abs(scores), expected_loss).statistic, abs=1e-12)
    assert found != pytest.approx(measure(Monotonicity(), evaluation), abs=1e-3)


def test_only_the_size_counts_for_one_and_the_sign_for_the_other(tiny):
    plain, turned = evaluation_of(tiny, TEXT, SCORES), evaluation_of(tiny, TEXT, -SCORES)
    assert measure(Monotonicity(), turned) == measure(Monotonicity(), plain)
    assert measure(LooCorrelation(), turned) == pytest.approx(-measure(LooCorrelation(), plain))


def test_leave_one_out_itself_is_one_and_by_hand_a_swap_is_not():
    # The weights are 1/2, −7/9, 19/18 and −3: two neighbours changed of four make ρ = 1 − 6·2 / (4·15).
    text = "w0 w1 w2 w9"
    assert measure(Monotonicity(), evaluation_of(linear(), text, [0.5, -7 / 9, 19 / 18, -3])) == pytest.approx(1)
    assert measure(LooCorrelation(), evaluation_of(linear(), text, [0.5, -7 / 9, 19 / 18, -3])) == pytest.approx(1)
    assert measure(Monotonicity(), evaluation_of(linear(), text, [2.0, 1.0, 3.0, 4.0])) == pytest.approx(0.8)
    assert measure(LooCorrelation(), evaluation_of(linear(), text, [2.0, 1.0, 3.0, -4.0])) == pytest.approx(1)
    assert measure(LooCorrelation(), evaluation_of(linear(), text, [3.0, 1.0, 2.0, -4.0])) == pytest.approx(0.8)


@pytest.mark.parametrize("metric", [Monotonicity, LooCorrelation])
def test_where_nothing_can_be_ranked_a_sentence_says_what(metric):
    with pytest.raises(Unsupported, match=f"^{metric.name} is undefined: all scores are equal\\.$"):
        measure(metric(), evaluation_of(linear(), "w0 w1 w2", [1.0, 1.0, 1.0]))
    with pytest.raises(Unsupported, match=f"^{metric.name} is undefined: all scores are equal\\.$"):
        measure(metric(), evaluation_of(linear(), "w0", [1.0]))
    moves = "removing any unit has the same effect"
    with pytest.raises(Unsupported, match=f"^{metric.name} is undefined: {moves}\\.$"):
        measure(metric(), evaluation_of(linear(), "w30 w31 w32", [1.0, 2.0, 3.0]))


def test_methods_without_a_sign_have_the_one_and_not_the_other(tiny):
    unsigned = evaluation_of(tiny, TEXT, np.abs(SCORES), signed=False)
    assert measure(Monotonicity(), unsigned) == measure(Monotonicity(), evaluation_of(tiny, TEXT, SCORES))
    with pytest.raises(Unsupported, match=r"^loo-correlation: this metric needs signed scores"):
        measure(LooCorrelation(), unsigned)


def test_absences_that_do_not_exist_are_refused():
    for absences in ("vanish", "replace,vanish"):
        with pytest.raises(UnknownName, match="^There is no absence 'vanish'"):
            Monotonicity(absences=absences)
    with pytest.raises(UnknownName, match="^There is no absence 'vanish'"):
        LooCorrelation(absence="vanish")
    with pytest.raises(UnknownName, match="^There is no loss 'cubic'"):
        Monotonicity(loss="cubic")
    with pytest.raises(BadInput, match="n_draws ≥ 1"):
        Monotonicity(n_draws=0)
