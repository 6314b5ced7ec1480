import re
from math import nan

import pytest

from heedful.evaluation.probes import Finding
from heedful.render.probes.probe_page import finding_bars, probe_page
from heedful.statistics.quantity import Quantity
from tests.render.pages import Page
from tests.render.probes.planted_reports import CHANGE, LOSS, LOST, REFUSAL, RESULTS, TAU, planted_probes
from tests.render.reports import NASTY


@pytest.fixture(scope="module")
def report():
    return planted_probes()


@pytest.fixture(scope="module")
def page(report):
    return probe_page(report)


def test_the_page_is_self_contained_and_whole(page):
    reader = Page(page)
    assert reader.wrong == reader.links == []
    assert not re.search(r"https?://|@import|url\((?!#)", page)


def test_the_verdict_comes_first_with_the_probes_of_each_use(page):
    text = Page(page).text
    places = [text.index(words) for words in ("Ranking words by importance", "As the only explanation", "What it show")]
    assert places == sorted(places)
    rows = re.findall(r'<th scope="row">([^<]*)</th><td><span class="answer (\w+)">.*?</tr>', page, re.DOTALL)
    assert rows == [
        ("Ranking words by importance", "partly"),
        ("Saying that attention matters", "yes"),
        ("As the only explanation", "no"),
        ("As an explanation that cannot be faked", "unknown"),
    ]
    assert "The texts do not decide. It does not count." in text
    assert "No other model was found. It does not count." in text
    assert f"– did not run: {REFUSAL}" in text


def test_every_probe_has_its_question_its_source_and_both_limits(report, page):
    text = Page(page).text
    for outcome in report.outcomes:
        probe = outcome.probe
        for words in (probe.question, probe.source, probe.use, probe.shows, probe.does_not_show):
            assert " ".join(words.split()) in text
        assert f'id="probe-{probe.name}"' in page
        assert f'href="#probe-{probe.name}"' in page


def test_a_finding_has_its_number_its_null_and_the_published_one(page):
    row = next(row for row in re.findall(r"<tr>.*?</tr>", page) if "output, equal" in row)
    assert Page(row).text == "Change of the output, equal-0.10.10 [0.00, 0.20], a guessIMDB 0.437"


def test_a_probe_without_published_numbers_has_no_column_for_them():
    assert "published" in probe_page(planted_probes(["agreement"])).split("</style>")[1]
    assert "published" not in probe_page(planted_probes(["adversarial"])).split("</style>")[1]


def test_pictures_of_one_quantity_share_an_axis_that_includes_zero():
    first, second, tau, lost = finding_bars([CHANGE, LOSS, TAU, LOST])
    # The axis of the changes goes from −0.1 to 0.5.
    place = {number: 3 + 94 * (number + 0.1) / 0.6 for number in (-0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5)}
    zero, value, low, high = (first[name] for name in ("zero", "value", "value-low", "value-high"))
    assert [zero, value, low, high] == pytest.approx([place[0.0], place[0.4], place[0.3], place[0.5]])
    # Without an interval, both ends are at the number.
    assert [second[name] for name in ("value", "value-low", "null", "null-high")] == pytest.approx(
        [place[-0.1], place[-0.1], place[0.1], place[0.2]]
    )
    assert [tau["zero"], tau["value-high"]] == [3, 97]
    assert "null" not in tau
    assert lost == {}


def test_a_quantity_that_is_always_zero_is_drawn():
    (bar,) = finding_bars([Finding("Share", Quantity(0.0, nan, nan))])
    assert {*bar.values()} == {3.0}


def test_only_a_finding_with_a_null_draws_one(page):
    bars = re.findall(r'<span class="bar".*?</span>', page)
    assert len(bars) == len([*RESULTS["permuted"].findings[:3], TAU])
    assert [("<b>" in bar) for bar in bars] == ["--null:" in bar for bar in bars]


def test_what_a_user_wrote_is_text():
    page = probe_page(planted_probes(dataset=NASTY, notes=(NASTY,)))
    assert Page(page).wrong == []
    assert "<script>alert" not in page


def test_a_notebook_cell_folds_the_probes(report, page):
    cell = report._repr_html_()
    assert "<html" not in cell
    assert Page(cell).count("details") == 1
    assert Page(page).count("details") == 0
