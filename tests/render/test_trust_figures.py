import re
from dataclasses import replace
from math import log10
from xml.etree import ElementTree

import numpy as np
import pytest

from heedful.render.trust_figures import agreement_map, bar, cause_bars, cost_plot, forest
from tests.render.reports import METHODS, PASSES, planted, renamed


@pytest.fixture(scope="module")
def report():
    return planted()


def drawings(html):
    """Every outermost drawing, as XML: a mistake in its tags is an error."""
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg(?:.(?!<svg))*?</svg>", html, re.DOTALL)]


def per_cent(text):
    return float(text.removesuffix("%")) / 100


def rows(html):
    return re.findall(r'<tr class="(\w+)"><th scope=row>(.*?)<td class="plot">(.*?)</tr>', html, re.DOTALL)


def test_a_forest_has_a_row_a_method_with_its_score_interval_and_the_control(report):
    verdict = report.verdict("rank words")
    found = rows(forest(verdict))
    assert [name for _, name, _ in found] == [one.method for one in verdict.standings]
    for (kind, _, content), one in zip(found, verdict.standings, strict=True):
        chance, whisker = re.findall(r'<line class="(?:chance|whisker)" x1="([\d.]+%)" x2="([\d.]+%)"', content)
        control = next(other.score for other in verdict.standings if other.method == "random")
        assert [per_cent(end) for end in chance] == pytest.approx([control, control], abs=1e-4)
        assert [per_cent(end) for end in whisker] == pytest.approx([one.low, one.high], abs=1e-4)
        place = re.search(r'(?:cx|<svg x)="([\d.]+%)"', content)[1]
        assert per_cent(place) == pytest.approx(one.score, abs=1e-4)
        assert f"{one.score:.2f} <small>{one.low:.2f} – {one.high:.2f}</small>" in content
        # The control is a square, so that it is told apart without its colour.
        assert ("<rect" in content) == (one.method == "random") == (kind == "control")


def test_rows_say_who_is_told_apart_from_whom(report):
    verdict = report.verdict("rank words")
    kinds = {name: (kind, content) for kind, name, content in rows(forest(verdict))}
    assert {name: kind for name, (kind, _) in kinds.items()} == {
        "good": "best",
        "same": "same",
        "poor": "worse",
        "random": "control",
    }
    assert "recommended; from random: p &lt; 0.001" in kinds["good"][1]
    p = {one.method: one.beats_control for one in verdict.standings}
    assert f"not from random: p = {p['same']:.2g}" in kinds["same"][1]
    assert "worse than random" in kinds["poor"][1]


def test_as_good_and_behind_are_told_apart():
    """`same` is lifted to just below `good`, and then far below it but above the control."""
    for shift, kind in ((4.8, "good"), (2.0, "behind")):
        report = planted()
        lifted = tuple(
            replace(
                one,
                values={
                    **one.values,
                    "same": {
                        name: value + (shift if name == "deletion" else -shift)
                        for name, value in one.values["same"].items()
                    },
                },
            )
            for one in report.measured
        )
        verdict = replace(report, measured=lifted).verdict("rank words")
        found = {name: row_kind for row_kind, name, _ in rows(forest(verdict))}
        assert found["same"] == kind
        assert ("same" in verdict.as_good) == (kind == "good")


def test_bars_of_a_metric_share_its_axis(report):
    low, high = (ends[:, 0] for ends in report.intervals)
    start, width = low.min(), high.max() - low.min()
    control = report.means[METHODS.index("random"), 0]
    for row in range(len(METHODS)):
        (svg,) = drawings(bar(report, row, 0))
        lines = {line.get("class"): line for line in svg.iter("line")}
        values = [
            start + (per_cent(place) - 0.03) / 0.94 * width
            for place in (
                lines["whisker"].get("x1"),
                svg.find("circle").get("cx"),
                lines["whisker"].get("x2"),
                lines["chance"].get("x1"),
            )
        ]
        assert values == pytest.approx([low[row], report.means[row, 0], high[row], control], abs=0.002 * width)


def test_costs_stand_on_a_logarithmic_axis(report):
    (svg,) = drawings(cost_plot(report))
    ticks = {
        text.text: float(text.get("x")) for text in svg.iter("text") if (text.text or "").replace(",", "").isdigit()
    }
    decade = (ticks["1,000"] - ticks["10"]) / 2
    verdict = report.verdict("rank words")
    shown = [one for one in verdict.standings if one.method != "random"]
    circles = list(svg.iter("circle"))
    assert len(circles) == len(shown)
    for circle, one in zip(circles, shown, strict=True):
        assert float(circle.get("cx")) == pytest.approx(ticks["10"] + decade * (log10(PASSES[one.method]) - 1), abs=0.2)
        assert float(circle.get("cy")) == pytest.approx(12 + 300 * (1 - one.score), abs=0.1)
    names = [float(text.get("y")) for text in svg.iter("text") if text.text in METHODS and text.text != "random"]
    assert min(np.diff(sorted(names))) >= 17


def test_where_passes_are_alike_the_clock_is_the_cost(report):
    equal = tuple(replace(one, passes=dict.fromkeys(METHODS, 1.0)) for one in report.measured)
    html = cost_plot(replace(report, measured=equal))
    assert "Across: time of one explanation" in html
    assert ">1 s</text>" in html
    assert ">1 ms</text>" in html


def test_what_has_no_known_cost_is_named(report):
    free = tuple(replace(one, passes={**one.passes, "poor": 0.0}) for one in report.measured)
    assert "Without a known cost: poor." in cost_plot(replace(report, measured=free))


def test_the_map_has_every_agreement_with_its_tint(report):
    (svg,) = drawings(agreement_map(report))
    order = ["good", "same", "poor", "random"]
    rects, texts = list(svg.iter("rect")), [text.text for text in svg.iter("text")]
    mean = np.mean([-0.5 + 0.01 * place for place in range(30)])
    assert len(rects) == 16
    numbers = [text for text in texts if re.fullmatch(r"[+-]\d\.\d\d", text)]
    expected = [1.0 if a == b else mean for a in order for b in order]
    assert [float(number) for number in numbers] == pytest.approx(expected, abs=0.005)
    tints = [float(rect.get("style").removeprefix("--s:")) for rect in rects]
    assert tints == pytest.approx(np.abs(expected), abs=5e-4)
    assert [rect.get("class") for rect in rects] == ["pos" if value > 0 else "neg" for value in expected]
    assert [texts.count(name) for name in order] == [2] * 4


def test_an_agreement_that_is_not_known_is_a_dash(report):
    unknown = tuple(replace(one, agreement={}) for one in report.measured)
    (svg,) = drawings(agreement_map(replace(report, measured=unknown)))
    assert [text.text for text in svg.iter("text")].count("—") == 16


def test_causes_are_bars_of_their_counts(report):
    found = tuple(replace(one, causes={"sign lost": 1, "value typical": 4}) for one in report.measured)
    html = cause_bars(replace(report, measured=found))
    widths = dict(re.findall(r"scope=row>([\w ]+)<br>.*?height=\"12\" width=\"([\d.]+)%\"", html))
    assert widths == {"value typical": "100.0", "sign lost": "25.0"}
    assert ">120<" in html
    assert "attention is high on what speaks against the target" in html


def test_names_are_escaped_in_every_picture(report):
    nasty = renamed(report, "good", "<b>&\x00")
    pictures = [forest(nasty.verdicts[0]), cost_plot(nasty), agreement_map(nasty)]
    for html in pictures:
        assert "<b>" not in html
        assert "\x00" not in html
        assert "&lt;b&gt;&amp;" in html
        assert drawings(html)
