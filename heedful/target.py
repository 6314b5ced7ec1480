"""The one scalar that is being asked about."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput, unknown_name


@final
@dataclass(frozen=True)
class Target:
    """The logit of one class, or with `against` the difference of two logits."""

    index: int
    name: str
    against: int | None = None

    def weights(self, n_classes: int) -> Float[np.ndarray, "class"]:
        """The row vector c for which the target is c · logits."""
        row = np.zeros(n_classes)
        row[self.index] += 1.0
        if self.against is not None:
            row[self.against] -= 1.0
        return row


def resolve_target(
    request: "int | str | Target | None",
    against: int | str | None,
    classes: Sequence[str],
    logits: Float[np.ndarray, "class"],
) -> Target:
    """The target a user means by a number, a name, or nothing: the predicted class."""
    if isinstance(request, Target):
        for index in (request.index, request.against):
            if index is not None:
                _class_index(index, classes)
        return request
    index = int(np.argmax(logits)) if request is None else _class_index(request, classes)
    if against is None:
        return Target(index, classes[index])
    other = _class_index(against, classes)
    if other == index:
        raise BadInput(f"A contrast needs two classes; {classes[index]!r} was given twice.")
    return Target(index, f"{classes[index]} − {classes[other]}", other)


def _class_index(request: int | str, classes: Sequence[str]) -> int:
    if isinstance(request, str) and request in classes:
        return classes.index(request)
    try:
        index = int(request)
    except (TypeError, ValueError):
        raise unknown_name("class", request, classes) from None
    if not 0 <= index < len(classes):
        choices = ", ".join(f"{number} ({name})" for number, name in enumerate(classes))
        raise BadInput(f"There is no class {index}; the model's classes are {choices}.")
    return index
