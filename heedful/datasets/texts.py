"""Texts of a user with their ids and labels, whatever they came in."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final, get_args

import numpy as np

from heedful import family
from heedful.datasets import Dataset, Example, Split
from heedful.datasets.labels import WHOLE, present
from heedful.datasets.table import COLUMNS, TABLES, Table, frame_table, index_of, numbered_lines, package_of, read_table
from heedful.document import Pair
from heedful.document.detected import Regions
from heedful.errors import BadInput, UnknownName, in_short, unknown_name

TEXT_NAMES = (
    *("text", "texts", "sentence", "comment", "review", "content", "document", "message", "tweet", "post", "body"),
    *("comment_text", "review_text", "review_body", "full_text", "utterance", "passage", "abstract", "headline"),
)
LABEL_NAMES = ("label", "labels", "target", "class", "category", "sentiment", "toxic", "toxicity", "polarity", "gold")
_LONGEST_LABEL = 4
"""Words of a label, at most."""
ID_NAMES = ("id", "ids", "text_id", "comment_id", "review_id", "doc_id", "document_id", "uid", "guid")
"""Column names that are obvious, whatever their case."""


@final
@dataclass(frozen=True)
class Texts:
    """Texts with their ids and labels.

    `labels` are as the user wrote them, a class by number or name, None where there is none. `about` says in one
    sentence what was read from where, such as the columns that were recognised by their names.
    """

    texts: tuple[Any, ...]
    ids: tuple[str, ...]
    labels: tuple[object, ...]
    name: str
    about: str = ""
    rationales: tuple[Any, ...] = ()
    """The evidence that people marked in each text, or None; empty if there is none at all."""
    classes: tuple[str, ...] = ()
    """What the data call the classes that their labels number; empty if they do not say."""

    def __len__(self) -> int:
        return len(self.texts)

    def row(self, name: str) -> Any:
        """The text of that id, or else of that number, counted from 0."""
        places = [place for place, own in enumerate(self.ids) if own == name]
        if not places and name.isdecimal() and int(name) < len(self):
            places = [int(name)]
        if not places:
            raise BadInput(f"{self.name} has no row {name!r}; give an id, or a number from 0 to {len(self) - 1}.")
        return self.texts[places[0]]


def content_of(text: Any) -> str:
    """What identifies an input: a text or a pair itself, an image by its pixels, regions by their features."""
    if isinstance(text, Regions):
        return f"{text.text!r} {text.features.tobytes().hex()} {text.boxes.tobytes().hex()}"
    return repr(text) if isinstance(text, str | Pair | Path) else np.asarray(text).tobytes().hex()


def places_by_hash(texts: Sequence[Any], n: int) -> list[int]:
    """The places of the n different texts whose hashes are the least, with their copies: as good as random, always the
    same, and whatever the order."""
    family.check_count("The number of texts", n)
    hashes = [hashlib.sha256(content_of(text).encode("utf-8", "backslashreplace")).digest() for text in texts]
    least = {*sorted({*hashes})[:n]}
    return [place for place, own in enumerate(hashes) if own in least]


def sample_by_hash(texts: Sequence[Any], n: int) -> list[int]:
    """The same without the copies: each text once, so that at most n are drawn and none counts twice."""
    first: dict[str, int] = {}
    return [place for place in places_by_hash(texts, n) if first.setdefault(content_of(texts[place]), place) == place]


def holds_many(data: object) -> bool:
    """Whether the data are many texts: a list, a table, or the path of a file of texts; a string may be a path."""
    if isinstance(data, np.ndarray):
        return data.dtype.kind in "UO"
    return isinstance(data, list | tuple | Texts) or bool(package_of(data)) or text_file(data) is not None


def text_file(data: object) -> Path | None:
    """The path, if the data are the path of a table or of a .txt file; one that does not exist is an error."""
    if not isinstance(data, str | Path) or Path(data).suffix.lower() not in (*TABLES, ".txt"):
        return None
    with suppress(OSError):
        # The name of a file has a greatest length; a text may be longer.
        if Path(data).is_file():
            return Path(data)
    if isinstance(data, Path) or len(data.split()) == 1:
        raise BadInput(f"{data} cannot be read: there is no such file.")
    return None


def texts_in(
    data: Any, split: Any, text: str | None = None, label: str | bool | Sequence[object] | None = None
) -> Texts:
    """The texts of a split of a data set, by its name or as it is, or those of a user as `texts_of` reads them."""
    if split not in get_args(Split):
        raise unknown_name("split", split, get_args(Split))
    if isinstance(data, str) and not holds_many(data):
        catalogue = family.members("heedful.datasets", Dataset)
        if data not in catalogue:
            raise unknown_name("data set", data, catalogue)
        member: Any = catalogue[data]
        data = member()
    if not isinstance(data, Dataset):
        return texts_of(data, text, label)
    examples = texts_of(list(data.examples(split)), text, label)
    return replace(examples, name=f"{data.name} ({split})", classes=data.classes)


def texts_of(
    data: Any, text: str | None = None, label: str | bool | Sequence[object] | None = None, id: str | None = None
) -> Texts:
    """Texts from a list, a data frame or series, a `datasets.Dataset`, or a file: .csv, .tsv, .jsonl, .parquet, .txt.

    `text`, `label` and `id` are columns of a table; those that are left out are found by name if that is obvious.
    `label` may also be a list of labels, or False for none. A .txt file has one text per line.
    """
    if isinstance(data, Texts):
        return data
    path: Path | None = data if isinstance(data, Path) else text_file(data)
    if path is not None and path.suffix.lower() in TABLES:
        return _from_table(read_table(path), text, label, id)
    if package_of(data) and not type(data).__name__.endswith(COLUMNS):
        return _from_table(frame_table(data), text, label, id)
    if path is None and (not isinstance(data, Iterable) or isinstance(data, str | bytes | Mapping)):
        given = in_short(data) if isinstance(data, str) else type(data).__name__
        raise BadInput(f"Texts are a list, a table or a file; {given} was given.")
    if text is not None or id is not None or isinstance(label, str):
        raise BadInput("text, label and id are names of columns; these texts have none, so leave them out.")
    items: list[Any] = [*data] if path is None else [line for _, line in numbered_lines(path)]  # type: ignore[misc]
    parts = [_parts(item) for item in items]
    name = "the given texts" if path is None else path.name
    about = "" if path is None else f"Read {len(items):,} texts from {name}, one per line."
    labels = [own for _, own, _ in parts] if label is None else _listed_labels(label, len(items))
    texts, rationales = tuple(part[0] for part in parts), tuple(part[2] for part in parts)
    return Texts(texts, _ids(index_of(data) or (), len(items)), tuple(labels), name, about, rationales)


def _from_table(table: Table, text: str | None, label: Any, id: str | None) -> Texts:
    columns, n = table.columns, len(table.places)
    if not n or not columns:
        raise BadInput(f"{table.name} has no rows.")
    for name in (text, label, id):
        if isinstance(name, str) and name not in columns:
            raise UnknownName(f"{table.name}: {unknown_name('column', name, columns)}")
    label_column = label if isinstance(label, str) else None
    if label is None:
        label_column = _by_name(columns, LABEL_NAMES, text, lambda values: all(map(_may_be_label, values)))
    id_column = id or _by_name(columns, ID_NAMES, text, _all_differ)
    text_column = text or _text_column(table, label_column, id_column)
    texts = tuple(map(_text, columns[text_column]))
    labels = _listed_labels(label, n) if label_column is None else [*map(present, columns[label_column])]
    names = [str(name) for name in columns[id_column]] if id_column else table.index or []
    if id and not _all_differ(names):
        raise BadInput(f"The ids in column {id!r} of {table.name} are not all different; name another column.")
    about = _about(table, {"text": (text_column, text), "label": (label_column, label), "id": (id_column, id)})
    rationales, classes = _rationales(table, labels), table.classes.get(label_column or "", ())
    return Texts(texts, _ids(names, n), tuple(labels), table.name, about, rationales, classes)


def _by_name(columns: Mapping[str, Sequence[Any]], names: Sequence[str], taken: str | None, fits: Any) -> str | None:
    """The one column with an obvious name and fitting values; of several, the one whose name comes first."""
    fitting = [name for name in columns if name != taken and name.casefold() in names and fits(columns[name])]
    return min(fitting, key=lambda name: names.index(name.casefold()), default=None)


def _text_column(table: Table, label: str | None, id: str | None) -> str:
    """The column of texts: "text", or the only one with another obvious name, or the only one with strings."""
    others = [name for name in table.columns if name not in (label, id)]
    obvious = [name for name in others if name.casefold() in TEXT_NAMES]
    plain = [name for name in obvious if name.casefold() == "text"]
    strings = [name for name in others if any(_is_prose(value) for value in table.columns[name])]
    for some in (plain, obvious, strings):
        # A file without a header would lose its first text.
        if len(some) == 1 and len(some[0].split()) <= 3:
            return some[0]
    listed = ", ".join(repr(name)[:40] for name in table.columns)
    raise BadInput(
        f"{table.name}: it is not obvious which column has the texts; name one by text=, or --text-column. "
        f"Its columns are {listed}."
    )


def _about(table: Table, chosen: Mapping[str, tuple[str | None, Any]]) -> str:
    used = {kind: column for kind, (column, _) in chosen.items() if column is not None}
    by_name = [kind for kind in used if chosen[kind][1] is None]
    mark = " (found by name)" if len(by_name) < len(used) else ""
    listed = [f"{kind} column {column!r}{mark if kind in by_name else ''}" for kind, column in used.items()]
    end = "" if mark else ", found by name"
    others = [name for name in table.columns if name not in used.values() and _looks_like_labels(table.columns[name])]
    hint = ""
    if "label" not in used and chosen["label"][1] is None and others:
        hint = f" No labels were read; {others[0]!r} looks like them: --label-column {others[0]}, or label= in Python."
    return f"Read {len(table.places):,} texts from {table.name}: {', '.join(listed)}{end}.{hint}"


def _looks_like_labels(values: Sequence[Any]) -> bool:
    """Whether a column has few different values that may be labels, at least two; sentences are none."""
    short = all(len(str(value).split()) <= _LONGEST_LABEL for value in values)
    return short and all(map(_may_be_label, values)) and 2 <= len({str(present(value)) for value in values}) <= 10


def _parts(example: Any) -> tuple[Any, Any, Any]:
    """The text, the label and the rationale of an entry of a list; a tuple has a class by number or name."""
    if isinstance(example, Example):
        return example.text, present(example.label), example.rationale
    if isinstance(example, tuple) and len(example) == 2 and isinstance(example[1], int | np.integer | str):
        return example[0], present(example[1]), None
    return "" if present(example) is None else example, None, None


def _text(value: Any) -> Any:
    """The text of a cell, or a pair from two strings; what is no text is refused when it is explained."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):
        return Pair(value[0], value[1])
    return "" if present(value) is None else value


