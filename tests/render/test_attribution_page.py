import json
import re
from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.document.note import Note
from heedful.render import write
from heedful.render.attribution_figures import cell_strengths
from heedful.render.attribution_page import attribution_fragment, attribution_page
from tests.families import build
from tests.models.hf.test_chat import chatting
from tests.render.pages import Page

PROMPT, OUTPUT = "the film <b>was</b> good", [40, 12, 7, 20]
PASSAGES = ["the film was dull .", "a bad story"]


@pytest.fixture(scope="module")
def table():
    return heedful.attribute(build("gpt2"), PROMPT, OUTPUT, "leave-one-out")


@pytest.fixture(scope="module")
def answer():
    """An answer to a question with a context, in a chat template."""
    return heedful.attribute(chatting(), "was the film good ?", " bad film", "leave-one-out", context=PASSAGES)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)[1])


def texts_of(page, name):
    """The text of every element with the attribute, by its value."""
    pattern = rf'<span[^>]*{name}="(\d+)"[^>]*>(.*?)</span>'
    return [(int(number), re.sub(r"<[^>]*>", "", text)) for number, text in re.findall(pattern, page, re.DOTALL)]


@pytest.mark.parametrize("name", ["table", "answer"])
def test_the_page_is_whole_and_fetches_nothing(name, request):
    attribution = request.getfixturevalue(name)
    for text in (attribution_page(attribution), attribution_fragment(attribution)):
        page = Page(text)
        assert page.wrong == []
        assert page.links == []
        assert "http" not in text


def test_every_part_can_be_selected_and_every_source_is_there(table):
    page = attribution_page(table)
    parts = [attributes for _, attributes in Page(page).tags if "data-part" in attributes]
    assert [attributes["data-part"] for attributes in parts] == ["0", "1", "2", "3"]
    assert {attributes["role"] for attributes in parts} == {"option"}
    # One of them is reached by the tabulator key, the others by arrow keys.
    assert sorted(attributes["tabindex"] for attributes in parts) == ["-1", "-1", "-1", "0"]
    shown = texts_of(page, "data-source")
    assert [text.replace("&lt;", "<").replace("&gt;", ">") for _, text in shown] == list(table.sources)


def test_the_data_are_the_scores(table):
    data = data_of(attribution_page(table))
    assert np.array(data["scores"]) == pytest.approx(table.scores, rel=1e-3)
    assert data["errors"] == [[None] * len(table.sources)] * 4
    for value, explanation in zip(data["values"], table.explanations, strict=True):
        assert value.startswith(f"log-probability {explanation.output:+.4g}")
        assert float(value.rpartition(" ")[2]) == pytest.approx(np.exp(explanation.output), rel=1e-3)
    strongest = np.unravel_index(np.abs(table.scores).argmax(), table.scores.shape)
    assert data["first"] == strongest[0]


def test_without_a_script_the_heat_map_has_every_cell(table):
    page = attribution_page(table)
    heat = page[page.index('<div class="heat"') :]
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', heat, re.DOTALL)
    cells = [re.findall(r"<td(.*?)></td>", row) for row in rows]
    expected = cell_strengths(table.scores)
    assert np.shape(cells) == expected.shape
    for cell, strength in zip(np.ravel(cells), expected.ravel(), strict=True):
        kind = "" if strength == 0 else "pos" if strength > 0 else "neg"
        assert re.findall(r'class="(\w+)"', cell) == ([kind] if kind else [])
        assert [float(text) for text in re.findall(r"--s:([\d.]+)", cell)] == (
            pytest.approx([abs(strength)], abs=6e-3) if kind else []
        )


