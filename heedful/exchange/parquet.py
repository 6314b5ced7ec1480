"""Tables as parquet files, which every data-frame library reads."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.errors import MissingPackage
from heedful.run_folder import write_atomically

_PORTION = 50_000


def write_parquet(
    rows: Iterable[Mapping[str, Any]],
    path: Path,
    columns: Mapping[str, type],
    metadata: Mapping[str, str] | None = None,
) -> int:
    """Writes rows in portions, so that they need not all fit into memory, and returns their number.

    `columns` are the names and types of what is written: str, int, float or bool. A value may be None. `metadata` is
    stored with the file.
    """
    try:
        from pyarrow import Table, bool_, float64, int64, parquet, schema, string
    except ImportError as error:
        raise MissingPackage(
            f"Writing {path.name} needs pyarrow; run `make install`, or pip install pyarrow."
        ) from error
    kinds = {str: string(), int: int64(), float: float64(), bool: bool_()}
    layout = schema([(name, kinds[kind]) for name, kind in columns.items()], metadata)
    n_rows = 0

    def write(file: Path) -> None:
        nonlocal n_rows
        with parquet.ParquetWriter(file, layout) as writer:
            for portion in _portions(iter(rows)):
                cells = {name: [row[name] for row in portion] for name in columns}
                try:
                    table = Table.from_pydict(cells, layout)
                except UnicodeEncodeError:
                    cells = {name: [writable(cell) for cell in cells[name]] for name in cells}
                    table = Table.from_pydict(cells, layout)
                writer.write_table(table)
                n_rows += len(portion)

    write_atomically(path, write)
    return n_rows


def _portions(rows: Iterator[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    while portion := list(islice(rows, _PORTION)):
        yield portion


def writable(value: Any) -> Any:
    """The value; half of a surrogate pair, which a text may contain, is escaped: UTF-8 cannot hold it."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value
