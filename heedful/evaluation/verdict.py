"""Which explainer to use for what, from measured numbers; or that none wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Literal, final

import numpy as np
from jaxtyping import Float

from heedful.evaluation.significance import holm, means, sign_flips
from heedful.statistics.intervals import mean_intervals

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
    beside it that are not told apart from it. P-values come from flipped signs of paired differences, corrected for
    all pairs of methods in all uses.
    """
    contests = [
        contest for use in USES if (contest := _contest(use, methods, metrics, higher, values, passes)) is not None
    ]
    pairs = [(contest, a, b) for contest in contests for a in range(len(contest.methods)) for b in range(a)]
    if not pairs:
        return ()
    corrected = holm(sign_flips(np.stack([contest.place[a] - contest.place[b] for contest, a, b in pairs]), seed))
    for (contest, a, b), p in zip(pairs, corrected.tolist(), strict=True):
        contest.p[a, b] = contest.p[b, a] = p
    return tuple(_verdict(contest) for contest in contests)


@final
@dataclass(frozen=True, eq=False)
class _Contest:
    """The methods that stand for one use: where each lies on every text, and the p-value of every two of them."""

    use: Use
    metrics: tuple[str, ...]
    methods: tuple[str, ...]
    passes: Float[np.ndarray, "method"]
    place: Float[np.ndarray, "method document"]
    p: Float[np.ndarray, "method method"]

    def gain(self, one: int, other: int) -> float:
        """How much further up one lies, on the texts that both have numbers for."""
        return float(np.nan_to_num(means((self.place[one] - self.place[other])[None])[0]))

    def beats(self, one: int, other: int) -> bool:
        return self.gain(one, other) > 0 and bool(self.p[one, other] < LEVEL)


def _contest(
    use: Use,
    methods: Sequence[str],
    metrics: Sequence[str],
    higher: Sequence[bool],
    values: Float[np.ndarray, "method metric document"],
    passes: Float[np.ndarray, "method"],
) -> _Contest | None:
    """None where a use has no metric, or fewer than two methods with numbers on two texts."""
    columns = [metrics.index(name) for name in USES[use] if name in metrics]
    rows = [
        row
        for row, method in enumerate(methods)
        if (use != "cheap screening" or passes[row] <= CHEAP or method == CONTROL)
        and (~np.isnan(values[row][columns])).all(axis=0).sum() > 1
    ]
    if not columns or len(rows) < 2:
        return None
    return _Contest(
        use,
        tuple(metrics[column] for column in columns),
        tuple(methods[row] for row in rows),
        passes[rows],
        places(values[rows][:, columns], [higher[column] for column in columns]),
        np.ones((len(rows), len(rows))),
    )


def _verdict(contest: _Contest) -> Verdict:
    names, score, (low, high) = contest.methods, means(contest.place), mean_intervals(contest.place, (0.0, 1.0))
    order = sorted(range(len(names)), key=lambda row: (-score[row], names[row]))
    # Where the control has no numbers, nobody is told apart from it.
    control = names.index(CONTROL) if CONTROL in names else None
    better = [row for row in order if control is not None and contest.beats(row, control)]
    # Scores are over the texts that a method has numbers for; on those that two have the order may be another.
    unbeaten = [row for row in better if not any(contest.beats(other, row) for other in better)]
    best = [*unbeaten, *better, *order][0]
    standings = tuple(
        Standing(
            names[row],
            float(score[row]),
            float(low[row]),
            float(high[row]),
            0.0 if control is None else contest.gain(row, control),
            1.0 if control is None else float(contest.p[row, control]),
            float(contest.p[row, best]),
            None if isnan(contest.passes[row]) else float(contest.passes[row]),
        )
        for row in order
    )
    as_good = tuple(names[row] for row in better if not contest.beats(best, row))
    return Verdict(contest.use, contest.metrics, standings, names[best] if better else None, as_good)
