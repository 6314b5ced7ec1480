"""Explanations of many texts in a folder: settings.json, and parquet files ("shards") with one row per text."""

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.datasets.source import arrow_table
from heedful.errors import BadInput
from heedful.exchange.parquet import writable, write_parquet
from heedful.explanation import Explanation
from heedful.explanations import COLUMNS, Explanations
from heedful.explanations.refusal import Refusal
from heedful.run_folder import RunFolder, sealed, unsealed

TEXTS_PER_SHARD = 200
_COLUMNS = {
    "id": str,
    "text": str,
    "label": int,
    "predicted": int,
    "confidence": float,
    "target": str,
    "output": float,
    "reason": str,
    "explanation": str,
}
"""`label` and `predicted` are class numbers, `reason` says why a text has no explanation, and `explanation` is the
sealed JSON of `Explanation.as_dict`, or the text and method of a refusal."""

_OF_TEXT = ("id", "label", "predicted", "confidence")


def shard_path(folder: Path, number: int) -> Path:
    """The file of a shard: explanations-00000.parquet, explanations-00001.parquet, …"""
    return folder / f"explanations-{number:05d}.parquet"


def write_shard(path: Path, rows: Sequence[dict[str, Any]], classes: Sequence[str]) -> None:
    """Writes rows of `table_rows`; the same explanations give the same bytes. The file's metadata hold class names."""
    about = sealed({"classes": list(classes), "rows": _digest(rows)})
    write_parquet(rows, path, _COLUMNS, {"heedful": about})


def read_shard(path: Path) -> Explanations:
    """The explanations that `write_shard` wrote; a damaged or changed file is refused."""
    try:
        table = arrow_table(path)
        rows, about = table.to_pylist(), unsealed(table.schema.metadata[b"heedful"].decode())
        if about["rows"] != _digest(rows):
            raise ValueError("the checksum does not match")
        items = tuple(map(_item, rows))
        ids, labels, predicted, confidence = (tuple(row[name] for row in rows) for name in _OF_TEXT)
        return Explanations(items, ids, tuple(about["classes"]), labels, predicted, len(rows), confidence)
    except (BadInput, OSError, ValueError, KeyError, TypeError, MemoryError, NotImplementedError):
        raise BadInput(f"{path} is missing, damaged or not written by heedful; make it again.") from None


def save_folder(explanations: Explanations, folder: Path) -> None:
    """Writes settings.json and the shards; a folder with other explanations is refused."""
    kept = RunFolder(folder)
    rows, classes = table_rows(explanations), explanations.classes
    settings = {"classes": list(classes), "n_texts": explanations.n_texts, "rows": _digest(rows)}
    with kept.alone():
        kept.claim(settings)
        for number, start in enumerate(range(0, max(len(rows), 1), TEXTS_PER_SHARD)):
            write_shard(shard_path(folder, number), rows[start : start + TEXTS_PER_SHARD], classes)


def open(path: str | Path) -> Explanations | Explanation:
    """Opens a folder of `Explanations.save` or of `heedful explain --out`, or the JSON file of one explanation."""
    path = Path(path)
    if not path.exists():
        raise BadInput(f"There is no file or folder {path}.")
    if path.is_file():
        return read_shard(path) if path.suffix == ".parquet" else Explanation.load(path)
    settings = RunFolder(path).settings()
    n_shards = len([*path.glob("explanations-*.parquet")])
    if settings is None or not n_shards:
        raise BadInput(f"{path} contains no explanations; name a folder that heedful saved.")
    shards = [read_shard(shard_path(path, number)) for number in range(n_shards)]
    columns = {name: tuple(value for shard in shards for value in getattr(shard, name)) for name in COLUMNS}
    return replace(shards[0], n_texts=max(settings.get("n_texts", 0), len(columns["ids"])), **columns)


def table_rows(explanations: Explanations) -> list[dict[str, Any]]:
    """One row per text, which JSON can hold."""
    columns = (explanations.ids, explanations.labels, explanations.predicted, explanations.confidence)
    return [_row(values, item) for values, item in zip(zip(*columns, strict=True), explanations, strict=True)]


def _row(values: Sequence[Any], item: Explanation | Refusal) -> dict[str, Any]:
    row: dict[str, Any] = dict(zip(_OF_TEXT, map(writable, values), strict=True))
    if isinstance(item, Refusal):
        content = sealed({"text": item.text, "reason": item.reason, "method": item.method})
        row |= {"text": writable(item.text), "target": None, "output": None, "reason": writable(item.reason)}
    else:
        content = sealed(item.as_dict())
        row |= {"text": writable(item.document.text), "target": writable(item.target.name), "output": item.output}
        row |= {"reason": None}
    return {**row, "explanation": content}


def _item(row: dict[str, Any]) -> Explanation | Refusal:
    content = unsealed(row["explanation"])
    return Explanation.from_dict(content) if row["reason"] is None else Refusal(**content)


def _digest(rows: Sequence[dict[str, Any]]) -> str:
    digest = sha256()
    for row in rows:
        digest.update(json.dumps([row[name] for name in _COLUMNS]).encode())
    return digest.hexdigest()
