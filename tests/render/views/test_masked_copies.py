import numpy as np
import pytest

import heedful
from heedful.render.comparison_page import comparison_page
from heedful.render.views.masked_copies import copies_view, rule_view
from tests.render.pages import Page

TEXT = "a dull film , but a bright and moving story"


@pytest.mark.parametrize("method", ["lime", "shapley-sampled", "banzhaf-sampled", "slalom"])
def test_the_samples_are_real(method, paper):
    """Each value is the model's own on the text with the removed words replaced."""
    e = heedful.explain(paper, TEXT, method, target=1)
    assert 2 <= len(e.samples) <= 10
    for sample in e.samples:
        words = [word if kept == "1" else "[unk]" for word, kept in zip(TEXT.split(), sample.kept, strict=True)]
        assert sample.value == pytest.approx(float(paper([" ".join(words)])[0, 1]), abs=1e-5)


def test_the_table_has_the_removed_words_struck_out_and_lime_s_weight(paper):
    e = heedful.explain(paper, TEXT, "lime", n_samples=200, kernel_width=10.0)
    view = copies_view(e)
    for row, sample in zip(view["rows"], e.samples, strict=True):
        gone = [piece.text for piece in row["pieces"] if piece.strength == 0]
        assert gone == [word for word, kept in zip(TEXT.split(), sample.kept, strict=True) if kept == "0"]
        share = sample.kept.count("1") / len(sample.kept)
        assert row["weight"] == pytest.approx(np.exp(-((100 * (1 - share**0.5)) ** 2) / 200))
    page = Page(comparison_page(e))
    assert not page.wrong
    assert page.count("s") == sum(sample.kept.count("0") for sample in e.samples)
    assert copies_view(heedful.explain(paper, TEXT, "leave-one-out")) is None


@pytest.mark.parametrize("text", [TEXT, f"{TEXT} {TEXT}"])
def test_an_anchor_is_a_rule_with_examples_that_keep_it(text, paper):
    e = heedful.explain(paper, text, "anchors", threshold=0.9)
    held = [place for place, score in enumerate(e.scores) if score > 0]
    assert e.samples
    predicted = paper([text])[0].argmax()
    for sample in e.samples:
        assert all(sample.kept[place] == "1" for place in held)
        words = [word if kept == "1" else "[unk]" for word, kept in zip(text.split(), sample.kept, strict=True)]
        assert sample.value == (paper([" ".join(words)])[0].argmax() == predicted)
    rule = rule_view(e)
    assert rule["held"] == [e.units[place] for place in held]
    assert (rule["precision"], rule["coverage"]) == (e.facts["precision"], e.facts["coverage"])
    page = Page(comparison_page(e))
    assert not page.wrong
    assert page.count("meter") == 2
    assert rule_view(heedful.explain(paper, text, "lime", n_samples=100)) is None
