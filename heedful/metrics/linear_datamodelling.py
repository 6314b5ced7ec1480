"""Rank correlation of summed scores with the output on held-out masks."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Use, Want, output_level
from heedful.models import Offer
from heedful.perturb.masks import generator
from heedful.statistics.correlation import ranks, spearman
from heedful.statistics.ties import NOISE, settled


@final
@dataclass(frozen=True)
class LinearDatamodelling(Metric):
    """Rank correlation of the summed scores of kept units with the output on masks.

    Spearman's ρ between Σ_{i kept} φ_i and f(the kept units) over `n_masks` masks that keep each unit with probability
    `keep` (Park et al., 2023, Section 2; for sources of a text Cohen-Wang et al., 2024, arXiv:2409.00729). The masks
    come from a random generator of their own, so no method has seen them, and are the same for all methods. If there
    are at most `n_masks` masks and `keep` is ½, each is evaluated once: the score is then exact, and `linear_ceiling`
    is known. Outputs that differ by rounding are ties and get their mean rank. Scores whose sum is the same on all
    masks have the value 0. Differs from Park et al.: the size of a mask is random, as in ContextCite.
    """

    name: ClassVar[str] = "linear-datamodelling"
    question: ClassVar[str] = "Do the scores of kept units add up to the right order of the outputs?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Park et al., 2023, arXiv:2303.14186, Section 2"
    not_for: ClassVar[str] = "unsigned methods; comparing texts: with interactions no sum reaches 1."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset({"sign"})
    uses: ClassVar[tuple[Use, ...]] = ("find the sources of the output",)
    for_written: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    absence: Absence = "replace"
    n_masks: int = 64
    keep: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if self.n_masks < 4:
            raise BadInput(f"needs n_masks ≥ 4; {self.n_masks} was given.", self.name)
        if not 0 < self.keep < 1:
            raise BadInput(f"needs 0 < keep < 1; {self.keep} was given.", self.name)

    def measure(self, evaluation: Evaluation) -> float:
        keep, outputs = self._held_out(evaluation)
        return _score(evaluation.settled, keep, outputs)

    def ceiling(self, evaluation: Evaluation) -> float | None:
        """The score of the best linear surrogate; None if not all masks are evaluated."""
        return linear_ceiling(self._held_out(evaluation)[1]) if self._is_exact(evaluation) else None

    def _held_out(self, evaluation: Evaluation) -> tuple[Bool[np.ndarray, "mask unit"], Float[np.ndarray, "mask"]]:
        """The masks, and f on them up to rounding."""
        n_units = len(evaluation.scores)
        if n_units < 2:
            raise Unsupported("needs at least 2 units; the text has 1.", self.name)
        if self._is_exact(evaluation):
            keep = every_mask(n_units)
        else:
            # A generator of its own: the seed's first numbers are those that explainers draw their masks from.
            (rng,) = generator(self.seed, evaluation.explanation.document).spawn(1)
            keep = rng.random((self.n_masks, n_units)) < self.keep
        outputs = evaluation.values(keep, self.absence)
        outputs = np.round(outputs / (NOISE * max(output_level(evaluation.question), 1e-300)))
        if np.ptp(outputs) <= 2:
            raise Unsupported("is undefined: no mask changes the output.", self.name)
        return keep, outputs

    def _is_exact(self, evaluation: Evaluation) -> bool:
        return self.keep == 0.5 and 2 ** len(evaluation.scores) <= self.n_masks


def every_mask(n_units: int) -> Bool[np.ndarray, "mask unit"]:
    """All masks of a document: in mask m unit i is kept if m has the bit 2ⁱ."""
    return (np.arange(2**n_units)[:, None] >> np.arange(n_units)) % 2 == 1


def linear_ceiling(outputs: Float[np.ndarray, "mask"]) -> float:
    """The linear datamodelling score of the best linear surrogate, from f on `every_mask`.

    The surrogate is fitted by least squares to the ranks of the outputs. No scores that we tried have a score more than
    0.002 above it (`tests/metrics/test_linear_datamodelling.py`); a fit to the outputs themselves has up to 0.04 less.
    """
    keep = every_mask(int(np.log2(len(outputs))))
    # All masks together are an orthogonal design: coefficients are covariances.
    return _score((keep - 0.5).T @ ranks(outputs), keep, outputs)


def _score(
    scores: Float[np.ndarray, "unit"], keep: Bool[np.ndarray, "mask unit"], outputs: Float[np.ndarray, "mask"]
) -> float:
    """Spearman's ρ of the sums with the outputs; 0 where all sums are equal."""
    sums = settled(keep @ scores)
    return spearman(sums, outputs) if np.ptp(sums) else 0.0
