import json
import re
from base64 import b64decode
from time import perf_counter

import numpy as np
import pytest

from heedful.document import Document
from heedful.errors import BadInput
from heedful.models.head_patterns import PATTERNS, heads
from heedful.render import head_gallery as gallery
from heedful.render.head_gallery import BUDGET, gallery_page
from tests.render.pages import Page

NASTY = 'good <script>alert(1)</script> & "film" \' </td> not dull'


def embedded(html):
    return json.loads(re.search(r'id="gallery">(.*?)</script>', html, re.DOTALL)[1])


def numbers(text, kind):
    return np.frombuffer(b64decode(text), dtype=kind)


def plain(n):
    pieces = ("[cls]", *(f"w{index}" for index in range(n - 1)))
    spans = ((0, 0), *((0, 1) for _ in range(n - 1)))
    return Document("w" * n, np.arange(n), pieces, spans, np.arange(n) - 1, np.ones(n, dtype=bool))


def random_maps(n_layers, n_heads, n, seed=0):
    weights = np.random.default_rng(seed).random((n_layers, n_heads, n, n), dtype=np.float32) ** 8
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def scored(tiny):
    document = tiny.encode("good film , not dull !")
    return document, tiny.maps(document), heads(tiny, ["a bad plot .", "the story was very , very good", "good film"])


def test_the_page_is_self_contained(scored):
    html = gallery_page(*scored)
    assert Page(html).links == Page(html).wrong == []
    assert not re.search(r"https?://|@import|url\(", html)


def test_user_text_is_escaped(tiny):
    document = tiny.encode(NASTY)
    html = gallery_page(document, tiny.maps(document), None)
    assert Page(html).count("script") == 2
    assert "<script>alert" not in html
    assert "<script>alert" in embedded(html)["tokens"]


def test_every_weight_is_on_the_page_to_a_255th_of_its_row(scored):
    document, maps, _ = scored
    data, n = embedded(gallery_page(*scored)), len(document.ids)
    own = maps[..., :n]
    expected = np.concatenate([own, own.mean(axis=1, keepdims=True)], axis=1).reshape(-1, n, n)
    peaks = numbers(data["peaks"], "<f4").reshape(-1, n, 1)
    weights = numbers(data["weights"], np.uint8).reshape(-1, n, n) * peaks / 255
    assert peaks[:, :, 0] == pytest.approx(expected.max(axis=2), rel=1e-6)
    assert (np.abs(weights - expected) <= peaks / 509).all()
    assert data["keys"] is None
    assert data["small"] is None


def test_what_does_not_fit_keeps_the_strongest_of_every_row_and_block_means(monkeypatch):
    monkeypatch.setattr(gallery, "BUDGET", 60_000)
    n, maps = 150, random_maps(1, 2, 150)
    html = gallery_page(plain(n), maps, None)
    data = embedded(html)
    kept, side = data["kept"], data["side"]
    whole = np.concatenate([maps[0], maps[0].mean(axis=0, keepdims=True)])
    keys = numbers(data["keys"], "<u2").reshape(3, n, kept)
    assert np.array_equal(np.sort(keys, axis=2), np.sort(np.argsort(whole, axis=2)[:, :, n - kept :], axis=2))
    chosen = np.take_along_axis(whole, keys.astype(int), axis=2)
    peaks = whole.max(axis=2, keepdims=True)
    assert (np.abs(numbers(data["weights"], np.uint8).reshape(3, n, kept) * peaks / 255 - chosen) <= peaks / 509).all()
    block = -(-n // side)
    means = np.array(
        [
            [[m[r : r + block, c : c + block].mean() for c in range(0, n, block)] for r in range(0, n, block)]
            for m in whole
        ]
    )
    expected = 255 * means / means.max(axis=(1, 2), keepdims=True)
    assert np.abs(numbers(data["small"], np.uint8).reshape(3, side, side) - expected).max() <= 0.51
    assert f"the mean over {block} × {block} tokens" in html
    share = chosen.sum() / whole.sum()
    assert f"each row keeps its {kept} largest weights, {share:.0%} of the attention" in html
    assert sum(len(data[name]) for name in ("peaks", "weights", "keys", "small")) <= 60_000


@pytest.mark.slow
def test_a_bert_of_five_hundred_tokens_fits_the_budget_within_seconds():
    maps = random_maps(12, 12, 512)
    start = perf_counter()
    html = gallery_page(plain(512), maps, None)
    assert perf_counter() - start < 20
    data = embedded(html)
    assert sum(len(data[name]) for name in ("peaks", "weights", "keys", "small")) <= BUDGET
    assert len(html) < BUDGET + 500_000
    assert data["kept"] >= 16


def test_every_head_has_a_button_with_its_name_and_a_row_with_its_scores(scored):
    document, maps, result = scored
    html = gallery_page(document, maps, result)
    labels = [
        attributes["aria-label"] for tag, attributes in Page(html).tags if tag == "button" and "data-head" in attributes
    ]
    assert len(labels) == result.scores[..., 0].size
    for label, (layer, head) in zip(labels, np.ndindex(*result.scores.shape[:2]), strict=True):
        assert label.startswith(f"layer {layer}, head {head}: {result.names[layer][head]}")
    cells = re.findall(r'class="number" data-v="([^"]+)"', html)
    assert np.array_equal(np.array(cells, dtype=float), result.scores.ravel())
    assert "Scores are over 3 texts." in html
    assert all(f">{pattern}</button>" in html for pattern in PATTERNS)


def test_without_a_corpus_the_text_itself_names_the_heads(tiny, scored):
    document, maps, _ = scored
    html = gallery_page(document, maps)
    assert embedded(html)["names"] == [name for row in heads(tiny, document.text).names for name in row]
    assert "Scores are over this text alone." in html


def test_the_page_warns_that_attention_is_no_explanation(scored):
    assert "not by itself an explanation" in gallery_page(*scored)


def test_notes_of_the_document_are_shown(tiny):
    document = tiny.encode("good film about zebras")
    assert "unknown to the model: about, zebras" in gallery_page(document, tiny.maps(document))


def test_what_cannot_be_shown_is_refused_in_a_sentence(scored, monkeypatch):
    document, maps, result = scored
    with pytest.raises(BadInput, match="1 rows for"):
        gallery_page(document, maps[:, :, :1], result)
    with pytest.raises(BadInput, match="1 × 2 heads and the scores 1 × 3"):
        gallery_page(document, maps[:, :2], result)
    with pytest.raises(BadInput, match="finite"):
        gallery_page(document, np.full_like(maps, np.nan), result)
    monkeypatch.setattr(gallery, "BUDGET", 100)
    with pytest.raises(BadInput, match="do not fit on a page"):
        gallery_page(document, maps, result)


def test_a_notebook_shows_the_name_of_every_head(scored):
    result = scored[2]
    html = result._repr_html_()
    page = Page(html)
    assert page.wrong == page.links == []
    assert page.count("script") == 0
    assert not re.search(r"\bid=", html)
    names = re.findall(r'<td class="w pos" style="--s:([^"]*)" title="[^"]*">([^<]*)<br>', html)
    assert [name for _, name in names] == [name for row in result.names for name in row]
    shares = np.delete(result.excess, result.patterns.index("broad"), axis=2).max(axis=2)
    assert np.allclose([float(strength) for strength, _ in names], np.maximum(shares, 0).ravel(), atol=5e-4)
