"""Explanations, comparisons and reports as terminal output, notebook cells, pages and figures."""

import tempfile
import webbrowser
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from heedful.errors import BadInput
from heedful.evaluation.comparison import Comparison
from heedful.evaluation.probe_report import ProbeReport
from heedful.evaluation.report import Report
from heedful.evaluation.roar_curves import RoarCurves
from heedful.evaluation.several import SideBySide
from heedful.explanation import Explanation
from heedful.explanations import Explanations
from heedful.features.steering import Steering
from heedful.generation.attribution import Attribution
from heedful.generation.bias import PairBias
from heedful.generation.generation import Generation
from heedful.generation.location import Location
from heedful.generation.reliance import Reliance
from heedful.progress import in_notebook
from heedful.run_folder import sealed, write_file

_OfClassifiers = Explanation | Explanations | Comparison | Report | ProbeReport | SideBySide | RoarCurves
Shown = _OfClassifiers | Generation | Attribution | Reliance | Location | PairBias | Steering
"""What can be shown."""


def show(result: Shown, where: Literal["here", "browser"] = "here") -> None:
    """Shows a result, such as an explanation, a comparison or a report, in the notebook, the terminal or a browser."""
    if where == "browser":
        folder = Path(tempfile.mkdtemp(prefix="heedful-"))
        write_file(folder / "report.html", _drawing(result, "page")(result))
        webbrowser.open((folder / "report.html").as_uri())
    elif where != "here":
        raise BadInput(f'where must be "here" or "browser"; {where!r} was given.')
    elif in_notebook():
        from IPython.display import display  # type: ignore[import-not-found]

        display(result)
    else:
        from rich.console import Console

        _drawing(result, "terminal")(result, Console())


def write(result: Shown, path: Path) -> None:
    """Writes a file by its ending: .html or .json, and for all but reports and many texts also .png, .svg or .pdf."""
    ending = path.suffix.lower()
    if ending == ".html":
        write_file(path, _drawing(result, "page")(result))
    elif isinstance(result, Explanations):
        raise BadInput(f"A page of many texts must end in .html; {path.name!r} was given.")
    elif ending == ".json":
        write_file(path, sealed(result.as_dict()))
    elif len(_DRAWINGS[type(result)]) < len(_KINDS):
        raise BadInput(f"The file of this result must end in .html or .json; {path.name!r} was given.")
    elif ending in (".png", ".svg", ".pdf"):
        figure = _drawing(result, "figure")(result)
        write_file(path, lambda file: figure.savefig(file, format=ending[1:], bbox_inches="tight", dpi=200))
    else:
        raise BadInput(f"A report must end in .html, .json, .png, .svg or .pdf; {path.name!r} was given.")


def write_page(results: Mapping[str, Explanation | Comparison], path: Path, title: str) -> None:
    """Writes one .html page with several explanations or comparisons, each under its heading."""
    from heedful.render.comparison_page import comparisons_page

    if path.suffix.lower() != ".html":
        raise BadInput(f"A page must end in .html; {path.name!r} was given.")
    if not results:
        raise BadInput("There is nothing to write; give at least one explanation or comparison.")
    write_file(path, comparisons_page(results, title))


_KINDS = ("page", "terminal", "figure")
_DRAWINGS: dict[type, tuple[str, ...]] = {
    Explanation: ("comparison_page.comparison_page", "terminal.print_result", "views.bars.draw_explanation"),
    Comparison: ("comparison_page.comparison_page", "terminal.print_result", "figures.draw_comparison"),
    Explanations: ("texts_page.texts_page", "texts_terminal.print_texts"),
    Report: ("trust_page.trust_page", "trust_terminal.print_report"),
    ProbeReport: ("probes.probe_page.probe_page", "probes.probe_terminal.print_probes"),
    Generation: (
        *("decoding_page.generation_page", "decoding_terminal.print_generation"),
        "decoding_figures.draw_decoding",
    ),
    Location: ("location.location_page", "location.print_location", "location.draw_location"),
    PairBias: ("pairs.pair_bias.bias_page", "pairs.pair_bias.print_bias", "pairs.pair_bias.draw_bias"),
    Steering: ("features.steering_page.steering_page", "features.steering_page.print_steering"),
    Reliance: ("reliance.reliance_page", "reliance.print_reliance"),
    Attribution: (
        *("attribution_page.attribution_page", "attribution_terminal.print_attribution"),
        "attribution_figures.draw_attribution",
    ),
    RoarCurves: ("curves.roar_page.roar_page", "curves.roar_page.print_roar", "curves.roar_page.draw_roar"),
    SideBySide: ("several.several_page", "several.print_several"),
}
"""The functions that draw a result, one for each kind that it has; their modules are imported when it is drawn."""


def _drawing(result: Shown, kind: Literal["page", "terminal", "figure"]) -> Callable[..., Any]:
    module, _, function = _DRAWINGS[type(result)][_KINDS.index(kind)].rpartition(".")
    return getattr(import_module(f"heedful.render.{module}"), function)
