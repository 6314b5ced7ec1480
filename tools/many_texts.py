"""The picture of the page of many texts: `python -m tools.many_texts docs/images/many-texts.png`. Needs Chromium."""

import subprocess
import sys
import tempfile
from pathlib import Path

import heedful


def draw_page(image: Path, n_texts: int = 200) -> None:
    """Explains IMDB test reviews on the bundled model, and photographs the top of the page."""
    examples = heedful.datasets()["imdb"]().examples("test")[:n_texts]
    explanations = heedful.explain(heedful.load("paper"), examples, "leave-one-out")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        explanations.save(page)
        options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,900"]
        subprocess.run(["chromium", *options, f"--screenshot={image.resolve()}", page.as_uri()], check=True)


if __name__ == "__main__":
    draw_page(Path(sys.argv[1]))
