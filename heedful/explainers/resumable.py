"""Many texts explained into a folder, in which a stopped run resumes."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from heedful.datasets.texts import content_of
from heedful.explainers.many_texts import Explained, ManyTexts
from heedful.explanation import Explanation
from heedful.explanations.refusal import Refusal
from heedful.explanations.store import read_shard, shard_path, write_shard
from heedful.models.budget import Progress
from heedful.run_folder import RunFolder

SHARD = 50
"""Texts in a file; no more are in memory."""
_UNFINISHED = "unfinished.jsonl"


@final
class Summary(NamedTuple):
    """What became of many texts: how many there are, and for every reason the ids of the texts that have none."""

    n_texts: int
    refused: dict[str, list[str]]


def explain_into(many: ManyTexts, folder: Path, watch: Progress = lambda *_: None) -> Summary:
    """Explains the texts that the folder does not have; `heedful.open` reads it. A kill loses at most one text.

    The bytes of the files do not depend on how often the run was stopped.
    """
    kept, n = RunFolder(folder), len(many.texts)
    refused: dict[str, list[str]] = {}
    with kept.alone():
        kept.claim(_identity(many))
        for number, start in enumerate(range(0, n, SHARD)):
            path, places = shard_path(folder, number), range(start, min(n, start + SHARD))
            if not path.exists():
                write_shard(path, many.collect(_results(many, kept, places, watch)))
            for name, reason in read_shard(path).refusals.items():
                refused.setdefault(reason, []).append(name)
            watch(places.stop, n)
        (folder / _UNFINISHED).unlink(missing_ok=True)
    return Summary(n, refused)


def _results(many: ManyTexts, kept: RunFolder, places: range, watch: Progress) -> list[Explained]:
    """The results of one file. Of a method that explains texts one by one, those before a kill are kept."""
    if not many.one_by_one:
        return list(many.explain(places, first=places.start == 0))
    # A kill after a file was finished leaves the rows of that file.
    rows = {row["place"]: row for row in kept.rows(_UNFINISHED) if row["place"] in places}
    if not rows:
        (kept.path / _UNFINISHED).unlink(missing_ok=True)
    missing = [place for place in places if place not in rows]
    for result in many.explain(missing, first=places.start == 0 and not rows):
        rows[result.place] = _row(result)
        kept.append(_UNFINISHED, rows[result.place])
        watch(places.start + len(rows), len(many.texts))
    # A resumed run reads the file, so a first run does too.
    return [_explained(row) for row in kept.rows(_UNFINISHED)]


def _row(result: Explained) -> dict[str, Any]:
    item = result.item
    content = [item.text, item.reason, item.method] if isinstance(item, Refusal) else item.as_dict()
    return {"place": result.place, "item": content, "predicted": result.predicted, "confidence": result.confidence}


def _explained(row: dict[str, Any]) -> Explained:
    item = row["item"]
    explained = Refusal(*item) if isinstance(item, list) else Explanation.from_dict(item)
    return Explained(row["place"], explained, row["predicted"], row["confidence"])


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
