"""One step of decoding: the token that was written, what else could have been, and the nodes of a beam search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax

from heedful.errors import BadInput
from heedful.models.language import LanguageModel, Prefix

Ended = Literal["end of text", "length"]
Fate = Literal["kept", "finished", "pruned"]
_ALTERNATIVES = 10


@final
@dataclass(frozen=True)
class Alternative:
    """A token that could be written at a step."""

    id: int
    token: str
    probability: float
    """Its probability by the model."""
    law: float | None
    """Its probability in the law that the token was drawn from; None in beam search, which draws nothing."""
    kept: bool
    """Whether it is in the kept set."""


@final
@dataclass(frozen=True)
class Step:
    """One token that was written, with its log-probability by the model, and the 10 most likely tokens there
    and itself.

    The kept set is what the token was chosen from: its size, and its mass, the sum of the model's probabilities. In
    beam search it is the tokens that went on from this beam, or ended it.
    """

    id: int
    token: str
    log_probability: float
    n_kept: int
    mass: float
    alternatives: tuple[Alternative, ...]
    forced: bool = False
    """Whether the model's settings demand this token here, such as the language of a translation."""

    def ends(self, end_ids: frozenset[int]) -> bool:
        """Whether the model ended the text here; an end that is demanded at the limit is not its own."""
        return self.id in end_ids and not self.forced


@final
@dataclass(frozen=True)
class BeamNode:
    """A token that beam search considered: a continuation of its parent, the node of that number; −1 is the prompt.

    `total` is the sum of log-probabilities from the prompt to here. A pruned node has the reason in `why`.
    """

    parent: int
    depth: int
    id: int
    token: str
    log_probability: float
    total: float
    fate: Fate
    why: str = ""
    written: bool = False
    """Whether it is part of the text that was written."""

    @property
    def value(self) -> float:
        """Its mean log-probability per token, by which finished texts are compared."""
        return self.total / self.depth


def next_log_probabilities(prefix: Prefix, n_written: int) -> Float[np.ndarray, "row vocabulary"]:
    """The log-probabilities of the next token after every row, in double precision."""
    logits = prefix.logits.double().cpu().numpy()
    if np.isnan(logits).any() or (logits.max(axis=1) == np.inf).any() or (logits.max(axis=1) == -np.inf).any():
        raise BadInput(
            f"The model's logits after {n_written:,} written tokens are not finite numbers (NaN or infinity); "
            "load it in a higher precision, or check its weights."
        )
    return log_softmax(logits, axis=1)


def largest(values: Float[np.ndarray, "_"], n: int) -> Int[np.ndarray, "_"]:
    """The places of the n largest values, the largest first; equal ones in their order."""
    places = np.arange(len(values))
    if n < len(values):
        places = np.flatnonzero(values >= np.partition(values, len(values) - n)[len(values) - n])
    return places[np.argsort(-values[places], kind="stable")[:n]]


def demanded_token(model: LanguageModel, n_written: int, limit: int) -> int | None:
    """The token that the model's settings demand at this step: the first of every output, or the last at the limit."""
    if n_written == limit - 1 and model.last_id is not None:
        return model.last_id
    return model.first_id if n_written == 0 else None


def record_step(
    classes: Sequence[str],
    log_p: Float[np.ndarray, "vocabulary"],
    chosen: int,
    kept: Bool[np.ndarray, "vocabulary"],
    law: Float[np.ndarray, "vocabulary"] | None,
    forced: bool,
) -> Step:
    """The record of a token that was chosen from the kept ones, with the most likely tokens there."""
    best: list[int] = largest(log_p, _ALTERNATIVES).tolist()
    best += [] if chosen in best else [chosen]
    alternatives = tuple(
        Alternative(i, classes[i], float(np.exp(log_p[i])), None if law is None else float(law[i]), bool(kept[i]))
        for i in best
    )
    mass = min(1.0, float(np.exp(log_p[kept]).sum()))
    return Step(chosen, classes[chosen], float(log_p[chosen]), int(kept.sum()), mass, alternatives, forced)
