import numpy as np
import pytest

from heedful.experiments.toy_tasks.histogram_figures import draw_curves, draw_dependence, draw_maps

KINDS = ("semantic", "positional")
ABOUT = [{"weights": "tied", "kind": kind, "seed": 0} for kind in KINDS]
WEIGHTS = {"semantic": np.array([[0.9, 0.1], [0.2, 0.8]]), "positional": np.array([[0.5, 0.5], [0.4, 0.6]])}


def test_a_map_shows_the_weights_of_its_kind():
    rows = [
        {**about, "sequence": "DA", "query": query, "key": key, "weight": WEIGHTS[about["kind"]][query, key]}
        for about in ABOUT
        for query in range(2)
        for key in range(2)
    ]
    panels = [axes for axes in draw_maps({"maps": rows}).axes if axes.get_title()]
    for axes, kind in zip(panels, KINDS, strict=True):
        assert np.array_equal(axes.images[0].get_array(), WEIGHTS[kind])
        assert [label.get_text() for label in axes.get_xticklabels()] == ["D", "A"]


def test_a_curve_shows_the_losses_of_its_phase():
    rows = [
        {**about, "phase": phase, "step": step, "loss": place / step}
        for place, (about, phase) in enumerate([(a, p) for a in ABOUT for p in ("restricted", "lifted")], start=1)
        for step in (10, 20)
    ]
    restricted, lifted = draw_curves({"curves": rows}).axes
    assert [line.get_ydata().tolist() for line in restricted.lines] == [[0.1, 0.05], [0.3, 0.15]]
    assert [line.get_ydata().tolist() for line in lifted.lines] == [[0.2, 0.1], [0.4, 0.2]]


def test_a_bar_is_the_mean_over_seeds():
    rows = [
        {**about, "seed": seed, "phase": "lifted", "token_dependence": 0.1 * (seed + place), "of_whole_maps": 0.5}
        for place, about in enumerate(ABOUT, start=1)
        for seed in range(2)
    ]
    (axes,) = draw_dependence({"runs": rows}).axes
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0.15, 0.25])
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "tied, semantic, lifted",
        "tied, positional, lifted",
    ]