def _rationales(table: Table, labels: Sequence[object]) -> tuple[Any, ...]:
    given = [present(value) for value in table.columns.get("rationale", ())]
    if any(isinstance(value, str) for value in given):
        return ()
    for value, label, place in zip(given, labels, table.places, strict=False):
        if value is not None and label is None:
            raise BadInput(f"{table.name}, {place}: a rationale needs a label; add one.")
        if value is not None and not (isinstance(value, list) and all(map(_is_span, value))):
            raise BadInput(
                f"{table.name}, {place}: a rationale must be spans of characters such as [[0, 4], [9, 15]]; "
                f"got {value!r:.40}."
            )
    return tuple(None if value is None else tuple((start, end) for start, end in value) for value in given)


def _is_span(span: object) -> bool:
    return isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and WHOLE.fullmatch(value) is None and not re.fullmatch(r"[-+.\deE]+", value)


def _may_be_label(value: Any) -> bool:
    value = present(value)
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and value.is_integer())


def _all_differ(values: Sequence[Any]) -> bool:
    return len({*map(str, values)}) == len(values)


def _ids(names: Sequence[str], n: int) -> tuple[str, ...]:
    """The names, if there are any and they differ; else numbers."""
    return tuple(names) if names and _all_differ(names) else tuple(map(str, range(n)))


def _listed_labels(label: Any, n: int) -> list[Any]:
    if label is None or label is False:
        return [None] * n
    if isinstance(label, bool | str) or not isinstance(label, Collection) or len(label) != n:
        raise BadInput(f"label must be a column, False, or one label for each of {n:,} texts; got {in_short(label)}.")
    return [*map(present, label)]
