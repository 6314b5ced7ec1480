import numpy as np
import pytest

import heedful
from heedful.generation.step import Alternative, Step
from heedful.render.chart import figure_bytes, inline_svg
from heedful.render.decoding_figures import (
    STEPS_SHOWN,
    draw_decoding,
    draw_step,
    draw_tree,
    steps_legend,
    token_name,
    tree_legend,
)
from tests.families import build

PROMPT = "the film was good"


def words(figure):
    """Every text of a figure."""
    figure.canvas.draw()
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    return texts + [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]


@pytest.mark.parametrize(
    ("token", "name"), [(" film", "␣film"), ("\n", "↵"), ("", "∅"), ("unbelievably", "unbelievab…"), ("$a$", "$a$")]
)
def test_the_names_of_tokens_show_spaces_and_line_breaks(token, name):
    assert token_name(token) == name


def test_the_bars_are_the_probabilities_and_kept_tokens_are_shaded():
    alternatives = (
        Alternative(0, " a", 0.6, 0.75, True),
        Alternative(1, "$b$", 0.2, 0.25, True),
        Alternative(2, "c", 0.1, 0.0, False),
    )
    figure = draw_step(Step(1, "$b$", np.log(0.2), 2, 0.8, alternatives))
    bars, shades = [], []
    for patch in figure.axes[0].patches:
        (bars if patch.get_height() < 0.9 else shades).append(patch)
    assert [round(bar.get_width(), 6) for bar in bars] == [0.6, 0.2, 0.1]
    assert sorted(shade.get_y() for shade in shades) == [-0.5, 0.5]
    assert bars[0].get_facecolor() != bars[2].get_facecolor()
    ticks = [line.get_xdata()[0] for line in figure.axes[0].lines]
    assert 0.75 in ticks
    assert 0.25 in ticks
    bold = [label.get_text() for label in figure.axes[0].get_yticklabels() if label.get_fontweight() == "bold"]
    assert bold == ["$b$"]


@pytest.mark.slow
def test_a_picture_has_a_panel_for_every_step_and_says_if_there_are_more(monkeypatch):
    model = build("gpt2")
    monkeypatch.setattr(model, "end_ids", frozenset())
    generation = heedful.generate(model, PROMPT, "nucleus", max_new=STEPS_SHOWN + 3)
    figure = draw_decoding(generation)
    assert len(figure.axes) == STEPS_SHOWN
    assert f"The first {STEPS_SHOWN} of {STEPS_SHOWN + 3} steps." in figure.texts[0].get_text()
    assert "The first" not in draw_decoding(heedful.generate(model, PROMPT, max_new=2)).texts[0].get_text()


def test_the_tree_has_every_continuation_and_its_legend_counts_them():
    generation = heedful.generate(build("gpt2"), PROMPT, "beam", width=3, max_new=5)
    figure = draw_tree(generation, for_page=False)
    drawn = words(figure)
    for node in generation.tree:
        assert token_name(node.token, 9) in drawn
    # A line for every node, to its parent.
    assert len(figure.axes[0].lines) == len(generation.tree)
    pruned = sum(node.fate == "pruned" for node in generation.tree)
    assert f"{len(generation.tree)} continuations" in tree_legend(generation)
    assert f"{pruned} were pruned" in tree_legend(generation)
    assert draw_decoding(generation).axes[0].lines


def test_a_wide_tree_says_what_is_not_drawn():
    generation = heedful.generate(build("gpt2"), PROMPT, "beam", width=20, max_new=3)
    assert f"{len(generation.tree) - 3 * 24} of them are not drawn." in tree_legend(generation)


@pytest.mark.slow
def test_the_same_generation_gives_the_same_bytes():
    model = build("gpt2")
    for strategy in ("top-k", "beam"):
        drawn = [
            figure_bytes(draw_decoding(heedful.generate(model, PROMPT, strategy, max_new=3)), "svg") for _ in range(2)
        ]
        assert drawn[0] == drawn[1]


def test_in_a_page_the_picture_takes_the_colours_of_the_page():
    generation = heedful.generate(build("gpt2"), PROMPT, "beam", max_new=2)
    drawing = inline_svg(draw_tree(generation, for_page=True), "tree") + inline_svg(draw_step(generation.steps[0]), "x")
    assert "currentColor" in drawing
    assert "continuations" not in drawing


def test_the_legend_names_the_tick_only_where_there_is_one():
    model = build("gpt2")
    legends = {s: steps_legend(heedful.generate(model, PROMPT, s, max_new=1)) for s in ("greedy", "nucleus", "beam")}
    assert ["Tick" in legend for legend in legends.values()] == [False, True, False]
