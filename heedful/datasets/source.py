"""Rows of parquet files, from the folder that HEEDFUL_DATA names or else from the Hugging Face hub."""

import logging
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from heedful.errors import BadInput, MissingPackage, Offline

CONVERTED = "refs/convert/parquet"
"""The revision in which the hub stores parquet copies of data sets."""


def in_folder(file: str) -> Path | None:
    """A file in the folder that HEEDFUL_DATA names; None if it names no folder."""
    folder = os.environ.get("HEEDFUL_DATA")
    if not folder:
        return None
    path = Path(folder, file)
    if not path.exists():
        raise BadInput(f"HEEDFUL_DATA names a folder without {file}; unset it to use the hub's copy.")
    return path


def from_hub(title: str, instead: str, repository: str, file: str, revision: str = "main") -> Path:
    """A file of the Hugging Face hub, downloaded once; `instead` is the name of the same file in a local folder."""
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError as error:
        raise MissingPackage(
            f"Downloading {title} needs huggingface-hub; run `make install`, or pip install huggingface-hub."
        ) from error
    # The hub's client reports each of its retries; the one sentence below is enough.
    log = logging.getLogger("huggingface_hub")
    level = log.level
    log.setLevel(logging.CRITICAL)
    get = partial(hf_hub_download, repository, file, repo_type="dataset", revision=revision)
    try:
        with suppress(LocalEntryNotFoundError):
            return Path(get(local_files_only=True))
        # One attempt: a download without a network is tried again for 25 seconds.
        get_hf_file_metadata(hf_hub_url(repository, file, repo_type="dataset", revision=revision))
        return Path(get())
    # The client's errors differ between its versions.
    except Exception as error:
        raise Offline(
            f"{title} is not cached and the hub cannot be reached; connect once, or set HEEDFUL_DATA to a "
            f"folder with {instead}."
        ) from error
    finally:
        log.setLevel(level)


def read_parquet(path: Path, columns: Mapping[str, type]) -> list[dict[str, Any]]:
    """The rows of a parquet file; every value must have the type of its column."""
    table = arrow_table(path, columns)
    names, rows = set(table.column_names), table.to_pylist()
    for name, kind in columns.items():
        if name not in names or not all(isinstance(row[name], kind) for row in rows):
            wanted = ", ".join(f"{name} ({kind.__name__})" for name, kind in columns.items())
            raise BadInput(f"{path.name} must have the columns {wanted}, without missing values; {name} does not fit.")
    return rows


def arrow_table(path: Path, columns: Collection[str] | None = None) -> Any:
    """A parquet file as a table of pyarrow: those of the columns that it has, or all."""
    if not path.exists():
        raise BadInput(f"{path} cannot be read: No such file or directory.")
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingPackage(
            f"Reading {path.name} needs pyarrow; run `make install`, or pip install pyarrow."
        ) from error
    try:
        # Not `read_table`, which imports pyarrow's data sets: most of a second. One thread: a model may be running.
        with parquet.ParquetFile(path) as file:
            names = [name for name in file.schema_arrow.names if columns is None or name in columns]
            return file.read(columns=names, use_threads=False)
    except (ArrowException, OSError) as error:
        raise BadInput(f"{path.name} cannot be read as parquet; download it again.") from error


def check_labels(path: Path, labels: list[int], classes: tuple[str, ...]) -> None:
    """Refuses labels that are not classes."""
    strange = [label for label in labels if not 0 <= label < len(classes)]
    if strange:
        raise BadInput(
            f"{path.name} labels {len(strange)} of its {len(labels)} rows with something other than "
            f"0 to {len(classes) - 1}, such as {strange[0]}."
        )
