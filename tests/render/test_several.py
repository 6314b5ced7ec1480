import io
import re

import pytest
from rich.console import Console

import heedful
from heedful.evaluation.several import SideBySide
from heedful.render import show, write
from heedful.render.several import print_several, several_page
from tests.conftest import tiny_model

METHODS = ["attention-mean", "leave-one-out"]


def printed(result, **settings):
    console = Console(file=io.StringIO(), **{"width": 160, **settings})
    print_several(result, console)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def comparisons():
    return heedful.compare({"old": tiny_model(0), "<new>": tiny_model(1)}, "good film was <b> dull", METHODS)


@pytest.fixture(scope="module")
def reports():
    texts = ["good film", "bad plot", "the film was good", "a dull story", "very good actor", "bad bad film"]
    return heedful.trust({"old": tiny_model(0), "<new>": tiny_model(1)}, texts, METHODS, ["deletion"])


@pytest.mark.parametrize("width", [60, 160])
def test_each_method_has_its_models_one_under_another(comparisons, width):
    text = printed(comparisons, width=width)
    rows = [f"{method}, {name}" for method in METHODS for name in ("old", "<new>")]
    places = [text.index(f"{row} ") for row in rows]
    assert places == sorted(places)
    for comparison in comparisons.comparisons.values():
        assert f"{comparison.explanations[0].output:+.4f}" in text


def test_the_page_has_every_model_and_method_and_escapes_names(comparisons, tmp_path):
    page = several_page(comparisons)
    assert "<new>" not in page
    assert page.count("&lt;new&gt;") >= 3
    cells = re.findall(r'<th scope="row">([^<]*)</th><td data-label="model">', page)
    assert cells == ["attention-mean", "attention-mean", "leave-one-out", "leave-one-out"]
    assert comparisons._repr_html_() == page
    write(comparisons, tmp_path / "both.html")
    assert (tmp_path / "both.html").read_text(encoding="utf-8") == page
    with pytest.raises(heedful.HeedfulError, match=r"\.html or \.json"):
        write(comparisons, tmp_path / "both.png")


def test_reports_begin_with_a_table_of_what_is_recommended(reports, capsys):
    text = printed(reports)
    assert text.index("rank words") < text.index("Trust: ")
    assert text.count("Trust: ") == 2
    page = several_page(reports)
    for name, by_use in reports.headlines.items():
        assert name.replace("<", "&lt;").replace(">", "&gt;") in page
        assert all(headline in page for headline in by_use.values())
    show(reports)
    assert "rank words" in capsys.readouterr().out


def test_images_are_drawn_in_patches():
    from PIL import Image

    from tests.families import build

    both = heedful.compare([build("vit"), build("deit")], Image.new("RGB", (16, 16), (9, 99, 9)), ["gradient-l2"])
    assert several_page(both).count("<svg") == 2
    assert "gradient-l2, model 2" in printed(both)


def test_different_targets_are_pointed_out():
    models = {"old": tiny_model(0), "new": tiny_model(1)}
    same, different = (
        {
            name: heedful.compare(models[name], "good film", METHODS, target=target)
            for name, target in zip(models, targets, strict=True)
        }
        for targets in ((0, 0), (0, 1))
    )
    for comparisons, said in ((same, False), (different, True)):
        result = SideBySide(comparisons=comparisons)
        assert ("different targets" in printed(result)) is said
        assert ("different targets" in several_page(result)) is said
