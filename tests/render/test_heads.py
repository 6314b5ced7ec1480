import io

import pytest
from rich.console import Console

from heedful.errors import BadInput
from heedful.models.head_patterns import heads
from heedful.render.head_arcs import arcs_svg
from heedful.render.head_gallery import gallery_page
from heedful.render.heads import print_heads, write_heads

TEXT = "good film , not dull !"


@pytest.fixture(scope="module")
def scored(tiny):
    document = tiny.encode(TEXT)
    return document, tiny.maps(document), heads(tiny, [TEXT, "a bad plot ."])


def test_every_head_has_a_line_with_its_clearest_patterns(scored):
    result = scored[2]
    console = Console(file=io.StringIO(), width=200)
    print_heads(result, console)
    text = console.file.getvalue()
    lines = [line.split() for line in text.splitlines() if line[:2].strip().isdigit()]
    n_layers, n_heads = result.scores.shape[:2]
    assert [(int(line[0]), int(line[1])) for line in lines] == [(i, j) for i in range(n_layers) for j in range(n_heads)]
    for line, (layer, head) in zip(lines, [(i, j) for i in range(n_layers) for j in range(n_heads)], strict=True):
        best = int(result.excess[layer, head].argmax())
        assert line[2] == result.names[layer][head]
        assert line[3:5] == [result.patterns[best], f"{result.scores[layer, head, best]:.2f}"]
    assert "over 2 texts" in text


def test_a_page_or_the_lines_of_one_head_are_written(scored, tmp_path):
    document, maps, result = scored
    write_heads(document, maps, result, tmp_path / "h.html")
    assert (tmp_path / "h.html").read_text(encoding="utf-8") == gallery_page(document, maps, result)
    n = len(document.ids)
    write_heads(document, maps, result, tmp_path / "h.svg", layer=0, head=1)
    assert (tmp_path / "h.svg").read_text(encoding="utf-8") == arcs_svg(
        document.pieces, maps[0, 1, :n, :n], "layer 0, head 1"
    )
    write_heads(document, maps, result, tmp_path / "m.svg")
    mean = arcs_svg(document.pieces, maps[-1].mean(axis=0)[:n, :n], "layer 0, mean of heads")
    assert (tmp_path / "m.svg").read_text(encoding="utf-8") == mean


@pytest.mark.parametrize(
    ("name", "place", "message"),
    [
        ("h.png", {}, "must end in .html or .svg; 'h.png'"),
        ("h.svg", {"layer": 7}, "no layer 7; the model has 1"),
        ("h.svg", {"head": 9}, "no head 9; the model has 3"),
    ],
)
def test_what_cannot_be_written_is_named(scored, tmp_path, name, place, message):
    with pytest.raises(BadInput, match=message):
        write_heads(*scored, tmp_path / name, **place)
