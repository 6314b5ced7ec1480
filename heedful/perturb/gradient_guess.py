"""Gradients between the baseline and the text: a cheap approximation of the effect of each unit."""

import numpy as np
import torch
from jaxtyping import Float

from heedful.document import Unit
from heedful.document.units import unit_scores
from heedful.errors import HeedfulError
from heedful.models import SharedSlopes
from heedful.models.question import Question

_STAGES, _EACH = 3, 2
N_SLOPES = _STAGES * _EACH
_FEW_OUTPUTS = 4
"""The most outputs whose masks are shared for which each output's own gradients cost less than they save."""


def interior_slopes(question: Question, index: int, unit: Unit) -> Float[np.ndarray, "stage unit"] | None:
    """(e − b) · ∇f(b + α(e − b)) of each unit, averaged over α in [0, 1/3], [1/3, 2/3] and [2/3, 1].

    b is the text with every word unknown, whatever the absence. None if the model has no gradients, or shares its masks
    among many outputs. An estimator that uses this approximation must be unbiased however wrong it is.
    """
    model = question.model
    if "gradients" not in model.offers or (isinstance(model, SharedSlopes) and len(model.classes) > _FEW_OUTPUTS):
        return None
    try:
        e, b = question.embedded(index), question.baseline(index, "unknown")
        alphas = (torch.arange(N_SLOPES) + 0.5) / N_SLOPES
        rows = []
        for chunk in alphas.split(question.at_once(e.shape[1])):
            points = b + chunk.to(e)[:, None, None] * (e - b)
            _, slopes = question.slopes([index] * len(chunk), points)
            rows.append(((e - b).double() * slopes.double()).sum(dim=-1).cpu())
    except HeedfulError:
        return None
    document = question.documents[index]
    units = [unit_scores(document, unit, row)[0] for row in torch.cat(rows).numpy()]
    return np.stack(units).reshape(_STAGES, _EACH, -1).mean(axis=1)