def test_passages_are_numbered_paragraphs_and_the_template_is_grey(answer):
    page = attribution_page(answer)
    paragraphs = re.findall(r'<p class="passage"><b>(\d+)</b>(.*?)</p>', page, re.DOTALL)
    assert [(number, re.sub(r"<[^>]*>", "", text)) for number, text in paragraphs] == [
        ("1", PASSAGES[0]),
        ("2", PASSAGES[1]),
    ]
    grey = "".join(re.findall(r'<span class="template">(.*?)</span>', page, re.DOTALL))
    assert "user" in grey
    assert "dull" not in grey
    assert "Grey text is of the chat template" in Page(page).text
    assert texts_of(page, "data-source") == list(enumerate(PASSAGES))


def test_earlier_output_is_tinted_if_it_is_a_source():
    asked = {"prompt": "the film was good", "output": OUTPUT, "method": "leave-one-out"}
    own = heedful.attribute(build("gpt2"), **asked, earlier="source")
    sources = [number for number, _ in texts_of(attribution_page(own), "data-source")]
    assert sorted(sources) == list(range(len(own.sources)))
    fixed = heedful.attribute(build("gpt2"), **asked, earlier="fixed")
    assert len(texts_of(attribution_page(fixed), "data-source")) == 4


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_the_two_sides_of_an_encoder_decoder_are_apart(family):
    own = heedful.attribute(build(family), "the film was good", OUTPUT, "gradient-x-input")
    page = attribution_page(own)
    prompt = page[page.index('<div class="prompt"') :].partition("</div>")[0]
    assert " ".join(re.sub(r"<[^>]*>", "", prompt).split()) == "the film was good"


def test_parts_without_characters_of_their_own_can_be_selected():
    model = build("gpt2")
    ids = model.encode("😀").ids.tolist()
    own = heedful.attribute(model, "the film was good", [*ids, next(iter(model.end_ids))], "leave-one-out")
    page = attribution_page(own)
    parts = [attributes for _, attributes in Page(page).tags if "data-part" in attributes]
    assert len(parts) == len(ids) + 1
    assert Page(page).text.count("😀") >= 1


def test_marked_parts_have_captions_and_the_first_is_selected(table):
    page = attribution_page(table, {2: "KL 1.3", 3: "KL 0.9"}, "Underlined: depends on the context.")
    marked = [a for _, a in Page(page).tags if a.get("class") == "marked"]
    assert [(a["data-part"], a["title"]) for a in marked] == [("2", "KL 1.3"), ("3", "KL 0.9")]
    assert data_of(page)["captions"] == ["", "", "KL 1.3", "KL 0.9"]
    assert data_of(page)["first"] == 2
    assert "Underlined: depends on the context." in Page(page).text


def test_several_fragments_in_one_notebook_do_not_clash(table):
    """Nothing in a fragment has an id, and its script looks only inside of the elements that are not ready."""
    page = attribution_fragment(table)
    assert not [attributes for _, attributes in Page(page).tags if "id" in attributes]
    script = page[page.index("<script>") :].partition("</script>")[0]
    assert re.search(r"<script>\s*\{", script)
    assert ":not([data-ready])" in script
    assert "getElementById" not in script
    assert table._repr_html_() == page


def test_notes_the_method_and_the_cost_are_in_words(table):
    noted = replace(table, notes=(Note("A space was put between."),))
    text = Page(attribution_page(noted)).text
    assert "A space was put between." in text
    assert "A score is the drop of the log-probability of the part when the source is removed." in text
    assert "masked copies of the text were evaluated" in text
    assert "seconds" not in text


def test_the_same_table_is_the_same_page(table, tmp_path):
    write(table, tmp_path / "a.html")
    table.save(tmp_path / "b.html")
    again = heedful.attribute(build("gpt2"), PROMPT, OUTPUT, "leave-one-out")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == attribution_page(again)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_large_table_is_a_small_page(table):
    """200 parts and 500 sources: cells without colour are a few bytes each."""
    rng = np.random.default_rng(0)
    scores = rng.exponential(size=(200, 500)) ** 4
    cells = cell_strengths(scores)
    assert (cells == 0).mean() > 0.5
    assert np.abs(cells).max() == 1.0
