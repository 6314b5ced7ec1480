"""Planted reports: `good` beats the control, `poor` loses to it, `same` is not distinguishable from it."""

from dataclasses import replace

import numpy as np

from heedful.evaluation.journal import DocumentResult, SkipReason
from heedful.evaluation.report import Column, Report

METHODS = ("same", "poor", "good", "random")
PASSES = {"same": 1000.0, "poor": 1.0, "good": 10.0, "random": 0.0}
LEVELS = {"same": 0.0, "poor": -5.0, "good": 5.0, "random": 0.0}
NASTY = '<script>alert(1)</script> & "x" \' </td> \x1b[31m \u202e שלום'
N_DOCUMENTS = 30


def column(name, better="higher"):
    return Column(name, f"Is it {name}?", better, f"Someone, 2020, on {name}", f"{name} elsewhere.", {"n_steps": 10})


COLUMNS = (column("deletion"), column("sufficiency", "lower"), column("evidence-against"))


def measured(place, columns, units):
    """What was measured on one text; `same` has no sign, and so no evidence against."""
    rng = np.random.default_rng(place)
    values, reasons = {}, {}
    for method in METHODS:
        values[method] = {}
        for column in columns:
            sign = 1.0 if column.better == "higher" else -1.0
            value = sign * LEVELS[method] + float(rng.normal())
            if method == "same" and column.name == "evidence-against":
                sentence = "this metric needs signed scores; the method's scores are unsigned."
                reasons.setdefault(method, {})[column.name] = SkipReason(
                    sentence, column.name, "Unsupported in measure"
                )
            else:
                values[method][column.name] = value
    scores = {method: rng.normal(size=len(units)).tolist() for method in METHODS}
    agreement = {a: {b: 1.0 if a == b else -0.5 + 0.01 * place for b in METHODS} for a in METHODS}
    return DocumentResult(
        place,
        " ".join(units),
        label=place % 2,
        predicted="positive",
        units=list(units),
        scores=scores,
        values=values,
        reasons=reasons,
        passes=dict(PASSES),
        seconds={method: 0.001 * passes for method, passes in PASSES.items()},
        agreement=agreement,
        masks_explaining=100,
        masks_requested=1000,
        masks_evaluated=10,
    )


def planted(columns=COLUMNS, n_documents=N_DOCUMENTS, units=("a", "fine", "film", "but", "too", "long"), **changes):
    done = tuple(measured(place, columns, units) for place in range(n_documents))
    settings = {method: {"unit": "word", "n_samples": 500 + number} for number, method in enumerate(METHODS)}
    report = Report("f00d", "planted (test)", ("negative", "positive"), METHODS, settings, tuple(columns), done, (), 0)
    return replace(report, **changes)


def renamed(report, old, new):
    """The same report with another name for a method."""

    def of(by_method):
        return {new if name == old else name: value for name, value in by_method.items()}

    done = tuple(
        replace(
            result,
            scores=of(result.scores),
            values=of(result.values),
            reasons=of(result.reasons),
            passes=of(result.passes),
            seconds=of(result.seconds),
            agreement={a: of(others) for a, others in of(result.agreement).items()},
        )
        for result in report.measured
    )
    methods = tuple(new if name == old else name for name in report.methods)
    return replace(report, methods=methods, settings=of(report.settings), measured=done)
