from time import perf_counter
from xml.etree import ElementTree

import numpy as np
import pytest

from heedful.errors import BadInput
from heedful.render.head_arcs import N_LINES, arcs_svg, token_label

NAME = "{http://www.w3.org/2000/svg}"
NASTY = ("<script>alert(1)</script>", "&", '"', "שלום", "\u202eover", "\x00\ufffe\uffff", "\n", "x" * 90)


def read(svg):
    return ElementTree.fromstring(svg)


def lines(svg):
    return read(svg).findall(f".//{NAME}line")


def texts(svg):
    return [element.text or "" for element in read(svg).iter(f"{NAME}text")]


def random_matrix(n, seed=0):
    weights = np.random.default_rng(seed).gamma(0.3, size=(n, n))
    return weights / weights.sum(axis=1, keepdims=True)


def test_every_weight_is_a_line_between_its_tokens():
    matrix = random_matrix(5)
    svg = arcs_svg("abcde", matrix, threshold=0.0)
    words = {
        (element.get("text-anchor"), float(element.get("y"))): element.text for element in read(svg).iter(f"{NAME}text")
    }
    opacities = {}
    for line in lines(svg):
        query, key = words["end", float(line.get("y1")) + 4], words["start", float(line.get("y2")) + 4]
        opacities["abcde".index(query), "abcde".index(key)] = float(line.get("opacity"))
    expected = {place: weight / matrix.max() for place, weight in np.ndenumerate(matrix)}
    assert opacities == pytest.approx(expected, abs=5e-4)
    assert f"25 lines; largest weight {matrix.max():.3g}." in texts(svg)


def test_the_caption_counts_the_lines_not_drawn():
    svg = arcs_svg("ab", np.array([[0.9, 0.1], [0.5, 0.5]]), threshold=0.2)
    assert len(lines(svg)) == 3
    assert "1 smaller weights are not drawn: 5.0% of the attention on these tokens." in texts(svg)


def test_no_line_is_drawn_for_no_weight():
    assert len(lines(arcs_svg("abc", np.eye(3), threshold=0.0))) == 3
    assert lines(arcs_svg("ab", np.zeros((2, 2)))) == []


def test_the_strongest_lines_are_kept():
    matrix = random_matrix(30)
    svg = arcs_svg(["t"] * 30, matrix, threshold=0.0, n_lines=10)
    kept = [float(line.get("opacity")) for line in lines(svg)]
    assert kept == pytest.approx(np.sort(matrix.ravel())[-10:] / matrix.max(), abs=5e-4)
    assert any(text.startswith("890 smaller weights are not drawn") for text in texts(svg))


def test_tokens_are_text_and_nothing_else():
    svg = arcs_svg(NASTY, random_matrix(len(NASTY)), title='<b> & "\x1b')
    names = {element.tag.removeprefix(NAME) for element in read(svg).iter()}
    assert names == {"svg", "title", "style", "rect", "text", "g", "line"}
    assert "<script" not in svg
    assert texts(svg).count(NASTY[0][:23] + "…") == 2
    assert not set(svg) & set("\x00\x1b\u202e\ufffe\uffff")
    assert 'direction="ltr"' in svg
    assert svg.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http") == 0


def test_labels_are_short_and_never_blank():
    assert token_label(" \t") == "␣"
    assert token_label("a\nb") == "a b"
    assert len(token_label("x" * 90)) == 24


def test_rows_and_columns_beyond_the_tokens_are_not_drawn():
    matrix = random_matrix(9)
    assert arcs_svg("abc", matrix) == arcs_svg("abc", matrix[:3, :3])


def test_five_hundred_tokens_are_drawn_quickly_and_small():
    start = perf_counter()
    svg = arcs_svg(["token"] * 512, random_matrix(512))
    assert perf_counter() - start < 3
    assert len(lines(svg)) == N_LINES
    assert len(svg) < 500_000


def test_what_cannot_be_drawn_is_refused_in_a_sentence():
    with pytest.raises(BadInput, match="no tokens"):
        arcs_svg([], np.zeros((0, 0)))
    with pytest.raises(BadInput, match="finite"):
        arcs_svg("a", np.array([[np.nan]]))
