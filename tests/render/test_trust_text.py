from dataclasses import replace

import numpy as np
import pytest

from heedful.render.trust_text import about, amount, cost, in_order, mark, shared, skipped, unjudged
from tests.render.reports import METHODS, column, planted


@pytest.fixture(scope="module")
def report():
    return planted()


def test_the_best_comes_first_and_the_control_last(report):
    assert [report.methods[row] for row in in_order(report)] == ["good", "same", "poor", "random"]
    without = planted(columns=(column("gini"),))
    assert without.verdicts == ()
    assert [without.methods[row] for row in in_order(without)] == list(METHODS)


def test_marks_say_which_side_of_the_control_a_mean_is_on(report):
    marks = {(method, k): mark(report, row, k) for row, method in enumerate(METHODS) for k in range(3)}
    assert {marks["good", k] for k in range(3)} == {"better"}
    assert {marks["poor", k] for k in range(3)} == {"worse"}
    assert {marks[method, k] for method in ("same", "random") for k in range(3)} == {""}


@pytest.mark.parametrize(
    ("mean", "low", "high", "expected"),
    [
        (3.7012, 3.4, 4.0, ("3.70", "0.30")),
        (-0.0004, -0.1, 0.1, ("0.00", "0.10")),
        (1234.5, 1200.0, 1270.0, ("1234", "35")),
        (0.5, 0.5, 0.5, ("0.500", "0.000")),
        (2.5e-7, 2e-7, 3e-7, ("2.50e-07", "5e-08")),
        (3e8, 2e8, 4e8, ("3.00e+08", "1e+08")),
        (np.nan, np.nan, np.nan, ("—", "")),
    ],
)
def test_a_mean_has_as_many_decimals_as_its_interval_leaves(mean, low, high, expected):
    assert amount(mean, low, high) == expected


def test_costs_are_short():
    assert [cost(value) for value in (0.0, 1.0, 2.345, 1234.4, np.nan)] == ["0", "1", "2.3", "1,234", "—"]


def test_a_reason_is_said_once_with_all_it_holds_for(report):
    (only,) = skipped(report)
    assert str(only) == "same – evidence-against: the method gives no sign, and this asks for one (30 texts)."


def test_reasons_that_differ_in_figures_alone_are_one_and_whole_texts_are_counted(report):
    first, second, third = report.measured[:3]
    changed = (
        replace(first, reasons={"good": {"": "good needs at least 2 words; the document has 1."}}),
        replace(second, reasons={"good": {"": "good needs at least 2 words; the document has 0."}}),
        replace(third, skipped="The text holds no word.", values={}, reasons={}),
        *report.measured[3:],
    )
    said = [str(one) for one in skipped(replace(report, measured=changed))]
    assert said == [
        "same – evidence-against: the method gives no sign, and this asks for one (27 texts).",
        "good: needs at least 2 words; the document has 1, and others likewise (2 texts).",
        "not measured: The text holds no word (1 text).",
    ]


def test_metrics_share_a_line_only_where_the_same_methods_lack_them(report):
    why = "{}: nobody marked the evidence in this text."
    reasons = {
        "good": {"iou": why.format("iou"), "auprc": why.format("auprc")},
        "poor": {"iou": why.format("iou"), "auprc": why.format("auprc"), "token-f1": why.format("token-f1")},
    }
    changed = replace(report, measured=(replace(report.measured[0], reasons=reasons), *report.measured[1:]))
    found = {(one.methods, one.metrics) for one in skipped(changed)}
    # Methods stand in the report's order.
    assert {(("poor", "good"), ("iou", "auprc")), (("poor",), ("token-f1",))} <= found


def test_the_head_counts_texts_and_right_answers(report):
    assert about(report) == "planted (test), 30 texts, of which the model gets 50% right"
    lost = replace(report.measured[0], skipped="The text holds no word.")
    assert "29 of 30 texts" in about(replace(report, measured=(lost, *report.measured[1:])))
    unlabelled = tuple(replace(one, label=None) for one in report.measured)
    assert about(replace(report, measured=unlabelled)) == "planted (test), 30 texts"


def test_it_is_said_how_many_thinned_texts_were_shared(report):
    assert "took 3,000; the metrics wanted 30,000, of which the model had to answer 300." in shared(report)


def test_without_a_metric_that_counts_there_is_no_verdict_and_a_reason(report):
    assert unjudged(report) == ""
    assert "deletion, insertion" in unjudged(planted(columns=(column("gini"),)))
