"""Checks plain numbers, and fits them to the units of a document by their count."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from jaxtyping import Float
from torch import Tensor

from heedful.document import SPECIAL, Document, Unit
from heedful.document.units import sum_to, unit_scores
from heedful.errors import BadInput

MANY: dict[Unit, str] = {
    "token": "tokens",
    "word": "words",
    "type": "different words",
    "segment": "segments",
    "sentence": "sentences",
    "patch": "patches",
}
_TEXT: tuple[Unit, ...] = ("word", "token", "type", "segment", "sentence")
_PICTURE: tuple[Unit, ...] = ("patch", "segment")
_FINER: dict[Unit, tuple[Unit, ...]] = {
    "token": (),
    "word": ("token",),
    "type": ("token", "word"),
    "segment": ("token", "word"),
    "sentence": ("token", "word", "segment"),
    "patch": (),
}


@final
@dataclass(frozen=True, eq=False)
class FittedScores:
    """A score for every unit of a document, with facts and notes about the fit."""

    unit: Unit
    scores: Float[np.ndarray, "unit"]
    facts: Mapping[str, int | float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def parse_numbers(given: Any) -> Float[np.ndarray, "*axis"]:
    """The numbers as a float64 array; anything else, and numbers that are not finite, are refused."""
    # captum returns a tuple if its input was one.
    given = given[0] if isinstance(given, tuple) and len(given) == 1 and np.ndim(_plain(given[0])) else given
    try:
        array = np.asarray(_plain(given))
    except (TypeError, ValueError, RuntimeError):
        array = np.array(None)
    flat = given if isinstance(given, list | tuple) else ()
    if array.dtype.kind == "b" or any(isinstance(value, bool) for value in flat):
        raise BadInput("Scores must be numbers; True or False was given.")
    if array.dtype.kind not in "iuf":
        raise BadInput(f"Scores must be numbers, one per unit; {_shown(given)} was given.")
    if array.size == 0:
        raise BadInput("No numbers were given; give one per unit of the text.")
    values = array.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise BadInput(f"Number {wrong[0] + 1} of {values.size} is {values.flat[wrong[0]]}; give finite numbers.")
    return values


def fit_to_units(document: Document, values: Float[np.ndarray, "*axis"], unit: Unit | None) -> FittedScores:
    """The numbers as scores of the units with the same count, or summed from finer units to `unit`.

    Numbers of tokens may include the special tokens, whose scores go to the facts. Vectors are summed.
    """
    row = _row(document, values)
    unit = _unit_of(document, len(row)) if unit is None else unit
    if len(row) == document.n_units(unit):
        return FittedScores(unit, row)
    if len(row) == len(document.ids):
        return FittedScores(unit, *unit_scores(document, unit, row))
    for fine in _FINER[unit] if document.picture is None else ("patch",):
        if len(row) == document.n_units(fine):
            return FittedScores(unit, sum_to(document.coarsening(fine, unit), document.n_units(unit), row))
    raise BadInput(f"{_n_given(len(row))}; {describe_units(document)}; {_advice(document)}.")


def describe_units(document: Document) -> str:
    """How many units of each kind a document has, as a clause."""
    if document.picture is not None:
        rows, columns = document.picture.grid
        return f"the image has {rows * columns} patches, {rows} × {columns}"
    words, types, tokens = (document.n_units(unit) for unit in ("word", "type", "token"))
    different = f" ({types} different)" if types != words else ""
    names = list(dict.fromkeys(p for p, w in zip(document.pieces, document.words, strict=True) if w == SPECIAL))
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    special = f", {listed} included {len(document.ids)}" if names else ""
    return f"the text has {_n(words, 'word')}{different} and {_n(tokens, 'token')}{special}"


def _unit_of(document: Document, n: int) -> Unit:
    """The unit of which the document has n; if several fit, the user must choose."""
    tokens: Unit = "token" if document.picture is None else "patch"
    # Special tokens may be among the numbers.
    n = document.n_units(tokens) if n == len(document.ids) else n
    fits: list[Unit] = [
        unit for unit in (_TEXT if document.picture is None else _PICTURE) if document.n_units(unit) == n
    ]
    others: list[Unit] = [unit for unit in fits if (document.unit_of(unit) != document.unit_of(fits[0])).any()]
    if others:
        raise BadInput(
            f"{_n_given(n)}, and the text has as many {MANY[fits[0]]} as {MANY[others[0]]}; "
            f'set the unit, such as unit="{fits[0]}".'
        )
    if not fits:
        raise BadInput(f"{_n_given(n)}; {describe_units(document)}; {_advice(document)}.")
    return fits[0]


def _row(document: Document, values: Float[np.ndarray, "*axis"]) -> Float[np.ndarray, "_"]:
    tokens = {len(document.ids), document.n_units("token" if document.picture is None else "patch")}
    grid = None if document.picture is None else document.picture.grid
    if values.ndim == 3 and len(values) == 1 and values.shape[1] in tokens and values.shape[1:] != grid:
        return values[0].sum(axis=-1)
    values = values[0] if values.ndim > 1 and len(values) == 1 else values
    if values.ndim == 1:
        return values
    if values.shape == grid:
        return values.ravel()
    if values.ndim == 2 and (len(values) in tokens or values.shape[1] == 1):
        return values.sum(axis=-1)
    raise BadInput(
        f"Numbers of shape {values.shape} were given; give one number per unit of one text, or tokens × embedding; "
        f"{describe_units(document)}."
    )


def _advice(document: Document) -> str:
    truncated = [note for note in document.notes if note.kind == "truncated"]
    if truncated:
        return truncated[0][0].lower() + truncated[0][1:].rstrip(".")
    return "give one per unit, without padding"


def _n_given(n: int) -> str:
    return f"{n} numbers were given" if n > 1 else "1 number was given"


def _n(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _plain(given: Any) -> Any:
    if isinstance(given, Tensor):
        given = given.detach().cpu()
        return (given.double() if given.is_floating_point() else given).numpy()
    if isinstance(given, list | tuple) and any(isinstance(value, Tensor) for value in given):
        return [_plain(value) for value in given]
    return given


def _shown(given: object) -> str:
    if isinstance(given, list | tuple):
        odd = [value for value in given if not isinstance(value, int | float)]
        return f"a list with {odd[0]!r:.40}" if odd else "a list"
    return f"{type(given).__name__}"
