"""The scalar that is explained: an output of the model for a class or next token, or the difference of two."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index as as_index
from typing import Literal, final, get_args

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput, HeedfulError, Unsupported, unknown_name

Scale = Literal["logit", "log-probability", "probability"]
"""What is explained of a class: the output of the model as it is ("logit"), or a probability or its logarithm."""
Returns = Literal["logits", "independent-logits", "probabilities", "log-probabilities", "scores"]
"""What a model returns. "logits": probabilities are their softmax, or σ of a single one. "independent-logits": σ of
each (multi-label models). "probabilities": they are that already; "log-probabilities": their logarithms. "scores":
decision values, or any other numbers, whose probabilities are not known."""


def log_probabilities(rows: Float[np.ndarray, "*batch class"], returns: Returns) -> Float[np.ndarray, "*batch class"]:
    """The logarithm of every class's probability; −∞ where a probability is 0."""
    if returns == "scores":
        raise no_probabilities()
    if returns == "probabilities":
        with np.errstate(divide="ignore"):
            return np.log(rows)
    if returns == "log-probabilities":
        return rows
    if returns == "independent-logits" or rows.shape[-1] == 1:
        return -np.logaddexp(0.0, -rows)
    return rows - np.logaddexp.reduce(rows, axis=-1, keepdims=True)


def no_probabilities() -> HeedfulError:
    """The error for a model whose outputs cannot be turned into probabilities."""
    return Unsupported(
        "It is not known whether this model returns logits or probabilities; wrap it with "
        'returns="logits" or returns="probabilities", or use the scale "logit".'
    )


@final
@dataclass(frozen=True)
class Target:
    """The output of a class or next token on a scale; with `against`, the difference from another one.

    `returns` is what the model returns; None is filled in when the model is known.
    """

    index: int
    name: str
    against: int | None = None
    scale: Scale = "logit"
    returns: Returns | None = None

    @property
    def is_linear(self) -> bool:
        """Whether the target is an output of the model as it is, or a difference of two."""
        return self.scale == own_scale(self.returns)

    @property
    def is_one_output(self) -> bool:
        """Whether the target is an output of the model as it is, without `against`."""
        return self.is_linear and self.against is None

    def weights(self, n_classes: int) -> Float[np.ndarray, "class"]:
        """The row vector c for which the target is c · outputs."""
        if not self.is_linear:
            raise BadInput(
                f"This method needs a target that is linear in the model's outputs; the {self.scale} is not. "
                "Leave `scale` out."
            )
        row = np.zeros(n_classes)
        row[self.index] += 1.0
        if self.against is not None:
            row[self.against] -= 1.0
        return row

    def of(self, logits: Float[np.ndarray, "batch class"]) -> Float[np.ndarray, "batch"]:
        """The target's value from what the model returns, logits or other numbers."""
        rows = logits
        if not self.is_linear:
            rows = log_probabilities(logits, self.returns or "logits")
            rows = np.exp(rows) if self.scale == "probability" else rows
        value = rows[..., self.index]
        value = value if self.against is None else value - rows[..., self.against]
        if self.scale == "log-probability" and self.returns == "probabilities" and not np.isfinite(value).all():
            raise BadInput('A probability is 0, and its logarithm is not a finite number; use scale="probability".')
        return value

    def __str__(self) -> str:
        if self.returns == "scores":
            named = self.name.startswith(("score ", "feature "))
            return self.name if named else f"the score of {_visible(self.name)}"
        return f"the {self.scale} of {_visible(self.name)}"


def _visible(name: str) -> str:
    """The name of a class; in quotes if it begins or ends with a space, as names of tokens do."""
    return name if name == name.strip() and name else repr(name)


def own_scale(returns: Returns | None) -> Scale:
    """The scale of a model's outputs as they are."""
    own: dict[Returns | None, Scale] = {"probabilities": "probability", "log-probabilities": "log-probability"}
    return own.get(returns, "logit")


class Names(ABC):
    """How the classes of a model are named, in one document."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of classes."""

    @abstractmethod
    def meanings(self, name: str) -> Sequence[int]:
        """The classes that the name may mean; empty if there are none."""

    @abstractmethod
    def meanings_of_number(self, number: int) -> Sequence[int]:
        """The classes that a whole number may mean: the class of that number, or one whose name is the number."""

    @abstractmethod
    def shown(self, index: int) -> str:
        """The name of a class, which means no other class."""

    @abstractmethod
    def unknown(self, name: object) -> HeedfulError:
        """The error for a name that means no class."""


