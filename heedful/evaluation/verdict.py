"""Verdicts: the recommended method for each use, or no significant winner.

What is said of a method must not depend on which other methods are measured: its score is on a scale of the text's
own, it is compared with the control and with the best method only, and p-values are corrected for a fixed number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isnan
from typing import final, get_args

import numpy as np
from jaxtyping import Float

from heedful.evaluation.standing import CONTROL, SIGNIFICANCE, Standing, Verdict
from heedful.evaluation.text_scale import TextScale
from heedful.family import members
from heedful.metrics import Metric, Use
from heedful.statistics.intervals import mean_intervals
from heedful.statistics.significance import mean_p_values

CHEAP = 3
"""The maximum number of passes, forward or backward, of a method for cheap screening."""
N_COMPARISONS = 100
"""P-values are multiplied by this number, or by that of the comparisons where there are more. All methods of the
catalogue in three uses are fewer, so a correction does not depend on which of them are measured."""
LOSS = 0.5
"""The loss on one text that a test must expect though no text shows it: random scores are near ½, the worst are 0."""


@cache
def metrics_by_use() -> Mapping[Use, tuple[str, ...]]:
    """The metrics that count for each use, as they declare themselves.

    Agreement, compactness and plausibility count for none, because they do not evaluate the model; nor do correlations
    with leave-one-out, which is best in them by definition.
    """
    catalogue = members("heedful.metrics", Metric)
    return {use: tuple(name for name, kind in catalogue.items() if use in kind.uses) for use in get_args(Use)}


def n_comparisons(of: Sequence[Verdict]) -> int:
    """The number of comparisons that p-values of these verdicts are corrected for."""
    return _n_comparisons({verdict.use: len(verdict.standings) for verdict in of})


def _n_comparisons(n_methods: Mapping[Use, int]) -> int:
    # Methods for cheap screening are compared by the same numbers as for ranking words.
    return max(N_COMPARISONS, sum(n for use, n in n_methods.items() if use != "cheap screening"))


def texts_for_significance(of: Sequence[Verdict] = ()) -> int:
    """The fewest documents on which any difference can be significant: the smallest p-value is 2⁻ⁿ."""
    n = 1
    while 2.0**-n * n_comparisons(of) >= SIGNIFICANCE:
        n += 1
    return n


def too_few_texts(n_texts: int, of: Sequence[Verdict] = ()) -> str | None:
    """What so few texts cannot show, in a sentence: the smallest gain comes from the bound of `mean_p_values`."""
    fewest = texts_for_significance(of)
    if n_texts < fewest:
        return f"No difference can be significant on fewer than {fewest} texts; there are {n_texts}."
    gain = LOSS * ((n_comparisons(of) / SIGNIFICANCE) ** (1 / n_texts) - 1)
    if gain <= 0.1:
        return None
    return f"On {n_texts} texts only a gain above {gain:.2f} can be significant; smaller ones need more texts."


def verdicts(
    methods: Sequence[str],
    metrics: Sequence[str],
    higher: Sequence[bool],
    values: Float[np.ndarray, "method metric document"],
    passes: Float[np.ndarray, "method"],
    seed: int,
    scale: TextScale | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for every use whose metrics were measured.

    The best of the methods that are significantly better than the control is recommended, and all methods that are not
    significantly worse than it are named with it. P-values are those of `mean_p_values`, corrected for `N_COMPARISONS`.
    """
    scale = TextScale.plain(higher, values.shape[2]) if scale is None else scale
    contests = [
        contest for use in metrics_by_use() if (contest := _contest(use, methods, metrics, values, passes, scale))
    ]
    n = _n_comparisons({contest.use: len(contest.methods) for contest in contests})
    return tuple(_verdict(contest, n, seed) for contest in contests)


@final
@dataclass(frozen=True, eq=False)
class _Contest:
    """The methods of one use, with their scores on every text on which the control has a value."""

    use: Use
    metrics: tuple[str, ...]
    methods: tuple[str, ...]
    passes: Float[np.ndarray, "method"]
    scores: Float[np.ndarray, "method metric document"]
    ties: Float[np.ndarray, "metric document"]
    n_missing: np.ndarray

    def differences(self, other: int) -> Float[np.ndarray, "method document"]:
        """The scores of all methods less those of one of them, the mean over metrics; ties count as none."""
        gaps = self.scores - self.scores[other]
        return np.where(np.abs(gaps) <= self.ties, 0.0, gaps).mean(axis=1)


