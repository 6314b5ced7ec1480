"""The files of a trust report: a page, what it says, and every number."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, final

from heedful.errors import BadInput, MissingPackage
from heedful.evaluation.report import Report
from heedful.exchange.parquet import write_parquet
from heedful.render.trust_page import trust_page

_MEASUREMENTS = {"document": int, "method": str, "metric": str, "value": float, "reason": str}
_SCORES = {"document": int, "method": str, "number": int, "unit": str, "score": float}


@final
class Written(NamedTuple):
    """The names of the files, and in a sentence why some are missing; empty where none is."""

    files: tuple[str, ...]
    missing: str


def write_report(report: Report, folder: Path) -> Written:
    """Writes report.html, report.json, and every measurement and every score as parquet, if pyarrow is there."""
    written, missing = ["report.html", "report.json"], ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.html").write_text(trust_page(report), encoding="utf-8")
        (folder / "report.json").write_text(json.dumps(report.as_dict()), encoding="utf-8")
        tables = {"measurements.parquet": (report.rows(), _MEASUREMENTS), "scores.parquet": (_scores(report), _SCORES)}
        for name, (rows, columns) in tables.items():
            write_parquet(rows, folder / name, columns)
            written.append(name)
    except OSError as error:
        raise BadInput(f"{folder} cannot be written: {error.strerror}.") from None
    except MissingPackage as error:
        missing = str(error)
    return Written(tuple(written), missing)


def _scores(report: Report) -> Iterator[dict[str, Any]]:
    """What every method gave every unit of every text."""
    for one in report.documents:
        for method in report.methods:
            for number, score in enumerate(one.scores.get(method, ())):
                yield {
                    "document": one.place,
                    "method": method,
                    "number": number,
                    "unit": one.units[number],
                    "score": score,
                }
