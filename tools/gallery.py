"""Writes docs/gallery.md and docs/reproduced/ from a folder of `heedful reproduce`: python tools/gallery.py RUN_FOLDER

With --update only the sections and figures of the experiments in that folder are replaced or added.

Of every figure the smaller of SVG and PNG is taken, and the PNG where the SVG is large, which is slow to draw.
"""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import get_args

from heedful.experiments.claim import Claim, ClaimVerdict
from heedful.experiments.outcome import Outcome, count_verdicts, read_outcome
from heedful.experiments.run import experiments_in_order
from heedful.render.text_strip import visible

LARGEST_SVG = 300_000
LARGEST_GALLERY = 4_000_000
_MARKDOWN = str.maketrans({sign: f"&#{ord(sign)};" for sign in "\\`*_|[]!#~"} | {"\n": " "})


def write_gallery(run: Path, docs: Path) -> int:
    """Writes the page and its figures; returns the number of bytes of the figures."""
    outcomes = [one for name in experiments_in_order() if (one := read_outcome(run / name)) is not None]
    if not outcomes or not (run / "report.html").exists():
        sys.exit(f"{run} holds no finished run; start one: heedful reproduce --out {run}")
    pictures = docs / "reproduced"
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True)
    shutil.copyfile(run / "report.html", pictures / "report.html")
    parts = [_head(outcomes)]
    for part, ones in groupby(outcomes, key=lambda one: one.part):
        parts += [f"## {part.capitalize()}", *(_section(one, run / one.name, pictures) for one in ones)]
    (docs / "gallery.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return sum(path.stat().st_size for path in pictures.iterdir() if path.suffix != ".html")


def update_gallery(run: Path, docs: Path) -> None:
    """Replaces or adds the sections of the experiments in the folder; the counts at the top follow."""
    pictures, page = docs / "reproduced", docs / "gallery.md"
    head, *parts = re.split(r"^(?=###? )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = {match[1]: part.strip() for part in parts if (match := re.search(r"\{ #([\w-]+) \}", part))}
    for name in experiments_in_order():
        one = read_outcome(run / name)
        if one is not None:
            for old in pictures.glob(f"{name}-*"):
                if str(old.name) in sections.get(name, ""):
                    old.unlink()
            sections[name] = _section(one, run / name, pictures)
    verdicts = Counter(re.findall(r"^\|(?:[^|]*\|){3} ([a-z ]+) \|", "\n".join(sections.values()), re.MULTILINE))
    del verdicts["verdict"]
    counted = ", ".join(f"{verdicts[name]} {name}" for name in get_args(ClaimVerdict) if verdicts[name])
    head = re.sub(r"Of \d+ claims: [^.]*\.", f"Of {verdicts.total()} claims: {counted}.", head)
    chapters = [head.strip()]
    for part, members in groupby(experiments_in_order().values(), key=lambda member: member.part):
        shown = [sections[member.name] for member in members if member.name in sections]
        chapters += [f"## {part.capitalize()}", *shown] if shown else []
    page.write_text("\n\n".join(chapters) + "\n", encoding="utf-8")


def _head(outcomes: Sequence[Outcome]) -> str:
    n_quick = sum(one.quick for one in outcomes)
    size = {0: "the full run", len(outcomes): "the quick run, with few texts and small models"}.get(
        n_quick, f"the full run, save {n_quick} of {len(outcomes)} experiments in the quick form"
    )
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in count_verdicts(outcomes).items())
    on = ", ".join(sorted({one.device for one in outcomes}))
    n_claims = sum(len(one.claims) for one in outcomes)
    return (
        "# Gallery\n\n"
        "The figures and numbers of the sources, reproduced: published, ours, and a verdict. "
        f"This is {size}, on {on}. Of {n_claims} claims: {verdicts}. The verdicts are defined "
        "under [reproduce](reproduce.md#verdicts). The same as one self-contained page: "
        "[report](reproduced/report.html).\n\n"
        "*Written by* `python tools/gallery.py RUN_FOLDER`."
    )


def _section(one: Outcome, folder: Path, pictures: Path) -> str:
    lines = [f"### {_said(one.title)} {{ #{one.name} }}", f"{_said(one.about)} Source: {_said(one.source)}."]
    for name in one.figures:
        file = _smaller(folder, name)
        kept = f"{one.name}-{file.name}"
        shutil.copyfile(file, pictures / kept)
        lines.append(f"![{_said(one.title)}: {_said(name.replace('-', ' '))}](reproduced/{kept})")
    if one.failed is not None:
        lines.append(f"Not measured: {_said(one.failed)}")
    if one.claims:
        head = ["| what | published | ours | verdict | why |", "| --- | --- | --- | --- | --- |"]
        lines.append("\n".join([*head, *map(_row, one.claims)]))
    form = "Quick" if one.quick else "Full"
    resumed = " (resumed; the time of the last part)" if one.resumed else ""
    lines.append(f"{form} form, on {one.device}, in {one.seconds:,.1f} s{resumed}: `{one.command}`")
    return "\n\n".join(lines)


def _row(claim: Claim) -> str:
    cells = (claim.what, claim.published or "—", claim.ours or "—", claim.verdict, claim.why)
    return f"| {' | '.join(map(_said, cells))} |"


def _smaller(folder: Path, name: str) -> Path:
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    size = svg.stat().st_size
    return svg if size <= min(LARGEST_SVG, png.stat().st_size) else png


def _said(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return escape(visible(text), quote=False).translate(_MARKDOWN)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] == "--update":
        update_gallery(Path(sys.argv[1]), Path(__file__).parent.parent / "docs")
        sys.exit()
    if len(sys.argv) != 2:
        sys.exit("Give the folder of a run: python tools/gallery.py RUN_FOLDER [--update]")
    n_bytes = write_gallery(Path(sys.argv[1]), Path(__file__).parent.parent / "docs")
    print(f"Wrote docs/gallery.md; pictures: {n_bytes / 1e6:.2f} MB.")
    if n_bytes > LARGEST_GALLERY:
        sys.exit(f"That is more than {LARGEST_GALLERY / 1e6:.0f} MB; make the largest figures smaller.")
