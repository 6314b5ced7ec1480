"""The curves of ROAR drawn: the numbers are on the figure, the page and the terminal."""

import io

import numpy as np
import pytest
from rich.console import Console

import heedful
from heedful.errors import BadInput
from heedful.render.curves.roar_page import draw_roar, print_roar, roar_page, roar_table
from tests.evaluation.test_roar_curves import curves


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_every_curve_is_drawn_with_its_intervals_and_the_control_dashed(n_seeds):
    result = curves(n_seeds)
    panels = draw_roar(result).axes
    assert [axes.get_title() for axes in panels] == ["remove and retrain", "keep and retrain"]
    for mode, axes in zip(result.modes, panels, strict=True):
        for method, container in zip(result.methods, axes.containers, strict=True):
            line, _, bars = container.lines
            points = result.curve(method, mode)
            assert line.get_ydata() == pytest.approx([100 * point.value for point in points])
            assert line.get_linestyle() == ("--" if method == "random" else "-")
            for point, (low, high) in zip(points, bars[0].get_segments(), strict=True):
                ends = (point.value, point.value) if n_seeds == 1 else point[1:]
                assert (low[1], high[1]) == pytest.approx(tuple(100 * end for end in ends))
    assert panels[0].get_xticks() == pytest.approx([0, 50, 100])


def test_the_table_the_page_and_the_terminal_have_the_same_numbers(tmp_path):
    result = curves(notes=("lime could not explain 2 texts.",))
    heading, random, lime = roar_table(result, "keep")
    assert heading == ["method", "0 %", "50 %", "100 %", "from random"]
    low, high = result.curve("lime", "keep")[1][1:]
    value = result.accuracies[1, 1, 1].mean()
    assert lime[2] == f"{100 * value:.1f} ± {100 * max(value - low, high - value):.1f}"
    assert random[-1] == ""
    console = Console(file=io.StringIO(), width=200)
    print_roar(result, console)
    page = roar_page(result)
    for shown in (console.file.getvalue(), page):
        assert all(cell in shown for cell in (*lime, "lime could not explain 2 texts", "3 training seeds"))
    assert "One training seed gives no interval" in roar_page(curves(1))
    assert "<svg" in result._repr_html_()
    for name in ("r.html", "r.png", "r.svg"):
        result.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(BadInput, match="must end in"):
        result.save(tmp_path / "r.docx")


def test_a_value_without_interval_stands_alone(capsys):
    result = curves(accuracies=np.full((2, 2, 3, 3), 0.5))
    assert roar_table(result, "remove")[2] == ["lime", "50.0", "50.0", "50.0", "+0.0"]
    heedful.show(result)
    assert "remove and retrain" in capsys.readouterr().out


def test_many_shares_are_printed_in_tables_that_fit_the_terminal():
    result = curves(shares=tuple(n / 10 for n in range(11)), accuracies=np.full((2, 2, 11, 3), 0.5))
    console = Console(file=io.StringIO(), width=40)
    print_roar(result, console)
    shown = console.file.getvalue()
    assert "…" not in shown
    assert all(f" {10 * n} %" in shown for n in range(11))
