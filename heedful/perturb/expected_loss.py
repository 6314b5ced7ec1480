"""Losses between the output for a text and the output for changed copies of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.document import Absence
from heedful.errors import BadInput, HeedfulError, unknown_name
from heedful.perturb.document_values import DocumentValues
from heedful.perturb.drawn_words import drawn_words
from heedful.target import Scale

_TRIES = 20
"""For each word that is drawn: a model that reads pieces of words cannot put every word in the place of a token."""


@final
@dataclass(frozen=True)
class Loss:
    """ℓ(y*, f(x′)), with y* the output for the whole text, computed from f(x) − f(x′) and f(x)."""

    of: Callable[[Float[np.ndarray, "..."], float], Float[np.ndarray, "..."]]
    scale: Scale | None = None
    """The scale of f, where the loss is that of a class; None for the target's own."""


LOSSES: Mapping[str, Loss] = {
    "squared": Loss(lambda lost, _: lost**2),
    "absolute": Loss(lambda lost, _: np.abs(lost)),
    "cross-entropy": Loss(lambda lost, whole: lost - whole, "log-probability"),
    "zero-one": Loss(
        lambda lost, whole: ((whole - lost >= log(0.5)) != (whole >= log(0.5))).astype(float), "log-probability"
    ),
}
"""The losses by name. Of a class y*: "cross-entropy" is −log p(y*), "zero-one" is 1 where p(y*) crosses ½."""


def check_loss(name: str) -> None:
    """Refuses a loss that does not exist."""
    if name not in LOSSES:
        raise unknown_name("loss", name, LOSSES)


def mean_loss_of_each(values: DocumentValues, loss: str, absences: Sequence[Absence]) -> Float[np.ndarray, "unit"]:
    """The loss without each unit alone, averaged over replacements of the unit."""
    chosen = LOSSES[loss]
    return np.mean([_one_out(values, chosen, absence) for absence in absences], axis=0)


def mean_loss_over_words(
    values: DocumentValues, loss: str, data: str, n_draws: int, seed: int
) -> Float[np.ndarray, "unit"]:
    """The loss without each unit alone, averaged over words of the data that replace it.

    Words that are no single token of the model are drawn again.
    """
    losses: list[np.ndarray] = []
    reason: HeedfulError | None = None
    for word in drawn_words(data, n_draws * _TRIES, seed):
        try:
            losses.append(_one_out(values, LOSSES[loss], f"replace:{word}"))
        except HeedfulError as error:
            reason = error
        if len(losses) == n_draws:
            return np.mean(losses, axis=0)
    raise BadInput(f"Only {len(losses)} of {n_draws} words of {data!r} can replace a unit of this model. {reason}")


def _one_out(values: DocumentValues, loss: Loss, absence: Absence) -> Float[np.ndarray, "unit"]:
    return loss.of(values.one_out(absence, loss.scale), values.whole(absence, loss.scale))
