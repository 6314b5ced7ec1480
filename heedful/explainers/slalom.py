"""A surrogate that is itself attention: SLALOM."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal, final

import numpy as np
import torch
from jaxtyping import Float, Int

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.document.units import plural
from heedful.errors import BadInput, TooFewSamples
from heedful.explainers import Group, MaskingExplainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.pooling import Pooling
from heedful.perturb.exact_game import fitted_values
from heedful.perturb.forecast import MaskCount
from heedful.perturb.masks import Draws, Law, generator, spread_draws
from heedful.perturb.slalom_fit import Softmax, fit_softmax
from heedful.perturb.sweep import Interrupted, Sweep

_A_UNIT = 5
_MANY = 0.1
_LEAVE_NOTHING = ("delete", "mask")


@final
@dataclass(frozen=True)
class Slalom(MaskingExplainer):
    """SLALOM: softmax surrogate with a value and an importance for each unit.

        f(z) ≈ Σ_j z_j e^{s_j} v_j / Σ_j z_j e^{s_j}

    Reference: Leemann, Fastowski, Pfeiffer & Kasneci, TMLR 2025, arXiv:2405.13536. `show` is "value" (v), "importance"
    (s, mean zero), "linearised", or the surrogate's own "shapley" values or "lime" coefficients: it is a game of one
    attention head, whose exact values need no further evaluation of the model.

    Differs from the paper: special tokens, or with "replace" the replacements of removed units, take part in the
    softmax with a score and a value of their own, so that f(empty) is defined. Linearised scores are the paper's
    v_j e^{s_j} on another scale: v is measured from f(empty), since a logit, unlike log odds, has no natural zero, and
    e^s is a share of the whole document's, so that the scores sum to the surrogate's f(x) − f(empty). All sizes of mask
    are equally likely; the paper takes texts of two or three words, or removes up to five. Every unit has its own v and
    s, repeated words too, unless `unit="type"`. The fit is by Gauss–Newton, not Adam.
    """

    name: ClassVar[str] = "slalom"
    group: ClassVar[Group] = "surrogates"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True

    n_samples: int = 2000
    seed: int = 0
    absence: Absence = "replace"
    show: Literal["linearised", "value", "importance", "shapley", "lime"] = "linearised"

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if not 10 <= self.n_samples <= 10_000_000:
            raise BadInput(f"{self.name} takes 10 to 10,000,000 samples; n_samples is {self.n_samples:,}.")

    def n_masks(self, n_units: int) -> MaskCount:  # noqa: ARG002
        return MaskCount(self.n_samples, "n_samples")

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        sweep = Sweep(question, index, self.unit, self.absence)
        draws = self._draws(sweep.n_units, generator(self.seed, question.documents[index]))
        sweep.expected = len(draws.keep)
        notes: tuple[Note, ...] = ()
        order, values = draws.shuffled(), np.zeros(len(draws.keep))
        try:
            values[order] = sweep(draws.keep[order])
        except Interrupted as stopped:
            total = len(draws.keep)
            draws, values = _evaluated(draws, order, stopped)
            notes = (Note(f"Stopped by the user after {sweep.n_masks:,} of {total:,} masks.", "stopped"),)
        fits = fit_softmax(draws, values, self.absence not in _LEAVE_NOTHING)
        rows, inexactness = self._shown(fits)
        scores, error = fits.with_errors(rows)
        if fits.r_squared < 0.5:
            share = max(0.0, 100 * fits.r_squared)
            poor = f"The surrogate explains {share:.0f} % of the variance over masks, so it says little about f."
            notes = (*notes, Note(poor, "inexact"))
        if (error - fits.with_errors(rows[: len(rows) - fits.n_others])[1]).max() > _MANY * np.abs(scores).max():
            notes = (*notes, Note("Other fits are as good and share the output differently.", "inexact"))
        facts = {
            "masks": sweep.n_evaluated,
            "samples": len(draws.keep),
            "r_squared": fits.r_squared,
            "empty": fits.empty,
            "importance_range": float(np.ptp(fits.importances[0])),
        }
        explanation = self.explanation(question, index, scores, error + inexactness, facts)
        return explanation.noted((*notes, *sweep.notes), sweep.samples)

    def _draws(self, n_units: int, rng: np.random.Generator) -> Draws:
        """Masks with all sizes equally likely, in random order, so that any part of them is a fair sample."""
        if n_units < 2:
            raise BadInput(f"needs at least 2 {plural(self.unit)}; the document has {n_units}.", self.name)
        if self.n_samples < min(_A_UNIT * n_units, 2**n_units):
            raise TooFewSamples(
                f"needs at least {_A_UNIT * n_units} samples for {n_units} {plural(self.unit)}; "
                f"n_samples is {self.n_samples}.",
                self.name,
            )
        gigabytes = 60e-9 * self.n_samples * n_units
        if gigabytes > 5:
            raise BadInput(
                f"{self.n_samples:,} samples of {n_units} {plural(self.unit)} need about {gigabytes:.0f} GB of "
                "memory; lower n_samples."
            )
        law = Law(np.full(n_units + 1, self.n_samples / (n_units + 1)))
        draws = spread_draws(law, law.listed(), self.n_samples, "stratified", rng)
        n = draws.n_certain
        pairs = n + 2 * rng.permutation((len(draws.keep) - n) // 2)
        order = np.concatenate([np.arange(n), np.stack([pairs, pairs + 1], axis=1).ravel()])
        return Draws(draws.keep[order], draws.mass[order], n, draws.paired)

    def _shown(self, fits: Softmax) -> tuple[Float[np.ndarray, "fit unit"], float]:
        """The scores chosen by `show`, for every fit, and the error of their computation."""
        if self.show == "value":
            return fits.v[:, :-1], 0.0
        if self.show == "importance":
            return fits.importances, 0.0
        if self.show == "linearised":
            return fits.shares, 0.0
        values, error = fitted_values(_pooling(fits), self.show)
        return values, float(error[0])


def _pooling(fits: Softmax) -> Pooling:
    """The surrogates as attention; their last position is always kept, or replaces every removed unit."""
    s, v = torch.from_numpy(fits.s)[:, None], torch.from_numpy(fits.v)[:, None]
    nothing = torch.full_like(s, -inf)
    if not fits.leaves:
        return Pooling(s, v, nothing, torch.zeros_like(v))
    fixed = torch.arange(s.shape[2]) == s.shape[2] - 1
    return Pooling(s.where(~fixed, nothing), v, s[..., -1:].where(~fixed, nothing), v[..., -1:].expand_as(v))


def _evaluated(
    draws: Draws, order: Int[np.ndarray, "mask"], stopped: Interrupted
) -> tuple[Draws, Float[np.ndarray, "_"]]:
    """The masks evaluated before the user stopped; if they are too few for a fit, the run ends."""
    values, evaluated, n = np.zeros(len(order)), np.zeros(len(order), dtype=bool), draws.n_certain
    values[order], evaluated[order] = stopped.values, stopped.evaluated
    usable = draws.usable(evaluated)
    if not usable[:n].all() or usable.sum() < _A_UNIT * draws.keep.shape[1] or usable[n:].sum() < 10:
        raise KeyboardInterrupt from None
    return draws.only(usable), values[usable]
