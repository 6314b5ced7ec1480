"""Does attention order words as gradients and as removal do?"""

from dataclasses import dataclass
from math import erfc, nan, sqrt
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Columns, Inquiry
from heedful.evaluation.probes.published import AGREEMENT, listed
from heedful.explainers import Explainer
from heedful.explainers.attention import AttentionLast, AttentionMean
from heedful.explainers.gradient import GradientXInput
from heedful.explainers.leave_one_out import LeaveOneOut
from heedful.explainers.run import run_explainer
from heedful.statistics.correlation import kendall, spearman
from heedful.statistics.quantity import difference_of, is_above, is_below, mean_quantity
from heedful.statistics.ties import NOISE, settled

_LEAST_WORDS, _ENOUGH, _CLOSE = 3, 0.5, 0.1
_NAMES = {
    "attention–gradient": "attention and gradient × input",
    "attention–deletion": "attention and leave-one-out, the word deleted",
    "attention–replacement": "attention and leave-one-out, the word replaced",
    "gradient–deletion": "gradient × input and leave-one-out, the word deleted",
    "gradient–replacement": "gradient × input and leave-one-out, the word replaced",
    "last layer–replacement": "attention of the last layer and leave-one-out, the word replaced",
}


@final
@dataclass(frozen=True)
class Agreement(Probe):
    """Rank correlation of attention with gradients and with leave-one-out, and of these two with each other.

    Reference: Jain & Wallace, 2019, arXiv:1902.10186, Section 4.2.1. As there, the gradient is |g · x| of the predicted
    class's probability, and special tokens are left out. Attention is the mean over heads and layers.
    The answer rests on words that are replaced: to delete one moves all later words, which a model with positions
    notices more than the word itself. τ below `least` is a no. A yes is τ above `least` and at most 0.1 below that of
    gradients, or above 0.5: three pairs of words in four are in the same order. The 0.5 was chosen after attention that
    was planted to follow importance (`benchmarks/planted_probes.py`) had 0.77, and gradients 0.90.
    Differs from the source: of more than two classes the predicted one's probability is explained, not the distance
    between whole distributions.
    """

    name: ClassVar[str] = "agreement"
    question: ClassVar[str] = "Does attention rank the words as gradients and as removal do?"
    source: ClassVar[str] = "Jain & Wallace, 2019, arXiv:1902.10186, Section 4.2.1"
    use: ClassVar[AttentionUse] = "ranking words by importance"
    shows: ClassVar[str] = (
        "How far two rankings of the words of a text agree. The agreement of gradients with leave-one-out says what "
        "agreement is to be expected of two measures that both depend on the output."
    )
    does_not_show: ClassVar[str] = (
        "That attention is wrong where they differ: gradients and leave-one-out are no ground truth, and they disagree "
        "with each other too (Wiegreffe & Pinter, 2019, arXiv:1908.04626; Neely et al., 2021, arXiv:2105.03287). τ "
        "counts all pairs of words, most of which are unimportant. Another word may "
        "replace one that is removed alone."
    )

    least: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.least < 1:
            raise BadInput("The probe 'agreement' needs `least` of at least 0 and below 1.")

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        columns = inquiry.over_texts(self.name, lambda index: _of_text(inquiry, index))
        findings = _findings(columns)
        if not findings:
            return ProbeResult((), "unknown", f"No text has at least {_LEAST_WORDS} words.")
        tau = mean_quantity(columns["attention–replacement"], (-1.0, 1.0))
        gradient = mean_quantity(columns["gradient–replacement"], (-1.0, 1.0))
        gap = difference_of(columns["attention–replacement"], columns["gradient–replacement"], 2.0)
        numbers = f"τ = {tau.value:.2f} with leave-one-out, words replaced; gradient × input has {gradient.value:.2f}"
        near, somewhat = is_above(gap, -_CLOSE) or is_above(tau, _ENOUGH), "Attention ranks words somewhat as their"
        return decide(
            findings,
            (is_below(tau, self.least), "no", f"Attention does not rank words as their removal does: {numbers}."),
            (not is_above(tau), "unknown", f"The texts do not show whether attention ranks words: {numbers}."),
            (not near, "partly", f"{somewhat} removal does; gradients may do so better: {numbers}."),
            (not is_above(tau, self.least), "partly", f"{somewhat} removal does: {numbers}."),
            (True, "yes", f"Attention ranks words as their removal does: {numbers}."),
        )


def _of_text(inquiry: Inquiry, index: int) -> dict[str, float]:
    question, unit = inquiry.question(index), inquiry.unit

    def scores(explainer: Explainer) -> Float[np.ndarray, "unit"]:
        return settled(np.abs(run_explainer(explainer, question)[0].scores), close=NOISE)

    attention = scores(AttentionMean(unit=unit))
    if len(attention) < _LEAST_WORDS:
        return {}
    gradient = scores(GradientXInput(unit=unit))
    deleted = scores(LeaveOneOut(unit=unit, absence="delete"))
    replaced = scores(LeaveOneOut(unit=unit, absence="replace"))
    pairs = {
        "attention–gradient": (attention, gradient),
        "attention–deletion": (attention, deleted),
        "attention–replacement": (attention, replaced),
        "gradient–deletion": (gradient, deleted),
        "gradient–replacement": (gradient, replaced),
    }
    if question.attention.shape[1] > 1:
        pairs["last layer–replacement"] = (scores(AttentionLast(unit=unit)), replaced)
    row = {name: kendall(*pair) for name, pair in pairs.items()}
    row |= {f"{name} ρ": spearman(*pair) for name, pair in pairs.items()}
    row |= {f"{name} p": _p_value(row[name], len(attention)) for name in pairs}
    return row | {"null": kendall(inquiry.rng(index).permutation(attention), replaced)}


def _p_value(tau: float, n: int) -> float:
    """Two-sided, that two rankings of n words are independent, by the normal approximation (Kendall, 1938)."""
    return nan if tau != tau else erfc(abs(tau) * sqrt(9 * n * (n - 1) / (2 * (2 * n + 5))) / sqrt(2))


def _findings(columns: Columns) -> tuple[Finding, ...]:
    null = mean_quantity(columns["null"], (-1.0, 1.0)) if "null" in columns else None
    findings = []
    for name, words in _NAMES.items():
        if name not in columns:
            continue
        p = columns[f"{name} p"]
        tested = p[~np.isnan(p)]
        share = f"; significant in {float((tested < 0.05).mean()):.0%} of the texts" if len(tested) else ""
        tau, rho = (mean_quantity(columns[column], (-1.0, 1.0)) for column in (name, f"{name} ρ"))
        printed = listed({c: row[name] for (c, e), row in AGREEMENT.items() if e == "bilstm" and name in row})
        findings += [Finding(f"Kendall's τ of {words}{share}", tau, null, "attention shuffled", printed, name)]
        findings += [Finding(f"Spearman's ρ of {words}", rho)]
    return tuple(findings)
