import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import heedful
from heedful.render.trust_page import trust_page
from tests.render.reports import METHODS, NASTY, column, planted, renamed

VOID = {"meta", "br", "img", "hr", "input"}
CLOSES_ITSELF = {"td", "th"}


class Reader(HTMLParser):
    """Collects tags and text, and what is closed in a wrong order."""

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.wrong, self.text = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID | CLOSES_ITSELF:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"]):
            self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    return reader


def words(html):
    return " ".join("".join(read(html).text).split())


@pytest.fixture(scope="module")
def report():
    return planted(notes=("All texts are planted.",))


@pytest.fixture(scope="module")
def page(report):
    return trust_page(report)


def test_the_page_is_self_contained_and_whole(page):
    reader = read(page)
    assert reader.wrong == []
    assert reader.open == []
    assert not [found for _, found in reader.tags if {"src", "href", "action"} & set(found)]
    assert not re.search(r"https?://|@import|url\(", page)
    assert page.startswith("<!doctype html>")
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_the_verdict_comes_first_in_plain_words(report, page):
    text = words(page)
    assert text.index("Verdict") < text.index("How they stand") < text.index("Every method on every metric")
    for verdict in report.verdicts:
        first, _, rest = verdict.sentence.rstrip(".").partition("; ")
        assert first in text
        assert rest in text
    assert "To rank wordsuse good" in text
    assert "no significant winner" in words(trust_page(planted(n_documents=2)))


def test_the_head_says_what_was_measured(page):
    text = words(page)
    assert "planted (test), 30 texts, of which the model gets 50% right" in text
    assert "3 methods and the control random, 3 metrics, seed 0" in text
    assert "the metrics wanted 30,000, of which the model had to answer 300." in text
    assert "All texts are planted." in text


