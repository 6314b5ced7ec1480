import io

import numpy as np
import pytest
from matplotlib.axes import Axes
from rich.console import Console

from heedful.document.units import unit_maps
from heedful.errors import BadInput
from heedful.models.head_patterns import heads
from heedful.render.head_arcs import arcs_svg
from heedful.render.head_gallery import gallery_page
from heedful.render.heads import print_heads, write_heads
from tests.families import build

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
        ("h.gif", {}, "must end in .html, .svg or .png; 'h.gif'"),
        ("h.svg", {"layer": 7}, "no layer 7; the model has 1"),
        ("h.svg", {"head": 9}, "no head 9; the model has 3"),
    ],
)
def test_what_cannot_be_written_is_named(scored, tmp_path, name, place, message):
    with pytest.raises(BadInput, match=message):
        write_heads(*scored, tmp_path / name, **place)


def test_words_are_drawn_with_the_attention_summed_to_and_averaged_from_their_tokens(tmp_path, monkeypatch):
    model = build("bert")
    document = model.encode("an unbelievable film")
    maps, result = model.maps(document), heads(model, "an unbelievable film")
    names, _, between = unit_maps(document, "word", maps)
    assert len(names) < len(document.pieces)
    write_heads(document, maps, result, tmp_path / "w.svg", 0, 1, "word")
    assert (tmp_path / "w.svg").read_text() == arcs_svg(names, between[0, 1], "layer 0, head 1")
    write_heads(document, maps, result, tmp_path / "w.html", unit="word")
    page = (tmp_path / "w.html").read_text()
    assert "the word attended to" in page
    drawn = []
    monkeypatch.setattr("matplotlib.axes.Axes.imshow", spy(drawn, "imshow"))
    write_heads(document, maps, result, tmp_path / "w.png", unit="word")
    assert (tmp_path / "w.png").read_bytes()[:4] == b"\x89PNG"
    assert np.allclose(drawn[0], between[-1].mean(axis=0))
    assert np.allclose(drawn[0].sum(axis=1), 1)


def spy(drawn, name):
    real = getattr(Axes, name)
    return lambda self, values, **settings: drawn.append(values) or real(self, values, **settings)


def test_the_attention_of_special_tokens_is_said_with_what_it_shows(scored):
    console = Console(file=io.StringIO(), width=200)
    print_heads(scored[2], console)
    assert "A special token gets" in console.file.getvalue()
    assert scored[2].special.verdict in console.file.getvalue()
    document, maps, result = scored
    assert result.special.verdict in gallery_page(document, maps, result)
    console = Console(file=io.StringIO(), width=200)
    print_heads(heads(build("bert"), "the unbelievable film", parse="rules"), console)
    assert "that of a word of one piece" in console.file.getvalue()
    assert "what the best fixed offset finds" in console.file.getvalue()
