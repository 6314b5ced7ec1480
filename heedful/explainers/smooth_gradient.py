"""Gradients averaged over noisy copies of the input."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
import torch

from heedful.explainers import Group, Question, SampledGradient
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.masks import generator


@final
@dataclass(frozen=True)
class SmoothGradient(SampledGradient):
    """SmoothGrad: gradient averaged over noisy copies of the embeddings.

    Noise is Gaussian, `noise` times the standard deviation of the text's own embeddings. `reduce` makes the gradient
    one number per token: "x-input" its product with the embedding, "mean" the mean of its coordinates. Both are linear
    in the gradient, so their means over the noise have intervals; norms would be biased, so they are not available.

    Reference: Smilkov et al., *SmoothGrad: removing noise by adding noise*, 2017, arXiv:1706.03825.
    """

    name: ClassVar[str] = "smooth-gradient"
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = frozenset({"gradients"})
    signed: ClassVar[bool] = True

    noise: float = 0.1
    reduce: Literal["x-input", "mean"] = "x-input"
    seed: int = 0

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document, e = question.documents[index], question.embedded(index)[0]
        n_tokens, rng = len(document.ids), generator(self.seed, document)
        scale = self.noise * float(e[:n_tokens].double().std())
        draws = []
        for first in range(0, self.n_samples, question.at_once(len(e))):
            n = min(question.at_once(len(e)), self.n_samples - first)
            noisy = e.expand(n, -1, -1).clone()
            perturbation = rng.standard_normal((n, n_tokens, e.shape[1])) * scale
            noisy[:, :n_tokens] += torch.from_numpy(perturbation).to(e)
            _, slopes = question.slopes([index] * n, noisy)
            rows = (slopes * e).sum(dim=-1) if self.reduce == "x-input" else slopes.mean(dim=-1)
            draws += list(rows.double().cpu().numpy())
        return self.from_passes(question, index, np.stack(draws))
