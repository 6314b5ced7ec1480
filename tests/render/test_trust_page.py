import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import heedful
from heedful.document.note import Note
from heedful.evaluation.journal import SkipReason
from heedful.render.trust_page import trust_page
from tests.render.pages import Page
from tests.render.reports import METHODS, NASTY, column, planted, renamed


@pytest.fixture(scope="module")
def report():
    return planted(run_notes=(Note("All texts are planted."),))


@pytest.fixture(scope="module")
def page(report):
    return trust_page(report)


def test_the_page_is_self_contained_and_whole(page):
    reader = Page(page)
    assert reader.wrong == reader.links == []
    assert not re.search(r"https?://|@import|url\((?!#)", page)


def test_the_verdict_comes_first_in_plain_words(report, page):
    text = Page(page).text
    assert text.index("Verdict") < text.index("Scores") < text.index("Every method on every metric")
    for verdict in report.verdicts:
        assert f"by {', '.join(verdict.metrics)}" in text
    assert "To rank wordsuse goodit beats the random control and every other methodby deletion, sufficiency" in text
    assert "no significant winner" in Page(trust_page(planted(n_documents=2))).text


def test_every_verdict_has_its_chart(report, page):
    charts = re.findall(r'<svg[^>]*class="chart".*?</svg>', page, re.DOTALL)
    assert len(charts) == len(report.verdicts) + 1
    for chart, verdict in zip(charts, report.verdicts, strict=False):
        texts = [element.text for element in ElementTree.fromstring(chart).iter("text")]
        for standing in verdict.standings:
            assert standing.method in texts
            interval = "" if np.isnan(standing.low) else f"  [{standing.low:.2f}, {standing.high:.2f}]"
            assert f"{standing.score:.2f}{interval}" in texts


