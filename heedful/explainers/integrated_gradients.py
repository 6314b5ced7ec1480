"""Gradients integrated from a baseline to the text."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document.note import Note
from heedful.document.units import unit_scores
from heedful.errors import BadInput
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.question import Baseline

_FIRST, _MOST = 16, 256


@final
@dataclass(frozen=True)
class IntegratedGradients(Explainer):
    """Integrated gradients: mean gradient along a path, times (input − baseline).

    (e − b) · ∫₀¹ ∇f(b + α(e − b)) dα by Gauss–Legendre. All scores, special tokens and padding included, sum to
    f(x) − f(baseline); `facts["gap"]` is the remaining difference. `n_steps="auto"` doubles the steps from 16 until
    the gap is below `tolerance` times |f(x) − f(baseline)|, 256 at most. The `baseline` is "zero", or "unknown": every
    word is the unknown or mask token (in an image, every pixel the grey that is zero after normalisation).

    Reference: Sundararajan, Taly & Yan, *Axiomatic Attribution for Deep Networks*, 2017, arXiv:1703.01365.
    """

    name: ClassVar[str] = "integrated-gradients"
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = frozenset({"gradients"})
    signed: ClassVar[bool] = True
    summary_group: ClassVar[tuple[str, int] | None] = ("integrated gradients", 1)

    n_steps: int | Literal["auto"] = "auto"
    tolerance: float = 0.01
    baseline: Baseline = "zero"

    def __post_init__(self) -> None:
        if self.n_steps != "auto" and not 1 <= self.n_steps <= 100_000:
            raise BadInput(f"{self.name} takes 1 to 100,000 steps; n_steps is {self.n_steps:,}.")
        if not 0 < self.tolerance < inf:
            raise BadInput(f"{self.name} needs a tolerance above 0; {self.tolerance:g} was given.")

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        e, b = question.embedded(index), question.baseline(index, self.baseline)
        ends, _ = question.slopes([index, index], torch.cat([b, e]))
        change = float(ends[1].double() - ends[0].double())
        n_steps, n_passes = (_FIRST if self.n_steps == "auto" else self.n_steps), 2
        while True:
            row = _along(question, index, e[0], b[0], n_steps)
            gap, n_passes = float(row.sum()) - change, n_passes + n_steps
            close = abs(gap) <= self.tolerance * abs(change)
            if close or self.n_steps != "auto" or n_steps >= _MOST:
                break
            n_steps *= 2
        scores, others = unit_scores(question.documents[index], self.unit, row)
        facts = {**others, "gap": gap, "steps": n_steps, "forwards": 1 + n_passes, "backwards": n_passes}
        # The gap bounds the error of the sum, not of each score.
        explanation = self.explanation(question, index, scores, None, facts)
        missed = f"The scores miss f(x) − f(baseline) = {change:+.3g} by {gap:+.3g} after {n_steps:,} steps."
        return explanation if close else explanation.noted((Note(missed, "inexact"),))


def _along(
    question: Question, index: int, e: Float[Tensor, "token d_e"], b: Float[Tensor, "token d_e"], n_steps: int
) -> Float[np.ndarray, "token"]:
    """(e − b) · Σ_k w_k ∇f(b + α_k (e − b)), as many steps at a time as fit in memory."""
    nodes, weights = np.polynomial.legendre.leggauss(n_steps)
    alphas, shares = (nodes + 1) / 2, weights / 2
    at_once = question.at_once(len(e))
    total = torch.zeros_like(e, dtype=torch.float64)
    for first in range(0, n_steps, at_once):
        alpha = torch.from_numpy(alphas[first : first + at_once]).to(e)[:, None, None]
        share = torch.from_numpy(shares[first : first + at_once]).to(e.device)
        _, slopes = question.slopes([index] * len(alpha), b + alpha * (e - b))
        total += torch.einsum("s,std->td", share, slopes.double())
    return ((e - b).double() * total).sum(dim=-1).cpu().numpy()
