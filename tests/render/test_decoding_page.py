import numpy as np
import pytest

import heedful
from heedful.render.decoding_page import generation_cell, generation_page
from tests.families import build
from tests.render.pages import Page

PROMPT = "the film <b>was</b> good\nand bright"


@pytest.fixture(scope="module", params=["nucleus", "beam"])
def generation(request):
    return heedful.generate(build("gpt2"), PROMPT, request.param, context="a <i> story", max_new=9)


def test_the_page_is_whole_and_fetches_nothing(generation):
    page = Page(generation_page(generation))
    assert page.wrong == []
    assert page.links == []
    assert "the film <b>was</b> good" in page.text
    assert len([tag for tag, _ in page.tags if tag == "figure"]) == len(generation.steps)


def test_every_token_leads_to_its_step_and_shows_its_probability(generation):
    page = Page(generation_page(generation))
    links = [attributes for tag, attributes in page.tags if tag == "a"]
    assert [link["href"] for link in links] == [f"#step-{n}" for n in range(1, len(generation.steps) + 1)]
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert {link["href"][1:] for link in links} <= ids
    for link, p in zip(links, np.exp(generation.log_probabilities), strict=True):
        assert link["title"].endswith(f"{p:.3f}")
        assert np.isclose(float(link["style"].removeprefix("--s:")), 1 - p, atol=6e-4)


def test_a_beam_search_has_its_tree(generation):
    assert ("The beam tree" in Page(generation_page(generation)).text) == (generation.strategy == "beam")


@pytest.mark.slow
def test_a_cell_has_the_first_steps_alone(generation):
    cell = Page(generation_cell(generation))
    assert cell.wrong == []
    assert f"The first 8 of {len(generation.steps)} steps." in cell.text
    assert generation._repr_html_() == generation_cell(generation)


def test_notes_and_demanded_tokens_are_said(monkeypatch):
    model = build("bart")
    monkeypatch.setattr(model, "first_id", 7)
    monkeypatch.setattr(model, "room", 5)
    text = Page(generation_page(heedful.generate(model, "a film", max_new=9))).text
    assert "demanded by the model's settings" in text
    assert "Only 4 of 9 tokens were written" in text
