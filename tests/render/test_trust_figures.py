from dataclasses import replace
from itertools import pairwise
from math import nan
from xml.etree import ElementTree

import pytest
from matplotlib.text import Text

from heedful.render.chart import inline_svg
from heedful.render.trust_figures import (
    MethodCosts,
    draw_costs,
    draw_forest,
    method_costs,
    standing_kind,
    standing_sentence,
)
from tests.render.reports import METHODS, PASSES, planted, renamed


@pytest.fixture(scope="module")
def report():
    return planted()


@pytest.fixture(scope="module")
def verdict(report):
    return report.verdict("rank words")


def points(figure):
    """The mark of every method: its place in numbers of the data, and how it is drawn."""
    (axes,) = figure.axes
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def place(line):
    return float(line.get_xdata()[0]), float(line.get_ydata()[0])


def segments(figure):
    """The ends of every interval."""
    (axes,) = figure.axes
    return [line.get_xydata() for line in axes.lines if line.get_label().startswith("_")]


def equal_passes(report):
    return replace(report, measured=tuple(replace(m, passes=dict.fromkeys(METHODS, 1.0)) for m in report.measured))


def lifted(shift):
    """`same` is moved up: to just below `good`, or to between it and the control."""
    signs = {"deletion": shift, "sufficiency": -shift}
    report = planted()
    measured = tuple(
        replace(
            result,
            values={
                **result.values,
                "same": {name: value + signs.get(name, 0.0) for name, value in result.values["same"].items()},
            },
        )
        for result in report.measured
    )
    return replace(report, measured=measured).verdict("rank words")


def test_a_forest_has_a_mark_at_every_score_from_the_best_down(verdict):
    marks = points(draw_forest(verdict))
    assert list(marks) == [standing.method for standing in verdict.standings]
    for row, standing in enumerate(verdict.standings):
        assert place(marks[standing.method]) == (standing.score, row)
    scores = [place(line)[0] for line in marks.values()]
    assert scores == sorted(scores, reverse=True)


def test_a_forest_has_an_interval_around_every_score_and_a_line_through_the_control(verdict):
    figure = draw_forest(verdict)
    (axes,) = figure.axes
    drawn = {float(ends[0, 1]): ends[:, 0].tolist() for ends in segments(figure) if ends[0, 1] == ends[1, 1]}
    ends = {row: [standing.low, standing.high] for row, standing in enumerate(verdict.standings)}
    assert list(drawn) == list(ends)
    assert list(drawn.values()) == [pytest.approx(pair, nan_ok=True) for pair in ends.values()]
    control = next(standing.score for standing in verdict.standings if standing.method == "random")
    (vertical,) = [ends for ends in segments(figure) if ends[0, 1] != ends[1, 1]]
    assert vertical[:, 0].tolist() == [control, control]
    assert [label.get_text() for label in axes.get_yticklabels()] == [standing.method for standing in verdict.standings]
    left, right = axes.get_xlim()
    assert left <= 0 < 1 <= right


def test_only_the_control_is_a_square_and_only_the_best_are_filled(verdict):
    marks = points(draw_forest(verdict))
    assert {name for name, line in marks.items() if line.get_marker() == "s"} == {"random"}
    fills = {name: line.get_markerfacecolor() for name, line in marks.items()}
    assert fills["same"] == fills["poor"] != fills["good"]


def test_without_an_interval_only_the_score_is_drawn(verdict):
    bare = replace(verdict, standings=tuple(replace(standing, low=nan, high=nan) for standing in verdict.standings))
    svg = inline_svg(draw_forest(bare), "t")
    assert "nan" not in svg.lower()
    assert f">{verdict.standings[0].score:.2f}<" in svg


def test_every_method_is_compared_with_the_control(verdict):
    kinds = {standing.method: standing_kind(verdict, standing) for standing in verdict.standings}
    assert kinds == {"good": "best", "same": "same", "poor": "worse", "random": "control"}
    sentences = {standing.method: standing_sentence(verdict, standing) for standing in verdict.standings}
    p = {standing.method: standing.beats_control for standing in verdict.standings}
    assert sentences == {
        "good": "recommended; better than random (p = 0.005)",
        "same": f"not distinguishable from random (p = {p['same']:.2g})",
        "poor": "worse than random (p = 0.005)",
        "random": "control",
    }


@pytest.mark.parametrize(
    ("shift", "kind", "phrase"),
    [(4.8, "good", "not distinguishable from the best"), (2.0, "behind", "worse than the best")],
)
def test_methods_better_than_the_control_are_compared_with_the_best(shift, kind, phrase):
    verdict = lifted(shift)
    same = next(standing for standing in verdict.standings if standing.method == "same")
    assert standing_kind(verdict, same) == kind
    assert phrase in standing_sentence(verdict, same)
    assert ("same" in verdict.as_good) == (kind == "good")


def test_costs_are_on_a_logarithmic_axis_against_scores(report, verdict):
    figure = draw_costs(verdict, method_costs(report))
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    scores = {standing.method: standing.score for standing in verdict.standings if standing.method != "random"}
    assert {name: place(line) for name, line in points(figure).items()} == {
        name: (PASSES[name], score) for name, score in scores.items()
    }
    low, high = axes.get_xlim()
    assert low <= min(PASSES[name] for name in scores) < max(PASSES[name] for name in scores) <= high
    ticks = dict(zip([label.get_text() for label in axes.get_xticklabels()], axes.get_xticks(), strict=True))
    assert ticks == {"1": 1, "10": 10, "100": 100, "1,000": 1000}


def test_names_of_costs_do_not_overlap_however_many_there_are(verdict):
    many = tuple(replace(verdict.standings[0], method=f"method-{n}", score=0.9 - 0.001 * n) for n in range(40))
    costs = MethodCosts("passes", {standing.method: 10.0 for standing in many})
    figure = draw_costs(replace(verdict, standings=many), costs)
    figure.draw_without_rendering()
    notes = [note for note in figure.axes[0].texts if note.get_text() != "random"]
    assert [note.get_text() for note in notes] == [standing.method for standing in many]
    boxes = [Text.get_window_extent(note) for note in notes]
    assert all(below.y1 <= above.y0 for above, below in pairwise(boxes))


def test_if_methods_take_equally_many_passes_the_cost_is_time(report):
    assert method_costs(report) == ("passes", {name: PASSES[name] for name in METHODS if name != "random"})
    equal = equal_passes(report)
    unit, seconds = method_costs(equal)
    assert unit == "seconds"
    assert seconds == pytest.approx({name: 0.001 * PASSES[name] for name in METHODS if name != "random"})
    (axes,) = draw_costs(equal.verdicts[0], method_costs(equal)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1 ms", "10 ms", "100 ms", "1 s"]


def test_a_method_without_a_known_cost_is_not_drawn(report):
    free = replace(report, measured=tuple(replace(m, passes={**m.passes, "poor": 0.0}) for m in report.measured))
    assert set(points(draw_costs(free.verdicts[0], method_costs(free)))) == {"good", "same"}
    nothing = replace(report, measured=tuple(replace(m, passes={}) for m in report.measured))
    assert method_costs(nothing).by_method == {}


def test_names_are_text_in_every_chart(report):
    hostile = renamed(report, "good", "<b>&$x$\x00")
    for figure in (draw_forest(hostile.verdicts[0]), draw_costs(hostile.verdicts[0], method_costs(hostile))):
        svg = inline_svg(figure, "t")
        texts = [element.text for element in ElementTree.fromstring(svg).iter("text")]
        assert "<b>&$x$�" in texts
        assert "\x00" not in svg
