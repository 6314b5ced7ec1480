"""Gradients at random points between a baseline and the text."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from heedful.explainers import Group, Question, SampledGradient
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.question import Baseline
from heedful.perturb.masks import generator


@final
@dataclass(frozen=True)
class GradientShap(SampledGradient):
    """Mean gradient at random points between baseline and input, × (input − baseline).

    The mean of (e + ε − b) · ∇f(b + α(e + ε − b)) over α ~ U(0, 1) and Gaussian ε, `noise` times the standard
    deviation of the text's own embeddings: a Monte Carlo estimate of integrated gradients, with an interval. Without
    noise its expectation sums to f(x) − f(baseline). The `baseline` is "zero", or "unknown": every word is the unknown
    token.

    Reference: Lundberg & Lee, 2017, arXiv:1705.07874, as *expected gradients* in Erion et al., 2021, arXiv:1906.10670.
    """

    name: ClassVar[str] = "gradient-shap"
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = frozenset({"gradients"})
    signed: ClassVar[bool] = True

    baseline: Baseline = "zero"
    seed: int = 0

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document, e = question.documents[index], question.embedded(index)[0]
        b = question.baseline(index, self.baseline)[0]
        n_tokens, rng = len(document.ids), generator(self.seed, document)
        scale = self.noise * float(e[:n_tokens].double().std())
        draws = []
        for first in range(0, self.n_samples, question.at_once(len(e))):
            n = min(question.at_once(len(e)), self.n_samples - first)
            alpha = torch.from_numpy(rng.uniform(size=(n, 1, 1))).to(e)
            ends = e.expand(n, -1, -1).clone()
            if self.noise:
                perturbation = rng.standard_normal((n, n_tokens, e.shape[1])) * scale
                ends[:, :n_tokens] += torch.from_numpy(perturbation).to(e)
            _, slopes = question.slopes([index] * n, b + alpha * (ends - b))
            draws += list(((ends - b) * slopes).sum(dim=-1).double().cpu().numpy())
        return self.from_passes(question, index, np.stack(draws))
