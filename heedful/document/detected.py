"""A text with regions of an image, as a detector of objects describes them: the input of co-attention models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from heedful.errors import BadInput, brief


@final
@dataclass(frozen=True, eq=False)
class Regions:
    """A text and the regions of an image: a row of features and a box (x0, y0, x1, y1, from 0 to 1) for each.

    `names` are those that explanations show, such as the detector's labels; by default "region 1" and so on.
    """

    text: str
    features: Any
    boxes: Any
    names: Sequence[str] = ()

    __repr__ = brief

    def __post_init__(self) -> None:
        """Keeps the arrays in double precision; refuses those that do not fit together."""
        for name in ("features", "boxes"):
            try:
                rows = np.asarray(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError, RuntimeError):
                raise BadInput(f"The {name} of regions must be an array of numbers, a row for each region.") from None
            if rows.ndim != 2 or not len(rows) or not np.isfinite(rows).all():
                raise BadInput(f"The {name} must be finite numbers, a row for each region; got shape {rows.shape}.")
            object.__setattr__(self, name, rows)
        n = len(self.features)
        names = tuple(self.names) or tuple(f"region {number + 1}" for number in range(n))
        if len(self.boxes) != n or len(names) != n or not all(isinstance(name, str) and name.strip() for name in names):
            raise BadInput(f"{n} regions need {n} boxes and {n} names; got {len(self.boxes)} and {len(names)}.")
        object.__setattr__(self, "names", names)