def _contest(
    use: Use,
    methods: Sequence[str],
    metrics: Sequence[str],
    values: Float[np.ndarray, "method metric document"],
    passes: Float[np.ndarray, "method"],
    scale: TextScale,
) -> _Contest | None:
    """None if a use has no metric, or fewer than two methods with values on two texts."""
    columns = [metrics.index(name) for name in metrics_by_use()[use] if name in metrics]
    control = methods.index(CONTROL) if CONTROL in methods else None
    if not columns:
        return None
    present = np.asarray(~np.isnan(values[:, columns]).any(axis=1))
    # A text on which the control has no value can be compared by no method.
    texts = np.asarray(present.any(axis=0)) if control is None or not present[control].any() else present[control]
    rows = [
        row
        for row, method in enumerate(methods)
        if (use != "cheap screening" or passes[row] <= CHEAP or method == CONTROL) and present[row][texts].any()
    ]
    if len(rows) < 2 or texts.sum() < 2:
        return None
    own = scale.at(columns, texts)
    scores = own.scores(values[rows][:, columns][:, :, texts])
    return _Contest(
        use,
        tuple(metrics[column] for column in columns),
        tuple(methods[row] for row in rows),
        passes[rows],
        _with_refusals(scores, rows.index(control) if control in rows else None),
        own.score_ties,
        (~present[rows][:, texts]).sum(axis=1),
    )


def _with_refusals(
    scores: Float[np.ndarray, "method metric document"], control: int | None
) -> Float[np.ndarray, "method metric document"]:
    """The scores with the worst score where a method has none, so that no method gains by refusing a text.

    The worst is 0, or the lowest score of the method or the control on any text if that is lower.
    """
    lowest = np.where(np.isnan(scores), 0.0, scores).min(axis=2, keepdims=True)
    worst = np.minimum(lowest, 0.0) if control is None else np.minimum(lowest, np.minimum(lowest[control], 0.0))
    return np.where(np.isnan(scores), worst, scores)


def _verdict(contest: _Contest, n_tests: int, seed: int) -> Verdict:
    names, per_text = contest.methods, contest.scores.mean(axis=1)
    score, (low, high) = per_text.mean(axis=1), mean_intervals(per_text)
    # If the control has no values, no method is significantly better.
    control = names.index(CONTROL) if CONTROL in names else None
    gain, against = (np.zeros(len(names)), np.ones(len(names)))
    if control is not None:
        gain, against = _compared(contest, control, n_tests, seed)
    # Rounding must not decide between equal scores: the method that was named first comes first.
    order = np.lexsort((np.arange(len(names)), -score.round(9))).tolist()
    better = [row for row in order if gain[row] > 0 and against[row] < SIGNIFICANCE]
    best = [*better, *order][0]
    lead, behind = _compared(contest, best, n_tests, seed)
    standings = tuple(
        Standing(
            names[row],
            float(score[row]),
            float(low[row]),
            float(high[row]),
            float(gain[row]),
            float(against[row]),
            float(behind[row]),
            None if isnan(contest.passes[row]) else float(contest.passes[row]),
            int(contest.n_missing[row]),
        )
        for row in order
    )
    equal = [row for row in order if row != control and not (lead[row] < 0 and behind[row] < SIGNIFICANCE)]
    as_good = tuple(names[row] for row in [best, *(row for row in equal if row != best)]) if better else ()
    return Verdict(contest.use, contest.metrics, standings, names[best] if better else None, as_good)


def _compared(
    contest: _Contest, other: int, n_tests: int, seed: int
) -> tuple[Float[np.ndarray, "method"], Float[np.ndarray, "method"]]:
    """The mean difference of every method from one of them, and its corrected p-value."""
    differences = contest.differences(other)
    p = mean_p_values(differences, LOSS, seed, SIGNIFICANCE / n_tests)
    return differences.mean(axis=1), np.minimum(1.0, n_tests * p)
