import json
import re
from pathlib import Path

import pytest

import heedful
from heedful.features.reading.raised import Output
from heedful.render.features import described as module
from heedful.render.features.described import features_page
from tests.features.reading.planted import planted_dictionary, planted_model, random_texts
from tests.render.pages import Page

NASTY = "</script><img src=x onerror=alert(1)>\" ' & <!-- "


@pytest.fixture(scope="module")
def dictionary():
    return planted_dictionary(planted_model(), [{" good": 2.0}, {" good": 1.0, " bad": 3.0}, {" plot": 1.0}])


@pytest.fixture(scope="module")
def descriptions(dictionary):
    return heedful.features.describe(dictionary, random_texts(60))


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_every_number_and_text_is_in_the_data(descriptions):
    data = data_of(features_page(descriptions))
    for row, own in zip(data["features"], descriptions, strict=True):
        assert (row["feature"], row["label"], row["n_tokens"]) == (own.feature, own.label, own.n_tokens)
        assert row["auroc"] == pytest.approx(own.rule.auroc.value, rel=1e-3)
        assert row["histogram"] == own.histogram.tolist()
        assert [number for number, _ in row["near"]] == [number for number, _ in own.neighbours]
        for (text, start, n, peak, quantile, active), excerpt in zip(row["excerpts"], own.excerpts, strict=True):
            assert data["texts"][str(text)]["tokens"][start : start + n] == list(excerpt.tokens)
            assert (peak, quantile) == (excerpt.peak, excerpt.quantile)
            levels = dict(zip(active[::2], active[1::2], strict=True))
            shares = 100 * excerpt.activations / own.largest
            assert levels == {place: pytest.approx(share, abs=0.5) for place, share in enumerate(shares) if share > 0}


def test_nothing_of_a_text_becomes_markup_and_nothing_is_fetched(dictionary):
    texts = [f"{text} {NASTY} good" for text in random_texts(30)]
    described = heedful.features.describe(dictionary, [f"{text} \u202e\x1b" for text in texts])
    object.__setattr__(described.items[0], "raised", (Output(NASTY, 1.0),))
    object.__setattr__(described, "data", NASTY)
    html = features_page(described)
    page = Page(html)
    assert page.wrong == page.links == []
    assert "img" not in {tag for tag, _ in page.tags}
    assert not any({"src", "onerror"} & attributes.keys() for _, attributes in page.tags)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", html)
    assert not set(html) & set("\u202e\x1b")
    assert "".join(data_of(html)["texts"]["0"]["tokens"]).count("onerror=alert(1)") <= 1
    html.encode("utf-8")


def test_the_script_writes_text_and_never_markup():
    script = Path(module.__file__).parents[1] / "templates" / "features.js"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script.read_text("utf-8"))


def test_a_page_beyond_the_budget_has_fewer_windows_and_says_so(descriptions, monkeypatch):
    whole = features_page(descriptions)
    assert "only the first" not in whole
    monkeypatch.setattr(module, "BUDGET", 6_000)
    page = features_page(descriptions)
    n = max(len(row["excerpts"]) for row in data_of(page)["features"])
    assert n < 10
    assert f"only the first {n} windows of each feature" in page
    assert len(page) < len(whole)


def test_a_search_without_results_still_has_a_page(descriptions):
    assert data_of(features_page(descriptions.search("nothing like that"))) == {"features": [], "texts": {}}
