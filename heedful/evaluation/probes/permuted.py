"""Does the output change if the attention weights are shuffled, or made equal?"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult
from heedful.evaluation.probes.inquiry import Inquiry, is_above, is_below, mean_quantity
from heedful.models import attention_edits
from heedful.statistics.divergence import total_variation
from heedful.statistics.quantity import Quantity

_NOTHING = Quantity(0.0)


@final
@dataclass(frozen=True)
class Permuted(Probe):
    """The change of the output when the last layer's attention is shuffled among the words, or made equal.

    `n_permutations` of each text; the median over them is the value of the text. Attention matters if the mean change,
    in total variation distance, is above `tolerance`, and does not if it is below.
    Reference: Jain & Wallace, 2019, arXiv:1902.10186, Section 4.2.2.
    """

    name: ClassVar[str] = "permuted"
    question: ClassVar[str] = "Does the output change if the attention weights are shuffled?"
    source: ClassVar[str] = "Jain & Wallace, 2019, arXiv:1902.10186, Section 4.2.2"
    use: ClassVar[AttentionUse] = "saying that attention matters"
    shows: ClassVar[str] = "Whether the output depends on which words get the attention. Where it does not, attention "
    shows += "cannot be the reason of the output."
    does_not_show: ClassVar[str] = (
        "That attention explains an output that does change: shuffled attention is unlike any that the model computes, "
        "and a model that was trained with other attention may do as well (Wiegreffe & Pinter, 2019, "
        "arXiv:1908.04626, Section 3). An output that does not change may be saturated, or the words may all say the "
        "same."
    )

    n_permutations: int = 20
    tolerance: float = 0.05

    def __post_init__(self) -> None:
        if self.n_permutations < 1 or not 0 < self.tolerance < 1:
            raise BadInput("The probe 'permuted' needs n_permutations ≥ 1 and a tolerance between 0 and 1.")

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        columns = inquiry.over_texts(self.name, lambda index: self._of_text(inquiry, index))
        if "permuted" not in columns:
            return ProbeResult((), "unknown", "No text has two words, so there is nothing to shuffle.")
        named = {
            "permuted": "Change of the output, attention shuffled in the last layer",
            "uniform": "Change of the output, attention made equal in the last layer",
            "permuted flips": "Share of decisions that change, attention shuffled in the last layer",
            "uniform flips": "Share of decisions that change, attention made equal in the last layer",
            "all layers": "Change of the output, attention made equal in every layer",
            "all layers flips": "Share of decisions that change, attention made equal in every layer",
        }
        findings = tuple(
            Finding(words, mean_quantity(columns[name]), _NOTHING, "the output does not depend on attention")
            for name, words in named.items()
            if name in columns
        )
        change = findings[0].value
        numbers = f"it changes by {change:.3f} in total variation"
        if is_above(change, self.tolerance):
            why = f"The output depends on which words get the attention: {numbers}, more than {self.tolerance:g}."
            return ProbeResult(findings, "yes", why)
        if is_below(change, self.tolerance):
            why = f"The output hardly depends on which words get the attention: {numbers}, below {self.tolerance:g}."
            return ProbeResult(findings, "no", why)
        return ProbeResult(findings, "unknown", f"The texts do not decide whether the output depends on it: {numbers}.")

    def _of_text(self, inquiry: Inquiry, index: int) -> dict[str, float]:
        last = inquiry.attention(index)
        n = int(last.is_word.sum())
        if n < 2:
            return {}
        rng = inquiry.rng(index)
        orders = [rng.permutation(n) for _ in range(self.n_permutations)]
        shares = np.stack([last.shares[:, order] for order in orders] + [np.full_like(last.shares, 1 / n)])
        logits = last.under(last.moved(shares))
        row = _changes(last.probabilities(last.logits), last.probabilities(logits), self.n_permutations)
        if last.layer > 0:
            whole = inquiry.model.edited([last.document], attention_edits.uniform)
            p, own = last.probabilities(whole), last.probabilities(last.logits)
            row["all layers"] = float(total_variation(p, own)[0])
            row["all layers flips"] = float(p[0].argmax() != own.argmax())
        return row


def _changes(own: Float[np.ndarray, "outcome"], p: Float[np.ndarray, "variant outcome"], n: int) -> dict[str, float]:
    """The changes under the first n variants, and under the last."""
    distance, flips = total_variation(p, own), p.argmax(axis=1) != own.argmax()
    return {
        "permuted": float(np.median(distance[:n])),
        "uniform": float(distance[-1]),
        "permuted flips": float(flips[:n].mean()),
        "uniform flips": float(flips[-1]),
    }
