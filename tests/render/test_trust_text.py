from dataclasses import replace

import numpy as np
import pytest

from heedful.evaluation.journal import SkipReason
from heedful.render.trust_text import (
    cause_counts,
    masks_summary,
    mean_and_interval,
    no_verdict_reason,
    ranked_methods,
    request_summary,
    short_number,
    significance_mark,
    skip_reasons,
    texts_summary,
    use_phrase,
)
from tests.render.reports import METHODS, column, planted


@pytest.fixture(scope="module")
def report():
    return planted()


def test_the_best_comes_first_and_the_control_last(report):
    assert [report.methods[row] for row in ranked_methods(report)] == ["good", "same", "poor", "random"]
    without = planted(columns=(column("gini"),))
    assert without.verdicts == ()
    assert [without.methods[row] for row in ranked_methods(without)] == list(METHODS)


def test_marks_say_which_side_of_the_control_a_mean_is_on(report):
    marks = {(method, k): significance_mark(report, row, k) for row, method in enumerate(METHODS) for k in range(3)}
    assert {marks["good", k] for k in range(3)} == {"better"}
    assert {marks["poor", k] for k in range(3)} == {"worse"}
    assert {marks[method, k] for method in ("same", "random") for k in range(3)} == {""}


@pytest.mark.parametrize(
    ("mean", "low", "high", "expected"),
    [
        (3.7012, 3.4, 4.0, ("3.70", "[3.40, 4.00]")),
        (-0.0004, -0.1, 0.1, ("0.00", "[-0.10, 0.10]")),
        (1234.5, 1200.0, 1270.0, ("1234", "[1200, 1270]")),
        (0.5, np.nan, np.nan, ("0.5", "—")),
        (2.5e-7, 2e-7, 3e-7, ("2.50e-07", "[2.00e-07, 3.00e-07]")),
        (3e8, 2e8, 4e8, ("3.00e+08", "[2.00e+08, 4.00e+08]")),
        (np.nan, np.nan, np.nan, ("—", "")),
    ],
)
def test_a_mean_has_as_many_decimals_as_its_interval_leaves(mean, low, high, expected):
    assert mean_and_interval(mean, low, high) == expected


def test_costs_are_short():
    assert [short_number(value) for value in (0.0, 1.0, 2.345, 1234.4, np.nan)] == ["0", "1", "2.3", "1,234", "—"]


def test_a_reason_is_printed_once_with_its_methods_and_metrics(report):
    (only,) = skip_reasons(report)
    reason = "this metric needs signed scores; the method's scores are unsigned"
    assert str(only) == f"same – evidence-against: {reason} (30 texts)."


def test_reasons_that_differ_in_figures_alone_are_one_and_whole_texts_are_counted(report):
    def few(n):
        return SkipReason(f"needs at least 2 words; the document has {n}.", "good", "few words")

    first, second, third = report.measured[:3]
    changed = (
        replace(
            first, reasons={"good": {"": SkipReason("needs at least 2 words; the document has 1.", "good", "few")}}
        ),
        replace(
            second, reasons={"good": {"": SkipReason("needs at least 2 words; the document has 0.", "good", "few")}}
        ),
        replace(third, skipped=SkipReason("The text contains no words."), values={}, reasons={}),
        *report.measured[3:],
    )
    sentences = [str(result) for result in skip_reasons(replace(report, measured=changed))]
    assert sentences == [
        "same – evidence-against: this metric needs signed scores; the method's scores are unsigned (27 texts).",
        "good: needs at least 2 words; the document has 1; similar for other texts (2 texts).",
        "not measured: The text contains no words (1 text).",
    ]


def test_metrics_share_a_line_only_where_the_same_methods_lack_them(report):
    why = SkipReason("this text has no human rationale.")
    reasons = {"good": {"iou": why, "auprc": why}, "poor": {"iou": why, "auprc": why, "token-f1": why}}
    changed = replace(report, measured=(replace(report.measured[0], reasons=reasons), *report.measured[1:]))
    pairs = {(reason.methods, reason.metrics) for reason in skip_reasons(changed)}
    # Methods stand in the report's order.
    assert {(("poor", "good"), ("iou", "auprc")), (("poor",), ("token-f1",))} <= pairs


def test_the_head_counts_texts_and_right_answers(report):
    assert texts_summary(report) == "planted (test), 30 texts, model accuracy 50%"
    lost = replace(report.measured[0], skipped=SkipReason("The text contains no words."))
    assert "29 of 30 texts" in texts_summary(replace(report, measured=(lost, *report.measured[1:])))
    unlabelled = tuple(replace(result, label=None) for result in report.measured)
    assert texts_summary(replace(report, measured=unlabelled)) == "planted (test), 30 texts"


def test_masked_texts_are_counted_with_those_from_the_cache(report):
    assert masks_summary(report) == (
        "Masked texts evaluated: 3,000 for explanations, 300 for metrics (29,700 more from the cache)."
    )


def test_without_a_metric_that_counts_there_is_no_verdict_and_a_reason(report):
    assert no_verdict_reason(report) == ""
    assert "deletion, insertion" in no_verdict_reason(planted(columns=(column("gini"),)))


def test_a_verdict_names_its_use(report):
    verdict = report.verdicts[0]
    assert use_phrase(verdict) == "to rank words"


def test_only_options_that_were_set_are_listed(report):
    asked = {"target": "positive", "against": None, "half": False, "gold": ["fine", "dull"], "seed": 3}
    assert request_summary(replace(report, asked=asked)) == "target positive, gold fine, dull"


def test_causes_are_counted_with_their_tests(report):
    done = tuple(replace(m, causes={"sign lost": 2}, tested={"sign lost": [1, 2]}) for m in report.measured)
    assert cause_counts(replace(report, measured=done)) == ["sign lost (60; 30 of 60 confirmed by removal)"]
