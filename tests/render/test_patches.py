import io
import re
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

import heedful
from heedful.render.comparison_page import comparison_page
from heedful.render.palette import GREEN, RED
from heedful.render.patches import patch_strengths, patches_view, png_data_url
from tests.families import build, pictures
from tests.render.pages import Page


@pytest.fixture(scope="module")
def explanation():
    return heedful.explain(build("vit"), pictures()[0], "leave-one-out")


def opened(url):
    return np.asarray(Image.open(io.BytesIO(b64decode(url.removeprefix("data:image/png;base64,")))))


def test_a_picture_comes_back_from_its_data_url():
    rgb = np.random.default_rng(0).integers(0, 256, size=(5, 7, 3), dtype=np.uint8)
    assert np.array_equal(opened(png_data_url(rgb)), rgb)


def test_every_patch_has_the_strength_of_its_score(explanation):
    strengths = patch_strengths(explanation)
    assert strengths.shape == explanation.document.picture.grid
    assert strengths.ravel() == pytest.approx(explanation.scores / np.abs(explanation.scores).max())


def test_a_region_tints_all_its_patches():
    by_region = heedful.explain(build("vit"), pictures()[0], "leave-one-out", unit="segment")
    unit_of = by_region.document.unit_of("segment")[1:]
    strengths = patch_strengths(by_region).ravel()
    for unit in range(len(by_region.scores)):
        assert len(set(strengths[unit_of == unit].tolist())) == 1


def test_patches_are_green_for_and_red_against_the_target_over_a_grey_picture(explanation):
    view = patches_view(explanation)
    rows, columns = explanation.document.picture.grid
    assert [(patch["row"], patch["column"]) for patch in view["patches"]] == list(np.ndindex(rows, columns))
    for patch, score in zip(view["patches"], explanation.scores.tolist(), strict=True):
        assert patch["score"] == score
        assert patch["colour"] == (GREEN if score > 0 else RED)
    strongest = max(view["patches"], key=lambda patch: patch["opacity"])
    assert abs(strongest["score"]) == np.abs(explanation.scores).max()
    grey = opened(view["grey"])
    assert (grey == grey[..., :1]).all()
    assert grey.shape == explanation.document.picture.rgb.shape


def test_the_page_shows_the_picture_and_a_square_for_every_patch(explanation):
    html = comparison_page(explanation)
    page = Page(html)
    assert page.wrong == page.links == []
    assert page.count("img") == page.count("image") == 1
    assert page.count("rect") == len(explanation.scores)
    titles = re.findall(r"<title>(\d+),(\d+): ([^<]+)</title>", html)
    rows, columns = explanation.document.picture.grid
    expected = [(str(r + 1), str(c + 1)) for r, c in np.ndindex(rows, columns)]
    assert [(row, column) for row, column, _ in titles] == expected
    assert [score for *_, score in titles] == [f"{score:+.4g}" for score in explanation.scores]
