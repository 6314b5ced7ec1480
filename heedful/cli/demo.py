"""The command `heedful demo`: the sentence of the paper's Figure 1 and a review, on one page."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.input import load_model

_REVIEW = (
    "I wanted to like this film, and the first half hour isn't bad: the photography is lovely and the two leads are "
    "charming. But the plot doesn't go anywhere, the jokes fall flat, and by the end I was bored.\n\n"
    "Don't waste your evening on it."
)


def demo(
    out: Annotated[Path, typer.Option("--out", help="The page to write, an .html file.")] = Path("heedful-report.html"),
) -> None:
    """Explain two example texts with the bundled models, print both results and write one page.

    Example: `heedful demo --out heedful-report.html`
    """
    import heedful
    from heedful.experiments.paper.figure_1 import PAPERS
    from heedful.experiments.reviews import FIGURE_1
    from heedful.render import show, write_page

    examples = {
        "Figure 1 of the paper, on its model": ("paper", FIGURE_1, list(PAPERS), "positive"),
        "A review, on a small transformer": ("reviews", _REVIEW, None, None),
    }
    comparisons = {}
    for heading, (model, text, methods, target) in examples.items():
        typer.echo(f"{heading}: {text}\n")
        comparisons[heading] = heedful.compare(load_model(model, "cpu"), text, methods, target=target)
        show(comparisons[heading])
    write_page(comparisons, out, "Two texts, explained by heedful")
    typer.echo(f"Wrote {out}", err=True)
