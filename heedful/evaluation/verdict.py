"""Verdicts: the recommended method for each use, or no significant winner."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isnan
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float

from heedful.evaluation.significance import holm, means, sign_flips
from heedful.statistics.intervals import mean_intervals

CONTROL = "random"
SIGNIFICANCE = 0.05
CHEAP = 3
"""The maximum number of passes, forward or backward, of a method for cheap screening."""
NO_WINNER = "no significant winner"

Use = Literal["rank words", "find the evidence against", "cheap screening", "find the known words"]
RANKING = ("deletion", "insertion", "comprehensiveness", "sufficiency")
USES: Mapping[Use, tuple[str, ...]] = {
    "rank words": RANKING,
    "find the evidence against": ("evidence-against",),
    "cheap screening": RANKING,
    "find the known words": ("gold-recall", "gold-precision"),
}
"""The metrics that count for each use. Agreement, compactness and plausibility count for none, because they do not
evaluate the model; nor do correlations with leave-one-out, which is best in them by definition."""


@final
@dataclass(frozen=True)
class Standing:
    """One method in one use.

    `score` is its position between the worst method of a text (0) and the best (1), the mean over texts and metrics,
    with its 95 % confidence interval. `gain` is the difference from the control, on texts where both have values, and
    `beats_control` its corrected p-value; `behind` is the corrected p-value of the difference from the best.
    """

    method: str
    score: float
    low: float
    high: float
    gain: float
    beats_control: float
    behind: float
    passes: float | None
    """The cost of an explanation; None if it was imported."""


@final
@dataclass(frozen=True)
class Verdict:
    """The best of the methods that are significantly better than the control; None if there is none."""

    use: Use
    metrics: tuple[str, ...]
    standings: tuple[Standing, ...]
    """The best first; the control among them."""
    recommended: str | None
    as_good: tuple[str, ...]
    """The recommended method and those that are not distinguishable from it."""

    def as_dict(self) -> dict[str, Any]:
        """All fields and the sentence, ready for JSON, without NaN."""
        standings = [
            {
                name: None if isinstance(value, float) and isnan(value) else value
                for name, value in asdict(standing).items()
            }
            for standing in self.standings
        ]
        return {**asdict(self), "standings": standings, "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.recommended is None:
            return f"{NO_WINNER}."
        return f"{'; '.join(filter(None, (f'use {self.recommended}', self.alternatives)))}."

    @property
    def alternatives(self) -> str:
        """The methods not distinguishable from the recommended one, and the cheapest; empty if there are none."""
        equals = [standing for standing in self.standings if standing.method in self.as_good]
        others = [equal.method for equal in equals if equal.method != self.recommended]
        if not others:
            return ""
        cheapest = min(equals, key=_cost)
        cheaper = all(_cost(cheapest) < _cost(equal) for equal in equals if equal.method == self.recommended)
        advice = f"; {cheapest.method} costs least" if cheaper and len(others) > 1 else ""
        return f"not distinguishable from it: {', '.join(others)}{advice}"


def texts_for_significance(n_pairs: int) -> int:
    """The fewest documents on which any difference can be significant: the smallest p-value is 2 · 2⁻ⁿ."""
    n = 1
    while 2.0 ** (1 - n) * n_pairs >= SIGNIFICANCE:
        n += 1
    return n


def _cost(standing: Standing) -> float:
    return inf if standing.passes is None else standing.passes


def relative_scores(
    values: Float[np.ndarray, "method metric document"], higher: Sequence[bool]
) -> Float[np.ndarray, "method document"]:
    """The position of every method between the worst (0) and the best (1) on a document, the mean over metrics.

    If all are equal, all are 0.5. Values count, not ranks: many methods are nearly as good as the best on a text, and
    their order is random. A method without a value for one of the metrics has none for the document.
    """
    up = np.where(higher, 1.0, -1.0)[:, None] * values
    present = ~np.isnan(up)
    low, high = np.where(present, up, np.inf).min(axis=0), np.where(present, up, -np.inf).max(axis=0)
    differ = np.isfinite(low) & (high > low)
    width = np.where(differ, high - low, 1.0)
    positions = np.where(differ, (up - np.where(differ, low, 0.0)) / width, 0.5)
    return np.where(present, positions, np.nan).mean(axis=1)


def verdicts(
    methods: Sequence[str],
    metrics: Sequence[str],
    higher: Sequence[bool],
    values: Float[np.ndarray, "method metric document"],
    passes: Float[np.ndarray, "method"],
    seed: int,
) -> tuple[Verdict, ...]:
    """A verdict for every use whose metrics were measured.

    The best of the methods that are significantly better than the control is recommended, together with those of them
    that are not distinguishable from it. P-values come from flipped signs of paired differences, corrected for all
    pairs of methods in all uses.
    """
    contests = [
        contest for use in USES if (contest := _contest(use, methods, metrics, higher, values, passes)) is not None
    ]
    if not contests:
        return ()
    differences = [contest.differences for contest in contests]
    corrected = holm(sign_flips(np.concatenate(differences), seed))
    by_contest = np.split(corrected, np.cumsum([len(rows) for rows in differences])[:-1])
    return tuple(
        _verdict(replace(contest, p=_symmetric(len(contest.methods), p)))
        for contest, p in zip(contests, by_contest, strict=True)
    )


def _symmetric(n: int, below: Float[np.ndarray, "pair"]) -> Float[np.ndarray, "method method"]:
    """The symmetric matrix with these values below its diagonal, and ones on it."""
    matrix = np.ones((n, n))
    a, b = np.tril_indices(n, -1)
    matrix[a, b] = matrix[b, a] = below
    return matrix


@final
@dataclass(frozen=True, eq=False)
class _Contest:
    """The methods of one use: the relative score of each on every text, and the p-value of every two of them.

    All p-values are 1 until the differences of all contests are tested together.
    """

    use: Use
    metrics: tuple[str, ...]
    methods: tuple[str, ...]
    passes: Float[np.ndarray, "method"]
    place: Float[np.ndarray, "method document"]
    p: Float[np.ndarray, "method method"]

    @property
    def differences(self) -> Float[np.ndarray, "pair document"]:
        """The difference of every two methods on every text."""
        a, b = np.tril_indices(len(self.methods), -1)
        return self.place[a] - self.place[b]

    def gain(self, one: int, other: int) -> float:
        """The mean difference of two methods, on the texts where both have values."""
        return float(np.nan_to_num(means((self.place[one] - self.place[other])[None])[0]))

    def beats(self, one: int, other: int) -> bool:
        return self.gain(one, other) > 0 and bool(self.p[one, other] < SIGNIFICANCE)


def _contest(
    use: Use,
    methods: Sequence[str],
    metrics: Sequence[str],
    higher: Sequence[bool],
    values: Float[np.ndarray, "method metric document"],
    passes: Float[np.ndarray, "method"],
) -> _Contest | None:
    """None if a use has no metric, or fewer than two methods with values on two texts."""
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
        relative_scores(values[rows][:, columns], [higher[column] for column in columns]),
        np.ones((len(rows), len(rows))),
    )


def _verdict(contest: _Contest) -> Verdict:
    names, score, (low, high) = contest.methods, means(contest.place), mean_intervals(contest.place, (0.0, 1.0))
    order = sorted(range(len(names)), key=lambda row: (-score[row], names[row]))
    # If the control has no values, no method is significantly better.
    control = names.index(CONTROL) if CONTROL in names else None
    better = [row for row in order if control is not None and contest.beats(row, control)]
    # Scores are means over the texts of each method; on the texts that two share the order may differ.
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
