"""Does the output change if the attention weights are shuffled, or made equal?"""

from dataclasses import dataclass
from math import log
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Columns, Inquiry
from heedful.models import attention_edits
from heedful.statistics.divergence import jensen_shannon, total_variation
from heedful.statistics.quantity import Quantity, is_above, is_below, mean_quantity

_NOTHING = Quantity(0.0)
_UNMOVED = "the output does not depend on attention"


@final
@dataclass(frozen=True)
class Permuted(Probe):
    """The change of the output when the last layer's attention is shuffled among the words, or made equal.

    All heads are shuffled alike, `n_permutations` times in each text; the median change is the value of the text, and
    of the rest the mean. Attention matters if the mean change over texts, in total variation distance, is above
    `tolerance`, and does not if it is below. In part: it is not above, but it is where the attention of every layer is
    made equal. Beside it are Jensen–Shannon divergences of the output and, averaged over
    heads, of the attention itself: how far it was moved.
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
        findings = _findings(columns)
        change = findings[0].value
        numbers = f"it changes by {change:.3f} in total variation"
        whole, bound = mean_quantity(columns["all layers"]) if "all layers" in columns else change, self.tolerance
        low, which = is_below(change, bound) and is_below(whole, bound), "on which words get the attention"
        layers = f"all layers' attention ({whole.value:.3f}), on the last alone not shown"
        return decide(
            findings,
            (is_above(change, bound), "yes", f"The output depends {which}: {numbers}, more than {bound:g}."),
            (is_above(whole, bound), "partly", f"The output depends on {layers}: {numbers}; {bound:g} is the bound."),
            (low, "no", f"The output hardly depends {which}: {numbers}, below {bound:g}."),
            (True, "unknown", f"The texts do not decide whether the output depends on it: {numbers}."),
        )

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
        moved = jensen_shannon(shares, last.shares[None]).mean(axis=1)
        row |= {"permuted attention": float(moved[:-1].mean()), "uniform attention": float(moved[-1])}
        if last.layer > 0:
            whole = inquiry.model.edited([last.document], attention_edits.uniform)
            p, own = last.probabilities(whole), last.probabilities(last.logits)
            row["all layers"] = float(total_variation(p, own)[0])
            row["all layers flips"] = float(p[0].argmax() != own.argmax())
        return row


def _changes(own: Float[np.ndarray, "outcome"], p: Float[np.ndarray, "variant outcome"], n: int) -> dict[str, float]:
    """The changes under the first n variants, and under the last."""
    distance, flips, divergence = total_variation(p, own), p.argmax(axis=1) != own.argmax(), jensen_shannon(p, own)
    return {
        "permuted": float(np.median(distance[:n])),
        "uniform": float(distance[-1]),
        "permuted divergence": float(divergence[:n].mean()),
        "uniform divergence": float(divergence[-1]),
        "permuted flips": float(flips[:n].mean()),
        "uniform flips": float(flips[-1]),
    }


def _findings(columns: Columns) -> tuple[Finding, ...]:
    edits = {"permuted": "attention shuffled in the last layer", "uniform": "attention made equal in the last layer"}
    edits |= {"all layers": "attention made equal in every layer"}
    measured = {
        "": ("Change of the output, total variation, {}", 1.0, True),
        " flips": ("Share of decisions that change, {}", 1.0, True),
        " divergence": ("Change of the output, Jensen–Shannon divergence of at most 0.693, {}", log(2), True),
        " attention": ("Divergence of the attention from the model's own, of at most 0.693, {}", log(2), False),
    }
    return tuple(
        Finding(
            words.format(by),
            mean_quantity(columns[name + what], (0.0, most)),
            _NOTHING if of_output else None,
            _UNMOVED if of_output else "",
        )
        for what, (words, most, of_output) in measured.items()
        for name, by in edits.items()
        if name + what in columns
    )
