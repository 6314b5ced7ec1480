"""Turns the documents of a model that pools by attention into the games that theory/ solves exactly."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL, Absence, Unit
from heedful.document.draws import draws_of
from heedful.errors import BadInput, Unsupported
from heedful.models.pooling import Pooling, PoolingModel
from heedful.models.question import Question
from heedful.theory.exact import lime, shapley
from heedful.theory.game import Games


def games_of(question: Question, unit: Unit, absence: Absence, least: int, name: str) -> Games:
    """One game per document, whose players are its units; `name` is the method, for messages.

    Special tokens and padding are never removed. A document with fewer than `least` units is refused.
    """
    if not isinstance(question.model, PoolingModel):
        kind = type(question.model).__name__
        raise Unsupported(f"needs attention pooling over independent tokens; this is a {kind}.", name)
    if draws_of(absence) is not None:
        raise Unsupported("does not draw words; give another absence, or a sampled method.", name)
    if absence == "delete":
        raise Unsupported("does not support absence 'delete', which moves words to other positions; try 'mask'.", name)
    for document in question.documents:
        n_units = document.n_units(unit)
        if n_units < least:
            raise BadInput(f"needs at least {least} {unit}s; the document has {n_units}.", name)
    games = question.once(("games", question.targets, unit, absence), lambda: _games(question, unit, absence))
    if not (games.D_F + games.b.sum(dim=2) > 0).all():
        raise BadInput(
            f"With every unit removed, nothing is left to attend to; {name} needs a replacement (set absence, "
            "or a bag's gone_scores and gone_values)."
        )
    return games


def _games(question: Question, unit: Unit, absence: Absence) -> Games:
    pooling = question.pooling(absence)
    unit_of = np.full((len(question.documents), pooling.s.shape[2]), SPECIAL)
    for row, document in zip(unit_of, question.documents, strict=True):
        row[: len(document.ids)] = document.unit_of(unit)
    return Games.of(pooling.s, pooling.w, pooling.s_gone, pooling.w_gone, unit_of)


def fitted_values(
    pooling: Pooling, measure: Literal["shapley", "lime"]
) -> tuple[Float[np.ndarray, "game unit"], Float[np.ndarray, "game"]]:
    """Exact Shapley values, or LIME's limit, of surrogates that pool by attention, with error bounds; no sampling.

    Every position is a unit except the last, which is never removed.
    """
    n_games, _, n_positions = pooling.s.shape
    unit_of = np.tile(np.append(np.arange(n_positions - 1), SPECIAL), (n_games, 1))
    games = Games.of(pooling.s, pooling.w, pooling.s_gone, pooling.w_gone, unit_of)
    # Kernel, ridge and number of samples are the defaults of the method `lime`.
    result = shapley(games) if measure == "shapley" else lime(games, kernel_width=25.0, ridge=1.0, n_samples=5000)
    return result.values.numpy(), result.error
