"""A question's documents as additive games, the bridge from models that pool by attention to theory/."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL, Absence, Document, Unit
from heedful.errors import BadInput, Unsupported
from heedful.models import Model
from heedful.models.pooling import Pooling, PoolingModel
from heedful.theory.exact import lime, shapley
from heedful.theory.game import Games


def games_of(
    model: Model,
    documents: tuple[Document, ...],
    targets: np.ndarray,
    unit: Unit,
    absence: Absence,
    least: int,
    name: str,
) -> Games:
    """The games that `name` needs: units kept or removed, [CLS] and padding never; each of at least so many units."""
    if not isinstance(model, PoolingModel):
        raise Unsupported(f"{name} needs attention pooling over independent tokens; this is a {type(model).__name__}.")
    if absence == "delete":
        raise Unsupported(f"{name} keeps every word on its place, so absence cannot be 'delete'; 'mask' comes nearest.")
    for document in documents:
        n_units = document.n_units(unit)
        if n_units < least:
            raise BadInput(f"{name} needs at least {least} {unit}s; the document has {n_units}.")
    pooling = model.pooling(documents, targets, absence)
    unit_of = np.full((len(documents), pooling.s.shape[2]), SPECIAL)
    for row, document in zip(unit_of, documents, strict=True):
        row[: len(document.ids)] = document.unit_of(unit)
    games = Games.of(pooling.s, pooling.w, pooling.s_gone, pooling.w_gone, unit_of)
    if not (games.D_F + games.b.sum(dim=2) > 0).all():
        raise BadInput(
            f"With everything removed nothing is left to attend to; {name} needs something in its place "
            "(absence, or a bag's gone_scores and gone_values)."
        )
    return games


def fitted_values(
    pooling: Pooling, measure: Literal["shapley", "lime"]
) -> tuple[Float[np.ndarray, "game unit"], Float[np.ndarray, "game"]]:
    """Shapley values of surrogates that pool, or what `lime` tends to, and how far they may be off; no sampling.

    Every position is a unit but the last, which is never removed.
    """
    n_games, _, n_positions = pooling.s.shape
    unit_of = np.tile(np.append(np.arange(n_positions - 1), SPECIAL), (n_games, 1))
    games = Games.of(pooling.s, pooling.w, pooling.s_gone, pooling.w_gone, unit_of)
    # Kernel, penalty and number of samples are lime's own.
    found = shapley(games) if measure == "shapley" else lime(games, kernel_width=25.0, ridge=1.0, n_samples=5000)
    return found.values.numpy(), found.error
