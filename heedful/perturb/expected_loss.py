"""Losses between the output for a text and the output for changed copies of it, and draws of words from data."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.datasets import Dataset
from heedful.document import Absence
from heedful.errors import BadInput, HeedfulError, unknown_name
from heedful.family import members
from heedful.perturb.document_values import DocumentValues
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


@cache
def drawn_words(data: str, n_words: int, seed: int) -> tuple[str, ...]:
    """Words of a data set's training texts, or of a file with one text a line: a random text, then a random word."""
    texts, rng = _texts(data), np.random.default_rng(seed)
    words: list[str] = []
    for _ in range(n_words):
        choices = re.findall(r"\w+(?:'\w+)?|[^\w\s]", texts[int(rng.integers(len(texts)))])
        if choices:
            words.append(choices[int(rng.integers(len(choices)))])
    return tuple(words)


@cache
def _texts(data: str) -> Sequence[str]:
    catalogue = members("heedful.datasets", Dataset)
    if data in catalogue:
        texts = [example.text for example in catalogue[data]().examples("train")]
    elif Path(data).is_file():
        texts = [line for line in Path(data).read_text(encoding="utf-8").splitlines() if line.strip()]
    else:
        raise unknown_name("data set or file", data, catalogue)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise BadInput(f"{data!r} does not consist of single texts; give a data set or a file of texts.")
    return texts
