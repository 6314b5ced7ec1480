"""Drawing explanations: terminal, notebook, page, figure."""

import json
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Literal

from heedful.comparison import Comparison
from heedful.errors import BadInput
from heedful.explanation import Explanation


def show(result: Explanation | Comparison, where: Literal["here", "browser"] = "here") -> None:
    """Shows an explanation or a comparison in the notebook or terminal this runs in, or in a browser."""
    if where == "browser":
        from heedful.render.html import page

        folder = Path(tempfile.mkdtemp(prefix="heedful-"))
        (folder / "report.html").write_text(page(result), encoding="utf-8")
        webbrowser.open((folder / "report.html").as_uri())
    elif where != "here":
        raise BadInput(f'where is "here" or "browser"; {where!r} was given.')
    elif "ipykernel" in sys.modules:
        from IPython.display import display  # type: ignore[import-not-found]

        display(result)
    else:
        from rich.console import Console

        from heedful.render.terminal import print_result

        print_result(result, Console())


def write(result: Explanation | Comparison, path: Path) -> None:
    """Writes a report by the path's ending: .html, .json, or a picture (.png, .svg, .pdf)."""
    ending = path.suffix.lower()
    if ending == ".html":
        from heedful.render.html import page

        path.write_text(page(result), encoding="utf-8")
    elif ending == ".json":
        path.write_text(json.dumps(result.as_dict()), encoding="utf-8")
    elif ending in (".png", ".svg", ".pdf"):
        from heedful.render.figures import draw_strips

        explanations = result.explanations if isinstance(result, Comparison) else (result,)
        draw_strips(explanations).savefig(path, bbox_inches="tight", dpi=200)
    else:
        raise BadInput(f"A report ends in .html, .json, .png, .svg or .pdf; {path.name!r} was given.")
