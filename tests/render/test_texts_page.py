import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from heedful.errors import BadInput
from heedful.explanations import Explanations
from heedful.explanations.refusal import Refusal
from heedful.render import write
from heedful.render.texts_page import texts_fragment, texts_page
from tests.explanations.many import TEXTS, explained

NASTY = '</script><img src=x onerror=alert(1)>"&\ud800\x00 film'


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_every_text_is_there_with_its_colours():
    explanations = explained()
    data = data_of(texts_page(explanations))
    assert ["".join(part for part, _ in text[4]) for text in data["texts"]] == [*TEXTS, "superb"]
    for text, item in zip(data["texts"], explanations[:-1], strict=False):
        largest = max(abs(item.scores))
        assert text[5] == pytest.approx(largest, rel=1e-3)
        bold = [(word, colour) for word, colour in text[4] if abs(colour) == 100]
        assert bold == [(item.top(1)[0][0], 100 if item.top(1)[0][1] > 0 else -100)]
    assert [text[3] for text in data["texts"]] == ["wrong"] * 5 + ["right", "wrong", "refused"]
    assert [text[0].split(":")[0] for text in data["mistakes"]] == [*explanations.errors().ids]


def test_nothing_of_a_text_becomes_markup_and_nothing_is_fetched():
    one, model_text = explained()[0], explained()[0].document
    document = replace(model_text, text=NASTY, spans=((0, 0), *((n, n + 1) for n in range(len(one.units)))))
    target = replace(one.target, name=NASTY)
    hostile = (replace(one, document=document, target=target), Refusal(NASTY, NASTY, "lime"))
    page = texts_page(Explanations(hostile, (NASTY, "b"), (NASTY, "y"), (0, None), (1, None), 2, (None, None)))
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append((tag, dict(attributes)))
    parser.feed(page)
    assert "img" not in {tag for tag, _ in tags}
    assert not any({"src", "href", "onerror"} & attributes.keys() for _, attributes in tags)
    assert "http" not in page
    page.encode("utf-8")


def test_the_fragment_has_words_and_no_script():
    fragment = texts_fragment(explained())
    assert explained()._repr_html_() == fragment
    assert "<script" not in fragment
    assert "Strongest words for neutral" in fragment
    assert len(fragment) < 20_000


def test_the_page_is_saved_alone_and_in_the_folder(tmp_path):
    explained().save(tmp_path / "a.html")
    write(explained(), tmp_path / "b.html")
    explained().save(tmp_path / "folder")
    pages = {(tmp_path / name).read_bytes() for name in ("a.html", "b.html", "folder/page.html")}
    assert len(pages) == 1
    with pytest.raises(BadInput, match="to a folder or to .html"):
        explained().save(tmp_path / "a.json")
    with pytest.raises(BadInput, match="must end in .html"):
        write(explained(), tmp_path / "a.json")


def test_no_texts_and_only_refusals_have_a_page():
    assert data_of(texts_page(explained()[:0]))["texts"] == []
    assert "0 of 0" not in texts_page(explained()[7:])
