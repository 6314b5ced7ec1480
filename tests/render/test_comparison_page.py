import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import heedful
from heedful.render.comparison_page import comparison_page, comparisons_page
from tests.render.pages import Page

NASTY = 'good <script>alert(1)</script> & "film" \' </td> not dull'


@pytest.fixture(scope="module")
def comparison(tiny):
    return heedful.compare(tiny, "good film , not dull !", target="positive", n_samples=200)


def test_the_page_is_self_contained_and_whole(comparison):
    html = comparison_page(comparison)
    page = Page(html)
    assert page.links == page.wrong == []
    assert not re.search(r"https?://|@import|url\(", html)


def test_user_text_is_escaped(tiny):
    page = Page(comparison_page(heedful.compare(tiny, NASTY, n_samples=50)))
    assert page.count("script") == 2
    assert page.wrong == []
    assert "<script>alert(1)</script>" in page.text
    fragment = Page(heedful.explain(tiny, NASTY, "lime", n_samples=50)._repr_html_())
    assert fragment.count("script") == 0
    assert fragment.wrong == []


def test_names_of_models_classes_and_methods_are_escaped(tiny):
    explanation = heedful.explain(tiny, "good film", "attention-mean")
    hostile = replace(
        explanation,
        method=NASTY,
        model=NASTY,
        target=replace(explanation.target, name=NASTY),
        settings={NASTY: NASTY},
        facts={NASTY: 1.0},
    )
    for html in (comparison_page(hostile), hostile._repr_html_()):
        page = Page(html)
        assert page.wrong == []
        assert page.count("script") == (1 if html.startswith("<!doctype") else 0)
        assert page.text.count(" ".join(NASTY.split())) >= 3


def test_every_word_of_every_strip_carries_its_score_and_sign(comparison):
    words = iter(Page(comparison_page(comparison)).words)
    for explanation in comparison.explanations:
        largest = np.abs(explanation.scores).max()
        for unit, score in zip(explanation.units, explanation.scores, strict=True):
            text, attributes = next(words)
            assert text == unit
            assert attributes["class"] == ("w neg" if score < 0 else "w pos")
            assert float(attributes["style"].removeprefix("--s:")) == pytest.approx(abs(score) / largest, abs=5e-4)
            assert attributes["title"].split()[0] == f"{score:+.4g}"


def test_the_table_sorts_on_full_numbers(comparison):
    cells = re.findall(r'class="number" data-v="([^"]+)"', comparison_page(comparison))
    expected = np.array([e.scores for e in comparison.explanations]).T.ravel()
    assert np.array_equal(np.array(cells, dtype=float), expected)


def test_head_maps_hold_the_attention(comparison):
    data = re.search(r'<script type="application/json">(.*?)</script>', comparison_page(comparison), re.DOTALL)
    kept = json.loads(data[1])
    assert kept["queries"] == kept["keys"] == ["[cls]", *["good", "film", ",", "not", "dull", "!"]]
    assert np.allclose(kept["heads"], comparison.maps[0, :, :7, :7], atol=1e-4)


def test_notes_and_skipped_methods_are_shown(tiny):
    html = comparison_page(heedful.compare(tiny, "good", "all"))
    assert "lime-exact, lime-limit, lime, slalom: needs at least 2 words" in html
    assert "Only the first 15 words were read" in comparison_page(
        heedful.compare(tiny, "good film " * 50, n_samples=50)
    )


def test_control_characters_do_not_reach_the_page(tiny):
    html = comparison_page(heedful.explain(tiny, "good \x1b[31m film \u202e story", "attention-mean"))
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "�" in html


LONG = "I don't like it.<br /><br />A <b>dull</b> film , not good .\r\n" * 9


def test_a_long_text_is_shown_by_one_method_and_the_others_are_folded(tiny):
    comparison = heedful.compare(tiny, LONG, ["attention-mean", "random", "leave-one-out"])
    html = comparison_page(comparison)
    page = Page(html)
    assert page.wrong == []
    assert re.findall(r"<option>(.*?)</option>", html) == ["attention-mean", "random", "leave-one-out"]
    before, folded = html.split("<summary>The text by 2 other methods</summary>")
    assert before.count('<td class="strip"') == 1
    assert folded.count('<td class="strip"') == 2
    assert "<details open>" not in html
    fragment = comparison._repr_html_()
    assert fragment.count('<td class="strip"') == 3
    assert Page(fragment).count("script") == 0


def test_a_short_text_is_shown_by_all_methods(comparison):
    html = comparison_page(comparison)
    assert "<option>" not in html
    assert html.count("<details open>") >= 4


def test_titles_have_no_tags_and_whole_words(tiny):
    html = comparison_page(heedful.explain(tiny, LONG, "attention-mean"))
    words = unescape(re.search(r"<h1[^>]*>(.*?)</h1>", html)[1]).split()
    assert words[-1] == "…"
    assert words[:-1] == re.sub("<[^>]*>", " ", LONG).split()[: len(words) - 1]


def test_a_page_of_two_comparisons_has_a_heading_and_the_maps_of_each(comparison, tiny):
    other = heedful.compare(tiny, "a bad plot", ["attention-mean", "random"])
    html = comparisons_page({"One": comparison, "Two <i>": other}, "Both")
    page = Page(html)
    assert page.links == page.wrong == []
    assert re.findall(r"<h([12])[^>]*>(.*?)</h[12]>", html) == [("1", "Both"), ("2", "One"), ("2", "Two &lt;i&gt;")]
    maps = re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert [json.loads(data)["keys"][1] for data in maps] == ["good", "a"]
    assert html.count("The colour is stronger") == 1
    assert not re.search(r"\bid=", html)
    assert html == comparisons_page({"One": comparison, "Two <i>": other}, "Both")


def test_a_cell_has_no_legend_and_its_style_meets_only_heedful(comparison):
    fragment = comparison._repr_html_()
    assert "The colour is stronger" not in fragment
    style = re.sub(r"/\*.*?\*/", "", re.search(r"<style>(.*?)</style>", fragment, re.DOTALL)[1], flags=re.DOTALL)
    style = re.sub(r"@media[^{]*\{", "", style)
    selectors = [part.strip() for rule in re.findall(r"([^{}]+)\{", style) for part in re.split(r",(?![^(]*\))", rule)]
    assert len(selectors) > 30
    assert all(".heedful" in selector for selector in selectors)
