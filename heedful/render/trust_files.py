"""The files of a trust report: the page, the report as JSON, and all numbers as parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, final

from heedful.errors import MissingPackage
from heedful.evaluation.report import Report
from heedful.exchange.parquet import write_parquet
from heedful.render.trust_page import trust_page
from heedful.run_folder import sealed, write_atomically

_MEASUREMENTS = {"document": int, "method": str, "metric": str, "value": float, "reason": str}
_SCORES = {"document": int, "method": str, "number": int, "unit": str, "score": float}


@final
class WrittenFiles(NamedTuple):
    """The names of the written files, and why others were not written; empty if all were."""

    files: tuple[str, ...]
    missing: str


def write_report(report: Report, folder: Path) -> WrittenFiles:
    """Writes report.html and report.json, and with pyarrow every measurement and every score as parquet."""
    written, missing = ["report.html", "report.json"], ""
    try:
        write_atomically(folder / "report.html", trust_page(report))
        write_atomically(folder / "report.json", sealed(report.as_dict()))
        tables = {"measurements.parquet": (report.rows(), _MEASUREMENTS), "scores.parquet": (_scores(report), _SCORES)}
        for name, (rows, columns) in tables.items():
            write_parquet(rows, folder / name, columns)
            written.append(name)
    except MissingPackage as error:
        missing = str(error)
    return WrittenFiles(tuple(written), missing)


def _scores(report: Report) -> Iterator[dict[str, Any]]:
    """The score of every method for every unit of every text."""
    for document in report.documents:
        for method in report.methods:
            for number, score in enumerate(document.scores.get(method, ())):
                yield {
                    "document": document.place,
                    "method": method,
                    "number": number,
                    "unit": document.units[number],
                    "score": score,
                }
