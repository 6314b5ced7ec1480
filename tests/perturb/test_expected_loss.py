import numpy as np
import pytest

from heedful.errors import BadInput, UnknownName
from heedful.models.question import ask
from heedful.perturb.document_values import DocumentValues
from heedful.perturb.drawn_words import drawn_words
from heedful.perturb.expected_loss import LOSSES, check_loss, mean_loss_of_each, mean_loss_over_words
from tests.families import build
from tests.metrics.masked_text import masked_text, value

TEXT = "good film was not bad but very dull"
BY_HAND = {
    "squared": ("target", lambda whole, changed: (whole - changed) ** 2),
    "absolute": ("target", lambda whole, changed: abs(whole - changed)),
    "cross-entropy": ("probability", lambda _, changed: -np.log(changed)),
    "zero-one": ("probability", lambda whole, changed: float((changed >= 0.5) != (whole >= 0.5))),
}


def by_hand(model, loss, words, text=TEXT):
    of, formula = BY_HAND[loss]
    everything = set(range(len(text.split())))
    whole = value(model, text, of)
    return [
        np.mean([formula(whole, value(model, masked_text(text, everything - {place}, word), of)) for word in words])
        for place in everything
    ]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("a bright story\n\nthe plot , the plot\n", encoding="utf-8")
    return str(path)


def test_there_is_a_formula_by_hand_for_every_loss():
    assert set(BY_HAND) == set(LOSSES)
    with pytest.raises(UnknownName, match="^There is no loss 'cubic'"):
        check_loss("cubic")


@pytest.mark.parametrize("loss", LOSSES)
def test_the_mean_over_replacements_is_that_of_texts_spelt_out(tiny, loss):
    values = DocumentValues(ask(tiny, [TEXT], target=1), "word")
    found = mean_loss_of_each(values, loss, ["replace:plot", "replace:story"])
    assert found == pytest.approx(by_hand(tiny, loss, ["plot", "story"]), abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_mean_over_the_data_is_that_over_its_words(tiny, loss, lines):
    values = DocumentValues(ask(tiny, [TEXT], target=1), "word")
    words = drawn_words(lines, 200, 3)[:7]
    assert mean_loss_over_words(values, loss, lines, 7, 3) == pytest.approx(by_hand(tiny, loss, words), abs=1e-9)


def test_words_that_are_no_single_token_are_drawn_again_and_none_at_all_is_an_error(tmp_path):
    model = build("bert")
    values = DocumentValues(ask(model, ["the film was good"], target=1), "word")
    mixed, never = tmp_path / "mixed.txt", tmp_path / "never.txt"
    mixed.write_text("film unpronounceablyvague\n", encoding="utf-8")
    never.write_text("unpronounceablyvague\n", encoding="utf-8")
    found = mean_loss_over_words(values, "squared", str(mixed), 3, 0)
    assert found == pytest.approx(mean_loss_of_each(values, "squared", ["replace:film"]), rel=1e-6, abs=1e-12)
    with pytest.raises(BadInput, match="Only 0 of 3 words"):
        mean_loss_over_words(values, "squared", str(never), 3, 0)
