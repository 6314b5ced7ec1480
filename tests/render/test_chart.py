import re
from xml.etree import ElementTree

import pytest

from heedful.render.chart import INK, PAPER, RULE, figure_bytes, inline_svg, new_figure, page_axes


def drawn(name="a < b & $x$"):
    axes = page_axes(4.0, 2.0, (0.5, 0.5, 0.2, 0.4))
    axes.plot([0, 1], [2, 3], color=INK)
    axes.plot([0.5], [2.5], "o", markerfacecolor=PAPER, markeredgecolor=INK)
    axes.text(0.5, 2.2, name, parse_math=False)
    return axes.figure


def test_the_same_numbers_give_the_same_bytes():
    for kind in ("svg", "png"):
        assert figure_bytes(drawn(), kind) == figure_bytes(drawn(), kind)
    assert inline_svg(drawn(), "a") == inline_svg(drawn(), "a")


def test_a_file_says_no_date():
    assert b"<dc:date>" not in figure_bytes(drawn(), "svg")


def test_a_figure_has_the_requested_size():
    png = figure_bytes(new_figure(3.0, 2.0), "png")
    assert (int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")) == (450, 300)


def test_margins_are_in_inches():
    box = page_axes(4.0, 2.0, (0.5, 0.5, 0.2, 0.4)).get_position()
    assert (box.x0 * 4, (1 - box.x1) * 4, (1 - box.y1) * 2, box.y0 * 2) == pytest.approx((0.5, 0.5, 0.2, 0.4))


def test_a_chart_of_a_page_takes_the_colours_of_the_page():
    svg = inline_svg(drawn(), "title")
    assert not any(colour in svg for colour in (INK, PAPER, RULE))
    assert svg.count("currentColor") >= 2
    assert "var(--paper)" in svg
    assert "#ffffff" not in svg


def test_a_chart_of_a_page_is_one_element_that_fetches_nothing():
    svg = inline_svg(drawn(), 'hostile "<title>"')
    tree = ElementTree.fromstring(svg)
    assert tree.tag == "svg"
    assert tree.find("title").text == 'hostile "<title>"'
    assert not re.search(r"https?:", svg)
    assert re.findall(r'href="(?!#)', svg) == []


def test_text_stays_text_and_is_not_read_as_mathematics():
    assert "a < b & $x$" in [element.text for element in ElementTree.fromstring(inline_svg(drawn(), "t")).iter("text")]


def test_letters_that_the_font_lacks_are_no_warning():
    assert "漢字" in inline_svg(drawn("漢字"), "t")
