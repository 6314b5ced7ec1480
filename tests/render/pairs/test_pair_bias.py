import numpy as np
from rich.console import Console

from heedful.generation.bias import PairBias
from heedful.render.pairs.pair_bias import bias_page, draw_bias, print_bias


def result_of(differences):
    firsts = tuple(f"The nurse said he was {n}" for n in range(len(differences)))
    seconds = tuple(f"The nurse said she was {n}" for n in range(len(differences)))
    return PairBias(firsts, seconds, np.array(differences), "log-probability", "abc")


def test_bars_are_the_differences_from_the_largest_down():
    axes = draw_bias(result_of([0.5, -1.0, 2.0, 0.1, 0.2])).axes[0]
    assert [bar.get_width() for bar in axes.patches[:5]] == [2.0, 0.5, 0.2, 0.1, -1.0]
    assert axes.get_yticklabels()[0].get_text() == "The nurse said he/she was 2"
    assert "mean +0.36" in axes.get_xlabel()
    axes.figure.draw_without_rendering()
    extent = axes.xaxis.label.get_window_extent()
    assert axes.figure.bbox.x0 <= extent.x0 < extent.x1 <= axes.figure.bbox.x1


def test_a_figure_of_many_pairs_has_no_names():
    axes = draw_bias(result_of(list(np.linspace(-1, 1, 80)))).axes[0]
    assert {label.get_text() for label in axes.get_yticklabels()} == {""}


def test_page_and_terminal_have_every_pair():
    result, console = result_of([0.5, -1.0]), Console(record=True, width=100)
    print_bias(result, console)
    for text in (console.export_text(), bias_page(result)):
        assert "+0.500" in text
        assert "-1.000" in text
    assert "The nurse said she was 1" in bias_page(result)
