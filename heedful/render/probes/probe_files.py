"""The files of a probe report: the page, and the report as JSON."""

from pathlib import Path

from heedful.errors import CannotWrite
from heedful.evaluation.probe_report import ProbeReport
from heedful.render import write
from heedful.render.probes.probe_page import probe_page
from heedful.run_folder import sealed, write_atomically

_ENDINGS = (".html", ".json", ".png", ".svg", ".pdf")


def write_probes(report: ProbeReport, folder: Path) -> tuple[str, ...]:
    """Writes report.html and report.json to a folder; gives their names."""
    if folder.exists() and not folder.is_dir():
        raise CannotWrite(f"{folder} cannot be used as a folder: it is a file.")
    write_atomically(folder / "report.html", probe_page(report))
    write_atomically(folder / "report.json", sealed(report.as_dict()))
    return "report.html", "report.json"


def save_probes(report: ProbeReport, path: Path) -> None:
    """Writes one file by its ending, .html or .json; any other path is a folder, which gets both."""
    if path.suffix.lower() in _ENDINGS and not path.is_dir():
        write(report, path)
    else:
        write_probes(report, path)
