"""The page of a reproduction: published, ours and verdict of every claim, then every figure."""

from base64 import b64encode
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from heedful.experiments.claim import Claim
from heedful.experiments.outcome import Outcome, count_verdicts
from heedful.render.templating import fill_template

_MEANINGS = {
    "agrees": "the published result was reproduced",
    "differs": "the numbers differ; the reason is given",
    "corrected": "the numbers show that the published statement is wrong",
    "new": "no source gives a value",
    "not measured": "something is missing, which is named",
}
_MARKS = {"agrees": "✓", "differs": "Δ", "corrected": "✎", "new": "+", "not measured": "–"}


def reproduction_page(outcomes: Sequence[Outcome], folder: Path) -> str:
    """The page of all outcomes in the folder; one file that fetches nothing."""
    parts = groupby(outcomes, key=lambda outcome: outcome.part)
    context = {
        "outcomes": outcomes,
        "devices": sorted({outcome.device for outcome in outcomes}),
        "n_quick": sum(outcome.quick for outcome in outcomes),
        "verdict_counts": count_verdicts(outcomes),
        "meanings": _MEANINGS,
        "marks": _MARKS,
        "parts": [(part, [(outcome, _claims(outcome)) for outcome in members]) for part, members in parts],
        "images": {
            (outcome.name, name): _image(folder / outcome.name / f"{name}.svg")
            for outcome in outcomes
            for name in outcome.figures
        },
    }
    return fill_template("reproduction.html", context)


def _claims(outcome: Outcome) -> list[Claim]:
    """The rows of an experiment; a failed one has a row with the reason."""
    if outcome.failed is None:
        return list(outcome.claims)
    return [*outcome.claims, Claim(outcome.title, "", "", "not measured", outcome.failed)]


def _image(path: Path) -> str:
    return f"data:image/svg+xml;base64,{b64encode(path.read_bytes()).decode('ascii')}"
