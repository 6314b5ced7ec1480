"""The page of a generation: the text with the probability of every token, the bars of every step, the beam tree."""

from typing import Any

import numpy as np

from heedful.generation.generation import Generation
from heedful.render.chart import inline_svg
from heedful.render.decoding_figures import STEPS_SHOWN, draw_step, draw_tree, steps_legend, token_name, tree_legend
from heedful.render.templating import fill_template

_STEPS_IN_CELL = 8


def generation_page(generation: Generation) -> str:
    """The whole page."""
    return fill_template("decoding.html", _content(generation, STEPS_SHOWN))


def generation_cell(generation: Generation) -> str:
    """A notebook cell, with the first steps alone."""
    return fill_template("decoding_cell.html", _content(generation, _STEPS_IN_CELL))


def _content(generation: Generation, n_steps: int) -> dict[str, Any]:
    steps = generation.steps[:n_steps]
    tree = None if generation.tree is None else inline_svg(draw_tree(generation, for_page=True), "beam tree")
    return {
        "generation": generation,
        "tokens": [
            {"text": step.token, "surprise": 1 - probability, "title": f"{step.token!r}: {probability:.3f}"}
            for step, probability in zip(generation.steps, np.exp(generation.log_probabilities).tolist(), strict=True)
        ],
        "n_linked": len(steps),
        "steps": [
            {
                "name": token_name(step.token, 20),
                "kept": step,
                "bars": inline_svg(draw_step(step), f"step {number}"),
            }
            for number, step in enumerate(steps, start=1)
        ],
        "legend": steps_legend(generation),
        "tree": tree,
        "tree_legend": "" if tree is None else tree_legend(generation),
    }
