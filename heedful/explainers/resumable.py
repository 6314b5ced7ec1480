"""Many texts explained into a folder, in which a stopped run resumes."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from heedful.datasets.texts import content_of
from heedful.explainers.many_texts import ManyTexts
from heedful.explanations.store import read_shard, shard_path, table_rows, write_shard
from heedful.progress import Progress
from heedful.run_folder import RunFolder

SHARD = 50
"""Texts in a file; no more are in memory."""
_UNFINISHED = "unfinished.jsonl"


def explain_into(many: ManyTexts, folder: Path, watch: Progress = lambda *_: None) -> dict[str, list[str]]:
    """Explains the texts that the folder does not have; `heedful.open` reads it. A kill loses at most one text.

    The result has for every reason the ids of the texts that could not be explained. The bytes of the files do not
    depend on how often the run was stopped.
    """
    kept, n = RunFolder(folder), len(many.texts)
    refused: dict[str, list[str]] = {}
    with kept.alone():
        kept.claim(_identity(many))
        for number, start in enumerate(range(0, n, SHARD)):
            path, places = shard_path(folder, number), range(start, min(n, start + SHARD))
            if not path.exists():
                write_shard(path, _rows(many, kept, places, watch), many.model.classes)
            for name, reason in read_shard(path).refusals.items():
                refused.setdefault(reason, []).append(name)
            watch(places.stop, n)
        (folder / _UNFINISHED).unlink(missing_ok=True)
    return refused


def _rows(many: ManyTexts, kept: RunFolder, places: range, watch: Progress) -> list[dict[str, Any]]:
    """The rows of one file. Of a method that explains texts one by one, those before a kill are kept."""
    if not many.one_by_one:
        return table_rows(many.collect([*many.explain(places, first=places.start == 0)]))
    # A kill after a file was finished leaves the rows of that file.
    rows = {entry["place"]: entry["row"] for entry in kept.rows(_UNFINISHED) if entry["place"] in places}
    if not rows:
        (kept.path / _UNFINISHED).unlink(missing_ok=True)
    missing = [place for place in places if place not in rows]
    for result in many.explain(missing, first=places.start == 0 and not rows):
        (rows[result.place],) = table_rows(many.collect([result]))
        kept.append(_UNFINISHED, {"place": result.place, "row": rows[result.place]})
        watch(places.start + len(rows), len(many.texts))
    return [rows[place] for place in places]


def _identity(many: ManyTexts) -> dict[str, Any]:
    """Everything that identifies a run; a folder of another run is refused."""
    texts, budget = many.texts, many.budget
    return {
        "model": many.model.fingerprint,
        # A function has no other fingerprint than its outputs.
        "outputs": _hash(_outputs(many)),
        "method": many.explainer.name,
        "settings": asdict(many.explainer),
        "texts": _hash([content_of(text) for text in texts.texts]),
        "ids": _hash(texts.ids),
        "labels": _hash(many.labels),
        "target": _hash([*map(repr, many.requests)]),
        "against": many.against,
        "scale": many.scale,
        "limits": [budget.memory, None if budget.seconds == np.inf else budget.seconds, budget.half],
        "n_texts": len(texts),
    }


def _outputs(many: ManyTexts) -> list[Any]:
    """The outputs on the first texts; none if one of them cannot be read, which is then refused in its place."""
    with suppress(Exception):
        return np.round(many.model(list(many.texts.texts[:3])), 4).tolist()
    return []


def _hash(content: Sequence[Any]) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()
