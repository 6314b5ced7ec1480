"""The scalar that is explained: a class logit, a next token, or the difference of two."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final, get_args

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput, unknown_name

Scale = Literal["logit", "log-probability"]


@final
@dataclass(frozen=True)
class Target:
    """The logit or log-probability of a class or next token; with `against`, the difference from another one."""

    index: int
    name: str
    against: int | None = None
    scale: Scale = "logit"

    def weights(self, n_classes: int) -> Float[np.ndarray, "class"]:
        """The row vector c for which the target is c · logits."""
        if self.scale != "logit":
            raise BadInput(
                f"This method needs a target that is linear in the logits; the {self.scale} is not. Use the logit."
            )
        row = np.zeros(n_classes)
        row[self.index] += 1.0
        if self.against is not None:
            row[self.against] -= 1.0
        return row

    def of(self, logits: Float[np.ndarray, "batch class"]) -> Float[np.ndarray, "batch"]:
        """The value of the target; a log-probability is log softmax, or log σ if the model has a single logit."""
        if self.scale == "log-probability":
            rivals = logits if logits.shape[-1] > 1 else np.concatenate([logits, np.zeros_like(logits)], axis=-1)
            logits = logits - np.logaddexp.reduce(rivals, axis=-1, keepdims=True)
        value = logits[..., self.index]
        return value if self.against is None else value - logits[..., self.against]

    def __str__(self) -> str:
        # A token's name may begin with a space, which must be seen.
        return f"the {self.scale} of {self.name if self.name == self.name.strip() and self.name else repr(self.name)}"


def check_scale(scale: str) -> None:
    """Refuses a scale that does not exist."""
    if scale not in get_args(Scale):
        raise unknown_name("scale", scale, get_args(Scale))


def check_request(request: "int | str | Target | None", against: int | str | None, classes: Sequence[str]) -> None:
    """Refuses classes that do not exist, before the model runs."""
    if isinstance(request, Target) and against is not None:
        raise BadInput("A Target already contains both of its classes; leave `against` out.")
    named = (request.index, request.against) if isinstance(request, Target) else (request, against)
    for name in named:
        if name is not None:
            _class_index(name, classes)


def resolve_target(
    request: "int | str | Target | None",
    against: int | str | None,
    classes: Sequence[str],
    logits: Float[np.ndarray, "class"],
    scale: Scale = "logit",
) -> Target:
    """The target that a user specifies by number or name; the predicted class if None."""
    check_request(request, against, classes)
    if isinstance(request, Target):
        return request if scale == "logit" else replace(request, scale=scale)
    index = int(np.argmax(logits)) if request is None else _class_index(request, classes)
    if against is None:
        return Target(index, classes[index], None, scale)
    other = _class_index(against, classes)
    if other == index:
        raise BadInput(f"A contrast needs two classes; {classes[index]!r} was given twice.")
    return Target(index, f"{classes[index]} − {classes[other]}", other, scale)


def _class_index(request: int | str, classes: Sequence[str]) -> int:
    # A word inside a text is a token with its space, so "film" may mean " film" where tokens are the classes.
    for name in (request, f" {request}") if isinstance(request, str) else ():
        if name in classes:
            return classes.index(name)
    many = len(classes) > _LISTED
    if isinstance(request, float):
        raise BadInput(f"A class must be a name or a whole number; {request!r} was given.")
    try:
        index = int(request)
    except (TypeError, ValueError):
        if many:
            raise BadInput(f"{request!r} is not one of the model's {len(classes):,} classes or tokens.") from None
        raise unknown_name("class", request, classes) from None
    if not 0 <= index < len(classes):
        names = ", ".join(f"{number} ({name})" for number, name in enumerate(classes))
        choices = f"0 to {len(classes) - 1:,}" if many else names
        raise BadInput(f"There is no class {index}; the model's classes are {choices}.")
    return index


_LISTED = 100
