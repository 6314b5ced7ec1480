"""Are the words with the most attention evidence for the decision?"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from heedful.errors import BadInput
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Inquiry
from heedful.statistics.quantity import difference_of, is_above, is_below, mean_quantity

_NEAR, _MARGIN = 0.1, 0.1
"""What counts as near zero, and the largest difference between shares of words that counts as none."""


@final
@dataclass(frozen=True)
class SignAndValue(Probe):
    """How many of the words with the most attention are evidence for the decision, against it, or hardly count.

    A word's part in the margin of the predicted class over the runner-up is Σ_heads α_t (slope of the margin in α_t),
    without the bias of the output: what attention times value gives. Among the `strongest` words by
    attention (mean over heads) it is for the decision, against it, killed (its size is at most a tenth of what its
    attention would bring at the text's mean size of values), or cancelled (heads of opposite sign leave at most a tenth
    of their sum). The null is all words of the text.
    """

    name: ClassVar[str] = "sign-and-value"
    question: ClassVar[str] = "Are the words with the most attention evidence for the decision?"
    source: ClassVar[str] = "Lopardo, Precioso & Garreau, 2024, arXiv:2402.03485, after Theorem 5.1"
    use: ClassVar[AttentionUse] = "reading the sign"
    shows: ClassVar[str] = (
        "Attention weights are not negative, so a word against the decision looks like one for it. The share of such "
        "words says how often a reader of attention alone is wrong about the side of a word."
    )
    does_not_show: ClassVar[str] = (
        "Which words matter: only the sides of those with much attention are counted. In models of several layers a "
        "word's value at the last layer holds what other words passed to it."
    )

    strongest: int = 5

    def __post_init__(self) -> None:
        if self.strongest < 1:
            raise BadInput("The probe 'sign-and-value' needs `strongest` of at least 1.")

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        columns = inquiry.over_texts(self.name, lambda index: self._of_text(inquiry, index))
        if "for" not in columns:
            return ProbeResult((), "unknown", "No text has two words, so there is nothing to compare.")
        named = {
            "for": "for the decision",
            "against": "against the decision",
            "killed": "with a value near zero",
            "cancelled": "whose heads cancel each other",
        }
        findings = tuple(
            Finding(
                f"Share of the {self.strongest} words with most attention that are {words}",
                mean_quantity(columns[name]),
                mean_quantity(columns[f"{name}, all"]),
                "all words",
            )
            for name, words in named.items()
        )
        share, every = findings[0].value, findings[0].null
        assert every is not None
        numbers = f"{share.value:.0%} of them are evidence for it, and {every.value:.0%} of all words"
        gap = difference_of(columns["for"], columns["for, all"])
        low, who = is_below(gap, _MARGIN) and is_below(share, 0.9), "The words with the most attention are"
        return decide(
            findings,
            (is_above(share, 0.9), "yes", f"{who} evidence for the decision: {numbers}."),
            (low, "no", f"{who} for the decision hardly more often than others: {numbers}."),
            (is_above(gap), "partly", f"{who} more often for the decision, but not reliably: {numbers}."),
            (True, "unknown", f"The texts do not show which side such words are on: {numbers}."),
        )

    def _of_text(self, inquiry: Inquiry, index: int) -> dict[str, float]:
        last = inquiry.attention(index)
        words = last.tokens
        if len(words) < 2:
            return {}
        slope = last.margins[0][0]
        parts = (last.alpha * slope)[:, words]
        total, size = parts.sum(axis=0), np.abs(parts).sum(axis=0)
        typical = np.abs(slope[:, words]).mean()
        weight = last.alpha[:, words].sum(axis=0)
        killed = size <= _NEAR * weight * typical
        cancelled = ~killed & (np.abs(total) <= _NEAR * size)
        counted = ~killed & ~cancelled
        kinds = {"for": counted & (total > 0), "against": counted & (total < 0)}
        kinds |= {"killed": killed, "cancelled": cancelled}
        top = np.argsort(-weight, kind="stable")[: self.strongest]
        row = {name: float(kind[top].mean()) for name, kind in kinds.items()}
        return row | {f"{name}, all": float(kind.mean()) for name, kind in kinds.items()}
