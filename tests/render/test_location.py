import io

import numpy as np
import pytest
from rich.console import Console

from heedful.errors import BadInput
from heedful.generation.location import Location
from heedful.render import show, write
from heedful.render.location import draw_location, location_page, print_location, summary
from heedful.target import Target


def location(n_layers=3, tokens=("The", "capital", "of", "France", "is"), part="residual"):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_layers, len(tokens)))
    other = tuple("Italy" if token == "France" else token for token in tokens)
    target = Target(1, "' Paris' − ' Rome'", 2, "logit", "logits")
    return Location("The capital of France is", "x", target, part, tokens, other, values, 2.0, -1.0, "f" * 16, 17)


def cells(figure):
    return figure.axes[0].images[0].get_array()


def test_a_row_is_a_position_and_a_column_a_layer():
    figure = draw_location(location())
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["The", "capital", "of", "France / Italy", "is"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "2"]
    assert cells(figure).shape == (5, 3, 4)
    assert "the logit of ' Paris' − ' Rome'" in axes.get_xlabel().replace("\n", " ")


def test_green_restores_and_orange_is_the_opposite():
    shown = location()
    tints, scores = np.asarray(cells(draw_location(shown))), shown.scores.T
    greener = tints[..., 1] > tints[..., 0]
    assert (greener == (scores > 0)).all()
    order = np.argsort(np.abs(scores), axis=None)
    assert (np.diff(tints[..., 3].ravel()[order]) >= 0).all()


@pytest.mark.parametrize(("n_layers", "marks"), [(3, "number"), (30, "sign")])
def test_wide_cells_hold_numbers_and_narrow_ones_the_sign(n_layers, marks):
    shown = location(n_layers)
    texts = {text.get_position(): text.get_text() for text in draw_location(shown).axes[0].texts}
    layer, position, score = shown.top(1)[0]
    negative = np.argwhere(shown.scores < -0.2)[0]
    expected = f"{score:.2f}".replace("-", "−") if marks == "number" else "−" if score < 0 else ""
    assert texts[(layer, position)] == expected
    assert texts[tuple(negative)].startswith("−")


def test_a_large_map_keeps_its_cells_readable():
    width, height = draw_location(location(30, tuple(f"word{i}" for i in range(40)))).get_size_inches()
    assert 7 < width < 12
    assert 9 < height < 12


def test_a_page_says_what_is_shown_and_holds_every_number():
    shown = location()
    page = location_page(shown)
    assert "The capital of France is" in page
    assert "France / Italy" in page
    for score in shown.scores.ravel():
        assert f"{score:+.2f}" in page
    assert "It does not say that the model needs it" in page
    assert shown._repr_html_() == location_page(shown, "cell.html")


@pytest.mark.parametrize("part", ["residual", "attention", "mlp"])
def test_only_the_residual_streams_layer_0_is_the_embeddings(part):
    assert ("Layer 0 is the embeddings" in location_page(location(part=part))) == (part == "residual")


def test_a_place_that_does_not_exist_is_grey():
    shown = location()
    shown.values[2, 0] = np.nan
    tints = np.asarray(cells(draw_location(shown)))
    assert tints[0, 2] == pytest.approx([0.5, 0.5, 0.5, 0.2])
    assert "<td>—</td>" in location_page(shown)


def test_the_terminal_has_a_line_per_position(capsys):
    shown = location()
    console = Console(file=io.StringIO(), width=120)
    print_location(shown, console)
    text = console.file.getvalue()
    assert all(name in text for name in shown.positions)
    assert " ".join(text.split()).startswith(summary(shown))
    best = int(np.abs(shown.scores[:, 3]).argmax())
    assert f"{shown.scores[best, 3]:+.2f} in layer {best}" in text
    show(shown)
    assert "France / Italy" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["html", "json", "png", "svg"])
def test_a_map_is_written_by_its_ending(tmp_path, ending):
    write(location(), tmp_path / f"map.{ending}")
    assert (tmp_path / f"map.{ending}").stat().st_size > 500


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"'map\.txt' was given"):
        write(location(), tmp_path / "map.txt")