def test_the_table_sorts_on_full_numbers(report, page):
    body = re.search(r'<table class="grid sortable">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)[1]
    rows = dict(re.findall(r"<tr[^>]*><th scope=row>(\w+)(.*?)</tr>", body, re.DOTALL))
    assert list(rows) == ["good", "same", "poor", "random"]
    for row, method in enumerate(METHODS):
        values = [float(value) for value in re.findall(r'data-v="([^"]+)"', rows[method])]
        expected = [*report.means[row], report.passes[row], 1000 * report.seconds[row]]
        assert np.array_equal(values, np.nan_to_num(expected, nan=-1e308))
    assert rows["good"].count("●") == 3
    assert rows["poor"].count("○") == 3
    assert "—" in rows["same"]


def test_intervals_and_counts_are_told(report, page):
    low, high = report.intervals
    row = METHODS.index("good")
    assert f'title="{low[row, 0]:.4g} to {high[row, 0]:.4g}, 30 texts, p = ' in page
    reasons = {"good": {"deletion": "deletion is not a finite number here."}}
    gone = replace(report.measured[0], values={**report.measured[0].values, "good": {}}, reasons=reasons)
    fewer = trust_page(replace(report, measured=(gone, *report.measured[1:])))
    assert "<small>n = 29</small>" in fewer
    assert "good – deletion: is not a finite number here (1 text)." in words(fewer)


def test_every_metric_is_explained_without_pointing_at_it(report, page):
    text = words(page)
    for one in report.columns:
        assert f"{one.name} {'↑' if one.better == 'higher' else '↓'} {one.better} is better" in text
        assert f"{one.question} Not for {one.not_for} {one.source}; n_steps=10" in text


def test_agreement_is_called_a_description(page):
    text = words(page)
    assert "This is a description and never a score: two methods may agree and both be wrong" in text


def test_causes_are_shown_only_where_there_are_some(report, page):
    assert "Why they differ" not in page
    found = tuple(replace(one, causes={"sign lost": 2}) for one in report.measured)
    html = trust_page(replace(report, measured=found))
    assert "Why they differ" in html
    assert "sign lost" in html


def test_settings_of_every_method_are_listed(page):
    for number, method in enumerate(METHODS):
        assert re.search(rf"<th scope=row>{method}<td>[^<]+<td>unit=word, n_samples={500 + number}</tr>", page)
    read_in = trust_page(planted(settings={}))
    assert "read in, and not made again" in read_in


def test_texts_show_the_strongest_units_of_each_method(report, page):
    details = re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>", page, re.DOTALL)
    assert len(details) == 20
    # Methods agree least on the first texts, by the way it was planted.
    for place, (summary, content) in enumerate(details):
        one = report.documents[place]
        label = report.classes[place % 2]
        assert f"text {place}, predicted positive, labelled {label}, mean ρ {-0.5 + 0.01 * place:.2f}" in summary
        rows = dict(re.findall(r"<th scope=row>(\w+)<td[^>]*>(.*?)</tr>", content, re.DOTALL))
        assert set(rows) == {"good", "same", "poor"}
        for method, row in rows.items():
            found = re.findall(r'<bdi class="w (\w+)" style="--s:([\d.]+)" title="([^"]+)">([^<]+)</bdi>', row)
            strongest = sorted(zip(one.scores[method], one.units, strict=True), key=lambda pair: -abs(pair[0]))[:5]
            assert [unit for *_, unit in found] == [unit for _, unit in strongest]
            assert [kind for kind, *_ in found] == ["neg" if score < 0 else "pos" for score, _ in strongest]
            assert [title for _, _, title, _ in found] == [f"{score:+.4g}" for score, _ in strongest]


def test_all_text_is_escaped_and_cannot_turn_the_page(report):
    units = ("good", NASTY, "film")
    nasty = renamed(planted(units=units, n_documents=4), "good", NASTY)
    lost = replace(nasty.measured[0], skipped=f"A reason {NASTY}", values={})
    odd = replace(
        nasty,
        measured=(*nasty.measured[1:], lost),
        notes=(NASTY,),
        dataset=NASTY,
        classes=(NASTY, "positive"),
        columns=(replace(nasty.columns[0], question=NASTY, not_for=NASTY, source=NASTY), *nasty.columns[1:]),
    )
    html = trust_page(odd)
    reader = read(html)
    assert reader.wrong == []
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "שלום" in html
    assert "&lt;script&gt;alert(1)" in html


def test_a_report_without_a_verdict_or_with_one_number_still_has_a_page():
    for odd in (planted(columns=(column("gini"),)), planted(columns=(column("gini"),), n_documents=1)):
        html = trust_page(odd)
        assert read(html).wrong == []
        assert "No use can be judged" in html
        assert "How they stand" not in html
        assert "What it costs" not in html


def test_a_metric_without_any_number_is_a_column_of_dashes():
    silent = planted(n_documents=3)
    done = tuple(
        replace(one, values={m: {"deletion": v["deletion"]} for m, v in one.values.items()}) for one in silent.measured
    )
    html = trust_page(replace(silent, measured=done))
    assert html.count('<td data-v="-1e+308">—') == 2 * len(METHODS)


def test_the_same_report_is_the_same_page(report, page):
    assert trust_page(planted(notes=report.notes)) == page


def test_a_notebook_gets_the_page_with_its_style_inside(report):
    html = report._repr_html_()
    body = html[html.index("<body") :]
    assert "<style>" in body
    assert '<div class="heedful trust">' in body


def test_a_real_report_of_a_model_is_drawn(tiny):
    texts = ["good film was dull", "the story was very bad", "not good , not bad", "a bright plot and an actor"]
    report = heedful.trust(tiny, texts, ["attention-mean", "leave-one-out"], ["deletion", "evidence-against"], 4)
    html = trust_page(report)
    assert read(html).wrong == []
    for value in report.means.ravel():
        assert np.isnan(value) or f'data-v="{float(value)!r}"' in html
    assert "Attention from [CLS]" in html
