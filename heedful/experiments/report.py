"""The report of a reproduction as a self-contained page: published, ours, verdict; then every figure."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from heedful.experiments.claim import Claim
from heedful.experiments.outcome import Outcome, count_verdicts
from heedful.render.text_strip import visible

_GLOSS = {
    "agrees": "what was published was found again",
    "differs": "the numbers differ, and the reason is given",
    "corrected": "wrong as printed, which the numbers show",
    "new": "no source gives a value",
    "not measured": "something is missing, which is named",
}
_MARKS = {"agrees": "✓", "differs": "Δ", "corrected": "✎", "new": "+", "not measured": "–"}


def reproduction_page(outcomes: Sequence[Outcome], folder: Path) -> str:
    """Everything found so far in the folder; nothing is fetched, everything is escaped, light and dark."""
    parts = [(part, list(ones)) for part, ones in groupby(outcomes, key=lambda one: one.part)]
    content = "".join(f"<h2>{escape(part.capitalize())}</h2>{_table(ones)}" for part, ones in parts)
    sections = "".join(_section(one, folder) for one in outcomes)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>heedful: reproduction</title><style>{_asset('heedful.render', 'page.css')}"
        f"{_asset('heedful.experiments', 'report.css')}</style></head>"
        f'<body class="heedful reproduction"><h1>What was published, and what was found</h1>{_head(outcomes)}{content}'
        f"<h2>Figures</h2>{sections}</body></html>\n"
    )


def _asset(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")


def _said(text: str) -> str:
    return escape(visible(text))


def _head(outcomes: Sequence[Outcome]) -> str:
    quick = sum(one.quick for one in outcomes)
    size = {0: "All are of the full run.", len(outcomes): "All are of the quick run: few texts, small models."}.get(
        quick, f"{quick} of them in the quick form: few texts, small models."
    )
    devices = ", ".join(sorted({one.device for one in outcomes}))
    found = count_verdicts(outcomes)
    legend = "".join(
        f'<li><span class="v {_kind(verdict)}">{_MARKS[verdict]} {verdict}</span> {found[verdict]}: {gloss}</li>'
        for verdict, gloss in _GLOSS.items()
        if verdict in found
    )
    return (
        f"<p>{len(outcomes)} experiments, on {escape(devices)}. {size} A value in brackets is a 95 % interval. "
        "Beside this page every experiment has a folder with its numbers as JSON and parquet, and its pictures as SVG "
        f"and PNG.</p><ul class=legend>{legend}</ul>"
    )


def _kind(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _table(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for one in outcomes:
        lines = [_row(claim) for claim in one.claims]
        if one.failed is not None:
            lines.append(_row(Claim(one.title, "", "", "not measured", one.failed)))
        name = f'<th scope=rowgroup rowspan="{len(lines)}"><a href="#{one.name}">{_said(one.name)}</a>'
        rows.append("".join(f"<tr>{name if not number else ''}{line}</tr>" for number, line in enumerate(lines)))
    return (
        '<div class="wide"><table class="claims"><thead><tr><th>experiment<th>what<th>published<th>ours<th>verdict'
        f"<th>why</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(claim: Claim) -> str:
    verdict = f'<span class="v {_kind(claim.verdict)}">{_MARKS[claim.verdict]} {claim.verdict}</span>'
    return (
        f"<td>{_said(claim.what)}<td>{_said(claim.published) or '—'}<td>{_said(claim.ours) or '—'}"
        f"<td>{verdict}<td>{_said(claim.why)}"
    )


def _section(one: Outcome, folder: Path) -> str:
    images = "".join(_image(one, name, folder) for name in one.figures)
    tables = ", ".join(f"{_said(name)} ({n:,} rows)" for name, n in one.tables.items())
    failed = f'<p class="note">{_said(one.failed)}</p>' if one.failed is not None else ""
    sitting = ", the last of several sittings" if one.resumed else ""
    form = f"{'quick' if one.quick else 'full'} form on {one.device}, {one.seconds:.0f} s{sitting}"
    return (
        f'<section id="{one.name}"><h3>{_said(one.title)}</h3><p>{_said(one.about)} <small>{_said(one.source)}; '
        f"{_said(form)}. <code>{_said(one.command)}</code></small></p>{failed}{images}"
        f"{f'<p><small>Tables: {tables}</small></p>' if tables else ''}</section>"
    )


def _image(one: Outcome, name: str, folder: Path) -> str:
    drawn = b64encode((folder / one.name / f"{name}.svg").read_bytes()).decode("ascii")
    said = f"{_said(one.title)}: {_said(name.replace('-', ' '))}"
    return f'<figure><img alt="{said}" src="data:image/svg+xml;base64,{drawn}"></figure>'
