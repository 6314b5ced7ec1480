"""Why methods differ on one text: a few lines for the terminal, tables for the page."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heedful.evaluation.disagreement import Disagreement, MethodPair
from heedful.evaluation.disagreement.accounts import TERMS, Terms, total
from heedful.evaluation.disagreement.causes import TERM_OF
from heedful.evaluation.disagreement.reliability import EXPECTED
from heedful.render.text_strip import visible

_WORDS, _OF_A_CAUSE = 3, 6


def cause_lines(disagreement: Disagreement) -> list[str]:
    """At most five lines: the units that methods score most differently, and what holds for the whole text."""
    lines = [f"Why they differ ({'exact' if disagreement.exact else 'a diagnostic, not a proof'}):"]
    for pair in disagreement.widest(_WORDS):
        (unit,) = pair.units
        strengths = [
            f"{strength:+.0%} by {method}"
            for strength, method in zip(unit.strengths, (pair.one, pair.other), strict=True)
        ]
        lines.append(f"  {visible(unit.word)}: {', '.join(strengths)}; {disagreement.reason(unit)}")
    if len(lines) == 1 and not disagreement.causes:
        return []
    tests = "; ".join(str(test) for test in disagreement.reliability[:2])
    of_text = [
        f"{cause.name}: {cause.sentence}"
        for cause in disagreement.causes
        if cause.name == "saturation" and cause.unit is None
    ]
    return [*lines, *(f"  {line}" for line in [*of_text, *([f"{tests}."] if tests else [])][:1])]


def causes_view(disagreement: Disagreement) -> dict[str, Any]:
    """The content of `causes.html`: causes, tests, the terms of each score, and the pairs that differ most."""
    by_name = {name: [cause for cause in disagreement.causes if cause.name == name] for name in TERM_OF}
    return {
        "exact": disagreement.exact,
        "tests": [(str(test), EXPECTED[test.cause]) for test in disagreement.reliability],
        "notes": disagreement.notes,
        "causes": [cause for causes in by_name.values() for cause in causes[:_OF_A_CAUSE]],
        "omitted": {name: len(causes) - _OF_A_CAUSE for name, causes in by_name.items() if len(causes) > _OF_A_CAUSE},
        "accounts": _accounts(disagreement),
        "pairs": [(pair, [(unit, disagreement.reason(unit)) for unit in pair.units]) for pair in _pairs(disagreement)],
    }


def _accounts(disagreement: Disagreement) -> list[dict[str, Any]]:
    """The longest sums of terms: from attention to the effect of removal, and to gradient × input."""
    methods: dict[tuple[str, ...], str] = {}
    for method in disagreement.representatives:
        methods.setdefault(tuple(disagreement.accounts[method]), method)
    return [
        _account(disagreement.words, method, disagreement.accounts[method])
        for names, method in methods.items()
        if len(names) > 1 and not any(set(names) < set(others) for others in methods)
    ]


def _account(words: tuple[str, ...], method: str, terms: Terms) -> dict[str, Any]:
    scores = total(terms)
    columns = np.stack([*terms.values(), scores], axis=1)
    order = np.argsort(-np.abs(scores), kind="stable").tolist()
    rows = [(words[unit], columns[unit].tolist()) for unit in order]
    return {"method": method, "terms": {name: TERMS[name] for name in terms}, "rows": rows}


def _pairs(disagreement: Disagreement) -> Sequence[MethodPair]:
    """Pairs of one method of each kind, the lowest rank correlation first."""
    kinds = set(disagreement.representatives)
    pairs = [pair for pair in disagreement.accounted if {pair.one, pair.other} <= kinds and pair.units]
    return sorted(pairs, key=lambda pair: np.nan_to_num(pair.correlation, nan=2.0))
