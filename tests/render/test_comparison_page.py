import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import heedful
from heedful.render.comparison_page import page

NASTY = 'good <script>alert(1)</script> & "film" \' </td> not dull'


class Reader(HTMLParser):
    """Collects tags, attributes and text; complains of nothing, like a browser."""

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.words = [], [], []
        self.word = None

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found))
        self.links += [found[name] for name in ("src", "href", "action") if name in found]
        if tag == "bdi" and "w" in (found.get("class") or "").split():
            self.word = found

    def handle_data(self, data):
        if self.word is not None:
            self.words.append((data, self.word))
            self.word = None


@pytest.fixture(scope="module")
def comparison(tiny):
    return heedful.compare(tiny, "good film , not dull !", target="positive", n_samples=200)


def read(html):
    reader = Reader()
    reader.feed(html)
    return reader


def test_the_page_is_self_contained(comparison):
    html = page(comparison)
    assert read(html).links == []
    assert not re.search(r"https?://|@import|url\(", html)


def test_user_text_is_escaped(tiny):
    html = page(heedful.compare(tiny, NASTY, n_samples=50))
    scripts = [found for tag, found in read(html).tags if tag == "script"]
    assert len(scripts) == 2
    assert "<script>alert" not in html
    fragment = heedful.explain(tiny, NASTY, "lime", n_samples=50)._repr_html_()
    assert not [tag for tag, _ in read(fragment).tags if tag == "script"]


def test_every_word_of_every_strip_carries_its_score_and_sign(comparison):
    words = iter(read(page(comparison)).words)
    for explanation in comparison.explanations:
        largest = np.abs(explanation.scores).max()
        for unit, score in zip(explanation.units, explanation.scores, strict=True):
            text, found = next(words)
            assert text == unit
            assert found["class"] == ("w neg" if score < 0 else "w pos")
            assert float(found["style"].removeprefix("--s:")) == pytest.approx(abs(score) / largest, abs=5e-4)
            assert found["title"].split()[0] == f"{score:+.4g}"


def test_the_table_sorts_on_full_numbers(comparison):
    cells = re.findall(r'class=number data-v="([^"]+)"', page(comparison))
    expected = np.array([e.scores for e in comparison.explanations]).T.ravel()
    assert np.array_equal(np.array(cells, dtype=float), expected)


def test_head_maps_hold_the_attention(comparison):
    data = re.search(r'id="attention">(.*?)</script>', page(comparison), re.DOTALL)
    kept = json.loads(data[1])
    assert kept["looking"] == kept["seen"] == ["[cls]", *["good", "film", ",", "not", "dull", "!"]]
    assert np.allclose(kept["heads"], comparison.maps[0, :, :7, :7], atol=1e-4)


def test_notes_and_skipped_methods_are_shown(tiny):
    html = page(heedful.compare(tiny, "good"))
    assert "Lime needs at least 2 words" in html
    assert "Only the first 15 words were read" in page(heedful.compare(tiny, "good film " * 50, n_samples=50))


def test_control_characters_do_not_reach_the_page(tiny):
    html = page(heedful.explain(tiny, "good \x1b[31m film \u202e story", "attention-mean"))
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "�" in html