def test_bars_of_a_metric_share_its_axis(report, page):
    """Places are read back into the metric's own numbers, by two of them."""
    low, high = (ends[:, 0] for ends in report.intervals)
    body = re.search(r'<table class="grid sortable">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)[1]
    bars = {}
    for name, row in re.findall(r'<th scope="row">(\w+)</th>(.*?)</tr>', body, re.DOTALL):
        style = re.search(r'class="bar" style="([^"]+)"', row)[1]
        bars[name] = {key: float(value) for key, value in re.findall(r"--(\w+):([\d.]+)%", style)}
    places = [bars[method][end] for method in METHODS for end in ("low", "mean", "high")]
    values = np.stack([low, report.means[:, 0], high], axis=1).ravel()
    slope, start = np.polyfit(values, places, 1)
    assert slope > 0
    assert places == pytest.approx(start + slope * values, abs=0.1)
    assert 0 <= min(places) < max(places) <= 100
    assert {bar["control"] for bar in bars.values()} == {bars["random"]["mean"]}


def test_the_matrix_has_every_agreement_with_its_tint(report, page):
    matrix = re.search(r'<table class="matrix">(.*?)</table>', page, re.DOTALL)[1]
    cells = re.findall(r'<td class="w (\w+)" style="--s:([\d.]+)">([+-][\d.]+)</td>', matrix)
    order = ["good", "same", "poor", "random"]
    mean = np.mean([-0.5 + 0.01 * place for place in range(30)])
    expected = [1.0 if a == b else mean for a in order for b in order]
    assert [float(number) for *_, number in cells] == pytest.approx(expected, abs=0.005)
    assert [float(tint) for _, tint, _ in cells] == pytest.approx(np.abs(expected), abs=5e-4)
    assert [side for side, *_ in cells] == ["pos" if value > 0 else "neg" for value in expected]
    unknown = tuple(replace(result, agreement={}) for result in report.measured)
    matrix = re.search(r'<table class="matrix">(.*?)</table>', trust_page(replace(report, measured=unknown)), re.DOTALL)
    assert matrix[1].count("—") == 16


def test_the_head_says_what_was_measured(page):
    text = Page(page).text
    assert "planted (test), 30 texts, model accuracy 50%" in text
    assert "3 methods and the control random, 3 metrics." in text
    assert "Classes: negative, positive. Seed: 0. Options: defaults." in text
    assert "Masked texts evaluated: 3,000 for explanations, 300 for metrics (29,700 more from the cache)." in text
    assert "All texts are planted." in text


def test_the_table_sorts_on_full_numbers(report, page):
    body = re.search(r'<table class="grid sortable">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)[1]
    rows = dict(re.findall(r'<tr[^>]*><th scope="row">(\w+)</th>(.*?)</tr>', body, re.DOTALL))
    assert list(rows) == ["good", "same", "poor", "random"]
    for row, method in enumerate(METHODS):
        values = [float(value) for value in re.findall(r'data-v="([^"]+)"', rows[method])]
        expected = [*report.means[row], report.passes[row], 1000 * report.seconds[row]]
        assert np.array_equal(values, np.nan_to_num(expected, nan=-1e308))
    assert rows["good"].count("●") == 3
    assert rows["poor"].count("○") == 3
    assert "—" in rows["same"]


def test_intervals_and_counts_are_shown(report, page):
    low, high = report.intervals
    row = METHODS.index("good")
    assert f'title="{low[row, 0]:.4g} to {high[row, 0]:.4g}, 30 texts, p = ' in page
    reasons = {"good": {"deletion": SkipReason("is not a finite number here.", "deletion")}}
    gone = replace(report.measured[0], values={**report.measured[0].values, "good": {}}, reasons=reasons)
    fewer = trust_page(replace(report, measured=(gone, *report.measured[1:])))
    assert "<small>n = 29</small>" in fewer
    assert "good – deletion: is not a finite number here (1 text)." in Page(fewer).text


def test_every_metric_is_explained_without_pointing_at_it(report, page):
    text = Page(page).text
    for metric in report.columns:
        assert f"{metric.name} {'↑' if metric.better == 'higher' else '↓'} {metric.better} is better" in text
        assert f"{metric.question} Not for {metric.not_for} {metric.source}; n_steps=10" in text


def test_agreement_is_called_a_description(page):
    text = Page(page).text
    assert "It is a description, not a score: two methods can agree and both be wrong" in text


def test_causes_are_shown_only_where_there_are_some(report, page):
    assert "Why they differ" not in page
    causes = {"sign lost": 1, "value typical": 4}
    measured = tuple(replace(result, causes=causes, tested={"sign lost": [1, 2]}) for result in report.measured)
    html = trust_page(replace(report, measured=measured))
    table = re.search(r'<table class="causes">(.*?)</table>', html, re.DOTALL)[1]
    widths = dict(re.findall(r'scope="row">([\w ]+)<br>.*?style="width:([\d.]+)%"', table, re.DOTALL))
    assert widths == {"value typical": "100.0", "sign lost": "25.0"}
    assert ">120<" in table
    assert "30 of 60 confirmed" in table
    assert "attention is high on a unit that is evidence against the target" in table


def test_settings_of_every_method_are_listed(page):
    for number, method in enumerate(METHODS):
        assert re.search(
            rf'<th scope="row">{method}</th><td>[^<]+</td><td>unit=word, n_samples={500 + number}</td></tr>', page
        )
    read_in = trust_page(planted(settings={}))
    assert "imported scores" in read_in


def test_texts_show_the_strongest_units_of_each_method(report, page):
    details = re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>", page, re.DOTALL)
    assert len(details) == 20
    # Methods agree least on the first texts, by the way it was planted.
    for place, (summary, content) in enumerate(details):
        one = report.documents[place]
        label = report.classes[place % 2]
        assert f"text {place}, predicted positive, labelled {label}, mean ρ {-0.5 + 0.01 * place:.2f}" in summary
        rows = dict(re.findall(r'<th scope="row">(\w+)</th><td[^>]*>(.*?)</tr>', content, re.DOTALL))
        assert set(rows) == {"good", "same", "poor"}
        for method, row in rows.items():
            words = re.findall(r'<bdi class="w (\w+)" style="--s:([\d.]+)" title="([^"]+)">([^<]+)</bdi>', row)
            strongest = sorted(zip(one.scores[method], one.units, strict=True), key=lambda pair: -abs(pair[0]))[:5]
            assert [unit for *_, unit in words] == [unit for _, unit in strongest]
            assert [kind for kind, *_ in words] == ["neg" if score < 0 else "pos" for score, _ in strongest]
            assert [title for _, _, title, _ in words] == [f"{score:+.4g}" for score, _ in strongest]


def test_all_text_is_escaped_and_cannot_turn_the_page(report):
    units = ("good", NASTY, "film")
    nasty = renamed(planted(units=units, n_documents=4), "good", NASTY)
    lost = replace(nasty.measured[0], skipped=SkipReason(f"A reason {NASTY}"), values={})
    odd = replace(
        nasty,
        measured=(*nasty.measured[1:], lost),
        run_notes=(Note(NASTY),),
        dataset=NASTY,
        model=NASTY,
        settings={NASTY: {NASTY: NASTY}},
        asked={NASTY: NASTY},
        classes=(NASTY, "positive"),
        columns=(replace(nasty.columns[0], question=NASTY, not_for=NASTY, source=NASTY), *nasty.columns[1:]),
    )
    html = trust_page(odd)
    reader = Page(html)
    assert reader.wrong == []
    assert reader.count("script") == 1
    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "שלום" in html
    assert "&lt;script&gt;alert(1)" in html


def test_a_report_without_a_verdict_or_with_one_number_still_has_a_page():
    for odd in (planted(columns=(column("gini"),)), planted(columns=(column("gini"),), n_documents=1)):
        html = trust_page(odd)
        assert Page(html).wrong == []
        assert "There is no verdict" in html
        assert "<h2>Scores</h2>" not in html
        assert "<h2>Cost</h2>" not in html


def test_a_metric_without_any_number_is_a_column_of_dashes():
    silent = planted(n_documents=3)
    done = tuple(
        replace(result, values={m: {"deletion": v["deletion"]} for m, v in result.values.items()})
        for result in silent.measured
    )
    html = trust_page(replace(silent, measured=done))
    assert html.count('<td data-v="-1e+308">—</td>') == 2 * len(METHODS)


def test_the_same_report_is_the_same_page(report, page):
    assert trust_page(planted(run_notes=report.run_notes)) == page


def test_a_notebook_gets_the_content_with_its_style_and_the_numbers_folded(report):
    html = report._repr_html_()
    assert Page(html).wrong == []
    assert not re.search(r"<(!doctype|html|head|body)\b", html)
    assert "<style>" in html
    shown, folded = html.split("<summary>Every metric, agreement, settings and texts</summary>")
    assert '<div class="heedful trust">' in shown
    assert "<h2>Verdict</h2>" in shown
    assert "<h2>Every method on every metric</h2>" in folded


def test_a_real_report_of_a_model_is_drawn(tiny):
    texts = ["good film was dull", "the story was very bad", "not good , not bad", "a bright plot and an actor"]
    report = heedful.trust(tiny, texts, ["attention-mean", "leave-one-out"], ["deletion", "evidence-against"], 4)
    html = trust_page(report)
    assert Page(html).wrong == []
    for value in report.means.ravel():
        assert np.isnan(value) or f'data-v="{float(value)!r}"' in html
    assert "Attention weights from [CLS]" in html
