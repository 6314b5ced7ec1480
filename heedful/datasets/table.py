"""Tables of a user as columns: files, and data frames and data sets of other packages."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from heedful.datasets.source import arrow_table
from heedful.errors import BadInput

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
"""The endings of files that are tables."""
COLUMNS = ("Series", "Column", "Index", "Array")
"""How the classes of one column of a table end in pandas, polars and datasets."""
_FRAMES = ("pandas", "polars", "datasets")


@final
@dataclass(frozen=True)
class Table:
    """Columns of equal length by name. `places` are where the rows are, such as "line 3"; `index` names them.

    `classes` are the names of the classes that a column numbers.
    """

    columns: Mapping[str, Sequence[Any]]
    name: str
    places: Sequence[str]
    index: Sequence[str] | None = None
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def package_of(data: object) -> str:
    """The package that made the object, if it is one whose tables are read: pandas, polars or datasets; else ""."""
    package = type(data).__module__.partition(".")[0]
    return package if package in _FRAMES else ""


def frame_table(frame: Any) -> Table:
    """A DataFrame of pandas or polars, or a `datasets.Dataset`, recognised without importing its package."""
    package, kind = package_of(frame), type(frame).__name__
    if kind == "LazyFrame":
        raise BadInput("A LazyFrame has no rows yet; pass frame.collect().")
    if kind not in ("DataFrame", "Dataset"):
        splits = f", such as [{next(iter(frame))!r}]" if kind == "DatasetDict" and len(frame) else ""
        raise BadInput(f"{package}.{kind} is not one table; choose one of its parts{splits}.")
    names = list(frame.column_names if package == "datasets" else frame.columns)
    if len({*map(str, names)}) < len(names):
        raise BadInput(f"The {kind} has two columns of one name; rename one of {', '.join(map(str, names))}.")
    columns = {str(name): list(frame[name]) for name in names}
    features = frame.features.items() if package == "datasets" else ()
    classes = {name: tuple(kind.names) for name, kind in features if type(kind).__name__ == "ClassLabel"}
    return Table(columns, f"the {kind}", _rows(len(frame)), index_of(frame), classes)


def index_of(data: Any) -> list[str] | None:
    """The index of a DataFrame or Series of pandas."""
    indexed = package_of(data) == "pandas" and type(data).__name__ in ("DataFrame", "Series")
    return [str(entry) for entry in data.index] if indexed else None


def read_table(path: Path) -> Table:
    """The table of a file: .csv, .tsv, .jsonl or .parquet."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        columns = arrow_table(path).to_pydict()
        return Table(columns, path.name, _rows(len(next(iter(columns.values()), ()))))
    return _json_lines(path) if ending == ".jsonl" else _separated(path, "\t" if ending == ".tsv" else ",;\t")


def file_text(path: Path, newline: str | None = None) -> str:
    """The text of a UTF-8 file; a file that cannot be read is a one-sentence error."""
    try:
        with path.open(encoding="utf-8-sig", newline=newline) as file:
            return file.read()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a UTF-8 text file.") from None


def numbered_lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a file that are not empty, with their numbers."""
    # Not splitlines: U+0085 and U+2028 may stand inside a text.
    lines = [(number, line) for number, line in enumerate(file_text(path).split("\n"), start=1) if line.strip()]
    if not lines:
        raise BadInput(f"{path} contains no text; write one text per line.")
    return lines


def _rows(n: int) -> list[str]:
    return [f"row {number}" for number in range(1, n + 1)]


def _json_lines(path: Path) -> Table:
    rows, places = [], []
    for number, line in numbered_lines(path):
        places.append(f"line {number}")
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise BadInput(f"{path.name}, line {number}: invalid JSON.") from None
        if not isinstance(rows[-1], dict):
            example = '{"text": "a fine film", "label": 1}'
            raise BadInput(f"{path.name}, line {number}: a line must be a dictionary such as {example}.")
    names = dict.fromkeys(name for row in rows for name in row)
    return Table({name: [row.get(name) for row in rows] for name in names}, path.name, places)


def _separated(path: Path, delimiters: str) -> Table:
    """A table with a delimiter: of several, the one that gives the first row the most fields."""
    content = file_text(path, newline="")
    limit = csv.field_size_limit(max(len(content), 1))
    # Another delimiter than the right one may find its quotes in the wrong places, so the choice is not strict.
    mark = max(delimiters, key=lambda mark: len(next(csv.reader(io.StringIO(content, newline=""), delimiter=mark), [])))
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=mark, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise BadInput(f"{path.name}, line {reader.line_num}: {error}. Write a quote in a quoted text twice.") from None
    finally:
        csv.field_size_limit(limit)
    for number, row in rows:
        if len(row) != len(header):
            raise BadInput(
                f"{path.name}, line {number}: {len(row)} fields, but the first line names {len(header)} columns. "
                "Put quotes around a text that contains the delimiter."
            )
    # A column without a name is an index, or what a delimiter at the end of every line leaves.
    named = [name for name in header if name]
    if len({*named}) < len(named):
        raise BadInput(f"{path.name} has two columns of one name; rename one of {', '.join(named)}.")
    columns = {name: [row[n] or None for _, row in rows] for n, name in enumerate(header) if name}
    return Table(columns, path.name, [f"line {number}" for number, _ in rows])