@final
@dataclass(frozen=True)
class ClassNames(Names):
    """The classes of a classifier; a numeric string is a number unless all names are numbers."""

    classes: Sequence[str]

    def __len__(self) -> int:
        return len(self.classes)

    def meanings(self, name: str) -> list[int]:
        """Every class of that name, or the one of that number."""
        same = [number for number, own in enumerate(self.classes) if own == name]
        return same or ([int(name)] if _is_number(name) and not self._numeric else [])

    def meanings_of_number(self, number: int) -> list[int]:
        """The class of that number, and those whose name it is, such as a number of stars."""
        same = [place for place, own in enumerate(self.classes) if own == str(number)]
        if not self._numeric or not same or number in same:
            return [number]
        return [*same, number] if 0 <= number < len(self) else same

    @property
    def _numeric(self) -> bool:
        """Whether all names are numbers, as numbers of stars are."""
        return all(map(_is_number, self.classes))

    def shown(self, index: int) -> str:
        """The class's name."""
        return self.classes[index]

    def unknown(self, name: object) -> HeedfulError:
        """The error for a name that no class has."""
        if len(self) > _LISTED:
            return BadInput(f"{name!r} is not one of the model's {len(self):,} classes.")
        return unknown_name("class", name, self.classes)


def _is_number(name: str) -> bool:
    return name.strip().lstrip("-").isdecimal()


def check_scale(scale: str, returns: Returns = "logits", outputs: str = "classes") -> None:
    """Refuses a scale that does not exist, or that the outputs of the model cannot be put on."""
    if not isinstance(scale, str) or scale not in get_args(Scale):
        raise unknown_name("scale", scale, get_args(Scale))
    if returns == "scores" and scale != "logit" and outputs == "answers":
        raise Unsupported(
            "The score of an answer is a sum of two logits, and spans have no probability; leave `scale` out."
        )
    if returns == "scores" and scale != "logit":
        raise no_probabilities()


def check_returns(returns: str | None) -> None:
    """Refuses a kind of output that does not exist."""
    if returns is not None and (not isinstance(returns, str) or returns not in get_args(Returns)):
        raise unknown_name("kind of output", returns, get_args(Returns))


def check_request(request: "int | str | Target | None", against: int | str | None, names: Names) -> None:
    """Refuses classes that do not exist, before the model runs."""
    if isinstance(request, Target) and against is not None:
        raise BadInput("A Target already contains both of its classes; leave `against` out.")
    if isinstance(request, Target):
        _check_numbers([number for number in (request.index, request.against) if number is not None], names)
        return
    for name in (request, against):
        if name is not None:
            _meanings(name, names)


def resolve_target(
    request: "int | str | Target | None",
    against: int | str | None,
    names: Names,
    row: Float[np.ndarray, "class"],
    scale: Scale = "logit",
    returns: Returns = "logits",
) -> Target:
    """The target that a user specifies by number or name; the predicted class if None.

    A name that may mean several classes is refused, with the number and probability of each.
    """
    check_request(request, against, names)
    if isinstance(request, Target):
        # A Target that says what the model returns is complete.
        own = request.returns or returns
        wanted = request.scale if scale == "logit" else scale
        target = replace(request, returns=own)
    else:
        index = int(np.argmax(row)) if request is None else _index(request, names, row, returns)
        other = None if against is None else _index(against, names, row, returns)
        if other == index:
            raise BadInput(f"A contrast needs two classes; {names.shown(index)!r} was given twice.")
        shown = names.shown(index)
        name = shown if other is None else f"{_visible(shown)} − {_visible(names.shown(other))}"
        own, wanted, target = returns, scale, Target(index, name, other, scale, returns)
    check_scale(wanted, own)
    return replace(target, scale=own_scale(own) if wanted == "logit" else wanted)


def _index(request: int | str, names: Names, row: Float[np.ndarray, "class"], returns: Returns) -> int:
    """The one class that was requested; the error for several lists them."""
    meanings = _meanings(request, names)
    if len(meanings) == 1:
        return meanings[0]
    p = None if returns == "scores" else np.exp(log_probabilities(row, returns))
    each = [
        f"{names.shown(number)!r} (number {number}{'' if p is None else f', probability {p[number]:.3g}'})"
        for number in sorted(meanings, key=lambda number: -row[number])
    ]
    ways = (
        "one of these names, or its number (an int, or id:NUMBER)"
        if isinstance(request, str)
        else "the name as a string"
    )
    raise BadInput(f"{request!r} may mean {' or '.join(each)}; give {ways}.")


def _meanings(request: int | str, names: Names) -> Sequence[int]:
    """The classes that a number or name may mean; refused if there is none."""
    if isinstance(request, str):
        numbers = names.meanings(request)
        if not numbers:
            raise names.unknown(request)
    else:
        try:
            numbers = names.meanings_of_number(as_index(request))
        except TypeError:
            raise BadInput(f"A class must be a name or a whole number; {request!r} was given.") from None
    _check_numbers(numbers, names)
    return numbers


def _check_numbers(numbers: Sequence[int], names: Names) -> None:
    for number in numbers:
        if not 0 <= number < len(names):
            listed = ", ".join(f"{n} ({names.shown(n)})" for n in range(len(names) if len(names) <= _LISTED else 0))
            choices = listed or f"0 to {len(names) - 1:,}"
            raise BadInput(f"There is no class {number}; the model's classes are {choices}.")


_LISTED = 100
