"""Reads shap's `shap.Explanation` by its attributes; shap is not imported."""

from typing import Any

import numpy as np

from heedful.document import Document
from heedful.errors import BadInput
from heedful.exchange.numbers import parse_numbers
from heedful.exchange.parsed import Parsed
from heedful.target import Target


def class_of_shap(given: Any, document: Document, classes: tuple[str, ...]) -> str | None:  # noqa: ARG001
    """The class whose values were selected, if its name is one of the model's."""
    name = given.output_names
    return str(name) if isinstance(name, str) and name in classes else None


def parse_shap(
    given: Any,
    document: Document,  # noqa: ARG001
    target: Target,
    classes: tuple[str, ...],
) -> Parsed:
    """The values of the target's class, one per piece of the text; `base_values` becomes the fact `base`.

    If `data` is not a list of pieces of text, the values are plain numbers.
    """
    values, base, names = given.values, given.base_values, _pieces(given.data)
    texts = [] if names or given.data is None else [_pieces(row) for row in given.data]
    if texts and all(texts):
        if len(texts) > 1:
            raise BadInput(f"This shap explanation is of {len(texts)} texts; give one of them, such as e[0].")
        values, base, names = values[0], base[0] if np.ndim(base) else base, texts[0]
    array, outputs = parse_numbers(values), given.output_names
    array = array[0] if names is None and array.ndim > 1 and len(array) == 1 else array
    if array.ndim > 1:
        n = array.shape[-1]
        columns = [_column(index, classes, outputs, n) for index in (target.index, target.against) if n > 1]
        columns = columns or [0, None]
        array, base = (_of_columns(values, columns) for values in (array, base))
    elif isinstance(outputs, str) and outputs in classes and outputs != classes[target.index]:
        raise BadInput(
            f"shap explained {outputs}, but the target is {classes[target.index]}; pass the same class, or none."
        )
    start = float(np.ravel(base)[0]) if base is not None and np.size(base) == 1 else None
    return Parsed(
        package="shap",
        numbers=array,
        names=names,
        signed=True,
        facts={} if start is None else {"base": start},
        output=None if start is None else start + float(array.sum()),
    )


def _pieces(row: Any) -> tuple[str, ...] | None:
    """The row as pieces of a text, or None if it is something else."""
    pieces = row.tolist() if isinstance(row, np.ndarray) else row
    is_text = isinstance(pieces, list | tuple) and pieces and all(isinstance(piece, str) for piece in pieces)
    return tuple(map(str, pieces)) if is_text else None


def _column(index: int | None, classes: tuple[str, ...], outputs: Any, n: int) -> int | None:
    if index is None:
        return None
    named = [str(name) for name in outputs] if isinstance(outputs, list | tuple | np.ndarray) else []
    if len(named) == n and classes[index] in named:
        return named.index(classes[index])
    if n != len(classes):
        raise BadInput(
            f"shap explained {n} outputs, but the model has {len(classes)} classes; select one, such as e[:, 0]."
        )
    return index


def _of_columns(values: Any, columns: list[int | None]) -> Any:
    if values is None or not np.ndim(values):
        return values
    first, second = columns
    return values[..., first] if second is None else values[..., first] - values[..., second]
