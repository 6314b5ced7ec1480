"""Labels of texts as classes of a model, by name or number."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from heedful.document import Pair
from heedful.errors import BadInput

WHOLE = re.compile(r"\s*(-?\d+)(\.0*)?\s*")
"""A whole number as tables write it: 1, "1" or 1.0."""
_REMEDY = "Without labels: label=False, or --label-column none."


def present(value: Any) -> Any:
    """The value; None if it is missing: None, NaN, an empty string, or −1, which data sets use for a missing label."""
    if isinstance(value, str | Pair):
        return None if value == "" else value
    value = value.item() if isinstance(value, np.generic) else value
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, int | float) and not value >= 0)
    return None if missing else value


def class_numbers(
    labels: Sequence[Any], classes: Sequence[str], names: Sequence[str] = (), where: str = "the labels"
) -> tuple[int | None, ...]:
    """The labels as classes of the model; a label that is none of them is refused.

    `names` are what the numbers of the data mean: if the model has all of these classes, they are matched by name, else
    in their order. Without `names`, numbers are names of classes only if all labels are, as numbers of stars may be.
    """
    plain = [_plain(present(label), classes) for label in labels]
    if len(classes) == 1 and any(label is not None for label in plain):
        raise BadInput(f"{where}: the model has a single output, so labels are not classes of it. {_REMEDY}")
    by_case = {name.casefold(): number for number, name in enumerate(classes)}
    if names:
        if len(names) != len(classes):
            raise BadInput(f"{where}: the data have {len(names)} classes and the model {len(classes)}. {_REMEDY}")
        order = [by_case.get(name.casefold()) for name in names]
        order = range(len(names)) if None in order else order
        return tuple(None if label is None else order[int(label)] for label in plain)
    by_name, exact = {*plain} - {None} <= {*classes}, {name: number for number, name in enumerate(classes)}
    numbers = []
    for row, label in enumerate(plain, start=1):
        number = None if label is None else exact.get(label, by_case.get(label.casefold()))
        if label is not None and label.isdecimal() and not by_name:
            number = int(label) if int(label) < len(classes) else None
        if label is not None and number is None:
            shown = ", ".join(classes[:10]) + (" …" if len(classes) > 10 else "")
            near = get_close_matches(label, classes, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise BadInput(
                f"{where}, row {row}: the label must be a class of the model, by number or name ({shown}); "
                f"got {labels[row - 1]!r}{hint} {_REMEDY}"
            )
        numbers.append(number)
    return tuple(numbers)


def _plain(label: Any, classes: Sequence[str]) -> str | None:
    """A label as a class is written; True, 1.0 and "1" are 1 if no class has another of these names."""
    name = str(label).strip()
    if label is None or name in classes:
        return None if label is None else name
    number = WHOLE.fullmatch(str(int(label)) if isinstance(label, bool) else name)
    if number is None:
        return name
    return None if int(number[1]) < 0 else str(int(number[1]))
