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

    `score` says where it lies between the worst method of a text (0) and the best (1), on average over texts and
    metrics, with its interval. `gain` is by how much it lies above the control, on texts where both have numbers, and
    `beats_control` the corrected p-value of that; `behind` is the corrected p-value of the difference from the best.
    """

    method: str
    score: float
    low: float
    high: float
    gain: float
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
        others = [one.method for one in equals if one.method != self.recommended]
        said = f"use {self.recommended}; not told apart from it: {', '.join(others)}"
        cheaper = all(_cost(cheapest) < _cost(one) for one in equals if one.method == self.recommended)
        return f"{said}, of which {cheapest.method} costs least." if cheaper and len(equals) > 2 else f"{said}."


def needed(n_pairs: int) -> int:
    """From how many documents on a difference can be told, however large it is: 2 · 2⁻ⁿ is the least p-value."""
    n = 1
    while 2.0 ** (1 - n) * n_pairs >= LEVEL:
        n += 1
    return n


def _cost(one: Standing) -> float:
    return inf if one.passes is None else one.passes


def places(
    values: Float[np.ndarray, "method metric document"], higher: Sequence[bool]
) -> Float[np.ndarray, "method document"]:
    """Where every method lies between the worst (0) and the best (1) on a document, the mean over metrics.

    Where all are equal they lie in the middle. Sizes count, and not ranks: many methods are nearly as good as the best
    on a text, and who is first among them is chance. A method without a number for one of the metrics has none for the
    document.
    """
    up = np.where(higher, 1.0, -1.0)[:, None] * values
    there = ~np.isnan(up)
    low, high = np.where(there, up, np.inf).min(axis=0), np.where(there, up, -np.inf).max(axis=0)
    apart = np.isfinite(low) & (high > low)
    width = np.where(apart, high - low, 1.0)
    found = np.where(apart, (up - np.where(apart, low, 0.0)) / width, 0.5)
    return np.where(there, found, np.nan).mean(axis=1)


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
            and (~np.isnan(values[row][columns])).all(axis=0).sum() > 1
        ]
        if there and len(rows) > 1:
            place = places(values[rows][:, columns], [higher[column] for column in columns])
            asked.append((use, tuple(there), rows, place))
    pairs = [(number, a, b) for number, (_, _, rows, _) in enumerate(asked) for a in range(len(rows)) for b in range(a)]
    if not pairs:
        return ()
    differences = np.stack([asked[number][3][a] - asked[number][3][b] for number, a, b in pairs])
    p = dict(zip(pairs, holm(sign_flips(differences, seed)).tolist(), strict=True))

    def told_apart(number: int, a: int, b: int) -> float:
        return 1.0 if a == b else p[number, max(a, b), min(a, b)]

    found = []
    for number, (use, names, rows, place) in enumerate(asked):
        score, (low, high) = means(place), intervals(place, seed)
        order = sorted(range(len(rows)), key=lambda row: (-score[row], methods[rows[row]]))
        control = next((row for row in order if methods[rows[row]] == CONTROL), None)
        # Of paired differences: a method may have numbers for other texts than the control.
        gains = np.zeros(len(rows)) if control is None else means(place - place[control])
        chance = [1.0 if control is None else told_apart(number, row, control) for row in range(len(rows))]
        better = [row for row in order if gains[row] > 0 and chance[row] < LEVEL]

        def beats(one: int, other: int, number: int = number, place: np.ndarray = place) -> bool:
            gain = means((place[one] - place[other])[None])[0]
            return bool(gain > 0) and told_apart(number, one, other) < LEVEL

        # Scores are over the texts that a method has numbers for; on those of both the order may be another.
        unbeaten = [row for row in better if not any(beats(other, row) for other in better)]
        best = [*unbeaten, *better, *order][0]
        standings = tuple(
            Standing(
                methods[rows[row]],
                float(score[row]),
                float(low[row]),
                float(high[row]),
                float(np.nan_to_num(gains[row])),
                chance[row],
                told_apart(number, row, best),
                None if isnan(passes[rows[row]]) else float(passes[rows[row]]),
            )
            for row in order
        )
        as_good = tuple(methods[rows[row]] for row in better if not beats(best, row))
        found.append(Verdict(use, names, standings, methods[rows[best]] if better else None, as_good))
    return tuple(found)
