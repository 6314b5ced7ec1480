"""The scores of one explanation as bars with their intervals, strongest first."""

from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.explanation import Explanation
from heedful.render.figures import draw_strips
from heedful.render.palette import GREEN, RED
from heedful.render.text_strip import half_width, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_BARS = 20
_NAME = 24


def strongest_first(explanation: Explanation) -> list[tuple[str, float, float | None]]:
    """The strongest units that are not exactly zero, at most 20: name, score and half-width."""
    errors, units = explanation.error, explanation.units
    sizes = np.abs(explanation.scores) if errors is None else np.abs(explanation.scores) + errors
    n_shown = min(N_BARS, int((sizes > 0).sum()) or len(sizes))
    rows = []
    for unit in np.argsort(-np.abs(explanation.scores), kind="stable")[:n_shown].tolist():
        name = visible(units[unit].strip() or repr(units[unit]))
        name = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        rows.append((name, float(explanation.scores[unit]), None if errors is None else float(errors[unit])))
    return rows


def title_of_bars(explanation: Explanation) -> str:
    """What the bars are, and how many units they leave out."""
    n, n_shown = len(explanation.scores), len(strongest_first(explanation))
    left_out = f", the {n_shown} strongest of {n}" if n > n_shown else ""
    intervals = explanation.error is not None and bool(explanation.error.any())
    return f"Scores by {explanation.method}{left_out}" + (", with 95 % intervals" if intervals else "")


def bars_view(explanation: Explanation) -> dict[str, Any]:
    """The bars for a page; places in per cent of the width."""
    rows = strongest_first(explanation)
    low = min(0.0, *(score - (error or 0.0) for _, score, error in rows))
    high = max(0.0, *(score + (error or 0.0) for _, score, error in rows))
    scale = 100 / ((high - low) or 1.0)
    bars = []
    for name, score, error in rows:
        arm, interval = error or 0.0, half_width(explanation, error)
        lengths = {"start": min(score, 0.0) - low, "width": abs(score), "low": score - arm - low, "reach": 2 * arm}
        bar = {part: scale * length for part, length in lengths.items()}
        bars.append({"unit": name, "score": score, "interval": interval, "against": score < 0, **bar})
    return {"title": title_of_bars(explanation), "zero": -scale * low, "bars": bars}


def draw_explanation(explanation: Explanation) -> "Figure":
    """The text on its tints, and below it the bars; of an image, or a single unit, the tints alone."""
    figure = draw_strips((explanation,))
    if explanation.document.picture is not None or len(explanation.scores) < 2:
        return figure
    rows = strongest_first(explanation)[::-1]
    width, height = figure.get_size_inches()
    bars, full = 0.22 * len(rows) + 0.9, max(width, 5.0)
    figure.set_size_inches(full, height + bars)
    figure.axes[0].set_position((0, bars / (height + bars), width / full, height / (height + bars)))
    axes = figure.add_axes(
        (1.9 / full, 0.5 / (height + bars), (min(full, 8.0) - 2.1) / full, (bars - 0.8) / (height + bars))
    )
    scores = [score for _, score, _ in rows]
    tints = [np.array(GREEN if score >= 0 else RED) / 255 for score in scores]
    axes.barh(np.arange(len(rows)), scores, color=tints)
    arms = [(place, score, error) for place, (_, score, error) in enumerate(rows) if error]
    if arms:
        # An exact score has no interval, so no caps either.
        places, middles, errors = zip(*arms, strict=True)
        axes.errorbar(middles, places, xerr=errors, fmt="none", ecolor="black", elinewidth=0.9, capsize=2)
    axes.axvline(0, color="dimgray", linewidth=0.6)
    axes.set_yticks(np.arange(len(rows)), [name.replace("$", r"\$") for name, *_ in rows], size=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title_of_bars(explanation), size=8, loc="left")
    return figure
