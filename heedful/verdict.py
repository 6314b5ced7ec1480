"""Which explainer to use for what, from measured numbers; or that none wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Literal, final

import numpy as np
from jaxtyping import Float

from heedful.statistics import holm, intervals, means, sign_flips

CONTROL = "random"
LEVEL = 0.05
CHEAP = 3
"""Passes through the model, forward or backward, that a screening of many texts can afford."""
NO_WINNER = "no significant winner"

Use = Literal["rank words", "find the evidence against", "cheap screening", "find the known words"]
RANKING = ("deletion", "insertion", "comprehensiveness", "sufficiency")
USES: Mapping[Use, tuple[str, ...]] = {
    "rank words": RANKING,
    "find the evidence against": ("evidence-against",),
    "cheap screening": RANKING,
    "find the known words": ("gold-recall", "gold-precision"),
}
"""The metrics that count for each use. Agreement, compactness and plausibility count for none, for they do not look at
what the model does; nor do correlations with leave-one-out, which is best in them by definition."""


@final
@dataclass(frozen=True)
class Standing:
    """One method in one use.

    `score` is the share of the other methods that it beats, on average over documents and metrics, with its interval;
    chance is one half. `beats_control` is the corrected p-value of the difference from the control, `behind` that of
    the difference from the best.
    """

    method: str
    score: float
    low: float
    high: float
    beats_control: float
    behind: float
    passes: float | None
    """Of an explanation; None if it was read in."""


@final
@dataclass(frozen=True)
class Verdict:
    """The best of the methods that are better than the control beyond chance; none if there is none."""

    use: Use
    metrics: tuple[str, ...]
    standings: tuple[Standing, ...]
    """The best first; the control among them."""
    recommended: str | None
    as_good: tuple[str, ...]
    """The one recommended and those that are not told apart from it."""

    @property
    def sentence(self) -> str:
        if self.recommended is None:
            return f"{NO_WINNER}."
        equals = [one for one in self.standings if one.method in self.as_good]
        if len(equals) == 1:
            return f"use {self.recommended}."
        cheapest = min(equals, key=_cost)
        said = f"use {self.recommended}; not told apart from it: {', '.join(one.method for one in equals[1:])}"
        cheaper = _cost(cheapest) < _cost(equals[0])
        return f"{said}, of which {cheapest.method} costs least." if cheaper and len(equals) > 2 else f"{said}."


def _cost(one: Standing) -> float:
    return inf if one.passes is None else one.passes


def shares_beaten(
    values: Float[np.ndarray, "method metric document"], higher: Sequence[bool]
) -> Float[np.ndarray, "method document"]:
    """For every document the share of the other methods that each beats, the mean over metrics; equals share it.

    A method without a number for one of the metrics has none for the document.
    """
    found = []
    for index, up in enumerate(higher):
        v = values[:, index] if up else -values[:, index]
        there = ~np.isnan(v)
        wins = ((v[:, None] > v[None]) + 0.5 * (v[:, None] == v[None])).sum(axis=1) - 0.5 * there
        found.append(np.where(there, wins / np.maximum(there.sum(axis=0) - 1, 1), np.nan))
    return np.mean(found, axis=0)


def verdicts(
    methods: Sequence[str],
    metrics: Sequence[str],
    higher: Sequence[bool],
    values: Float[np.ndarray, "method metric document"],
    passes: Float[np.ndarray, "method"],
    seed: int,
) -> tuple[Verdict, ...]:
    """A verdict for every use whose metrics were measured.

    Of the methods that are better than the control beyond chance the best is recommended, with those of them named
    beside it that are not told apart from it. P-values come from flipped signs of paired differences,
    corrected for all pairs of methods in all uses.
    """
    asked: list[tuple[Use, tuple[str, ...], list[int], np.ndarray]] = []
    for use, names in USES.items():
        there = [name for name in names if name in metrics]
        columns = [metrics.index(name) for name in there]
        rows = [
            row
            for row, method in enumerate(methods)
            if (use != "cheap screening" or passes[row] <= CHEAP or method == CONTROL)
            and bool((~np.isnan(values[row][columns])).all(axis=0).any())
        ]
        if there and len(rows) > 1:
            beaten = shares_beaten(values[rows][:, columns], [higher[column] for column in columns])
            asked.append((use, tuple(there), rows, beaten))
    pairs = [(number, a, b) for number, (_, _, rows, _) in enumerate(asked) for a in range(len(rows)) for b in range(a)]
    if not pairs:
        return ()
    differences = np.stack([asked[number][3][a] - asked[number][3][b] for number, a, b in pairs])
    p = dict(zip(pairs, holm(sign_flips(differences, seed)).tolist(), strict=True))

    def told_apart(number: int, a: int, b: int) -> float:
        return 1.0 if a == b else p[number, max(a, b), min(a, b)]

    found = []
    for number, (use, names, rows, beaten) in enumerate(asked):
        score, (low, high) = means(beaten), intervals(beaten, seed)
        order = sorted(range(len(rows)), key=lambda row: (-score[row], methods[rows[row]]))
        control = next((row for row in order if methods[rows[row]] == CONTROL), None)
        # Of paired differences: a method may have numbers for other texts than the control.
        gains = np.zeros(len(rows)) if control is None else means(beaten - beaten[control])
        chance = [1.0 if control is None else told_apart(number, row, control) for row in range(len(rows))]
        better = [row for row in order if gains[row] > 0 and chance[row] < LEVEL]
        best = better[0] if better else order[0]
        standings = tuple(
            Standing(
                methods[rows[row]],
                float(score[row]),
                float(low[row]),
                float(high[row]),
                chance[row],
                told_apart(number, row, best),
                None if isnan(passes[rows[row]]) else float(passes[rows[row]]),
            )
            for row in order
        )
        as_good = tuple(methods[rows[row]] for row in better if told_apart(number, row, best) >= LEVEL)
        found.append(Verdict(use, names, standings, as_good[0] if as_good else None, as_good))
    return tuple(found)
