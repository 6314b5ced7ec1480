"""The numbers behind disagreements: one per unit of a document, in the scale of the target."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np
import torch
from jaxtyping import Float

from heedful.document import Absence
from heedful.errors import brief
from heedful.models.target_gradient import target_values
from heedful.target import Target, log_probabilities


@final
@dataclass(frozen=True, eq=False)
class Passed:
    """The contribution of each unit to the target through one layer of attention, summed over its tokens.

    In the paper's letters, means over heads i: `attention` α, `contribution` α W_ℓ v, `gross` α |W_ℓ v|, `centred`
    α W_ℓ (v − ṽ₋) with ṽ₋ the mean of the others' values, `scatter` α σ with σ_i² = Σ_t α_t (W_ℓ (v_t − ṽ))² the
    variance of a head's values. Not v − ṽ: a unit that takes all attention of a head is like ṽ because it is ṽ.
    """

    attention: Float[np.ndarray, "unit"]
    gross: Float[np.ndarray, "unit"]
    contribution: Float[np.ndarray, "unit"]
    centred: Float[np.ndarray, "unit"]
    scatter: Float[np.ndarray, "unit"]

    __repr__ = brief

    @property
    def level(self) -> float:
        """The size of the target, as far as it comes through attention."""
        return float(self.gross.sum())

    @property
    def fair(self) -> Float[np.ndarray, "unit"]:
        """The attention in the scale of the target: the contribution if all values had their mean size."""
        return at_fair_value(self.attention, self.gross)


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    """What the model itself shows about the units of a document, without any explanation method.

    `output` is the value of the target, `losses` its losses without each unit, by absence, `straight` the same for the
    tangent of the target at this text, which is the target itself for a logit. `bias` and `path` are the terms of
    gradient × input besides the contribution, `query` the part of it that runs through the queries;
    `at_readout` is gradient × input of the token that is read out: through its own query, and otherwise.
    """

    exact: bool
    output: float
    passed: Passed | None = None
    losses: Mapping[Absence, Float[np.ndarray, "unit"]] = field(default_factory=dict)
    straight: Mapping[Absence, Float[np.ndarray, "unit"]] = field(default_factory=dict)
    bias: Float[np.ndarray, "unit"] | None = None
    path: Float[np.ndarray, "unit"] | None = None
    query: Float[np.ndarray, "unit"] | None = None
    at_readout: tuple[float, float] | None = None
    probability: float | None = None

    __repr__ = brief

    @property
    def level(self) -> float:
        """The size of the target, below which numbers may be rounding."""
        return max(abs(self.output), 0.0 if self.passed is None else self.passed.level)


def at_fair_value(attention: Float[np.ndarray, "unit"], gross: Float[np.ndarray, "unit"]) -> Float[np.ndarray, "unit"]:
    """Attention times the mean size of a value, so that its sum over units is that of the values' sizes."""
    total = attention.sum()
    return attention * (gross.sum() / total if total > 0 else 0.0)


def tangent(target: Target, logits: Float[np.ndarray, "class"]) -> Float[np.ndarray, "class"]:
    """∂ target / ∂ logits: a row that does not depend on the text for a logit, and for a probability does."""
    if target.is_linear:
        return target.weights(len(logits))
    at = torch.from_numpy(logits.copy()).requires_grad_()
    with torch.enable_grad():
        (row,) = torch.autograd.grad(target_values([target], at[None]).sum(), at)
    return row.numpy()


def probability(target: Target, logits: Float[np.ndarray, "class"]) -> float | None:
    """The probability of the target's class, or None if the model's outputs are no logits."""
    if target.returns in ("scores", "probabilities", "log-probabilities"):
        return None
    return float(np.exp(log_probabilities(logits, target.returns or "logits"))[target.index])
