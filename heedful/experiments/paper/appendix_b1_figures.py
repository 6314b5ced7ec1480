"""The figures of Appendix B.1: distances to LIME, and the theorem's error by the length of reviews."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from heedful.experiments.claim import Cell, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.paper.lime_runs import LAWS

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure

PUBLISHED, SPREAD = 0.808, 0.219
"""The paper's mean and standard deviation over the test set."""
_NAMES = {"printed": "Theorem 5.1 as printed", "corrected": "corrected", "exact": "exact value"}
_TITLES = {"delete": "LIME that deletes words", "replace": "LIME that replaces words"}


def draw_distances(rows: Sequence[Mapping[str, Cell]]) -> "Figure":
    """Histograms of the distances of all predictions to LIME, with the published band; one panel per law."""
    drawn = figure(7.5, 5.5)
    farthest = max(np.quantile(column(rows, f"{law} {prediction}"), 0.995) for law in LAWS for prediction in _NAMES)
    edges = np.linspace(0.0, max(farthest, 1.2), 61 if len(rows) > 1000 else 25)
    for number, law in enumerate(LAWS, start=1):
        _histograms(drawn.add_subplot(2, 1, number), rows, law, edges)
    return drawn


def draw_lengths(rows: Sequence[Mapping[str, Cell]]) -> "Figure":
    """The theorem's error by the number of words, and by the number of words per distinct word."""
    drawn = figure(7.5, 3.6)
    n_words, n_types = (np.array(column(rows, name)) for name in ("n_words", "n_types"))
    for number, (name, x) in enumerate(
        (("words that the model reads", n_words), ("words for each distinct word", n_words / n_types)), start=1
    ):
        axes = quiet(drawn.add_subplot(1, 2, number))
        _trends(axes, x, rows)
        axes.set(xlabel=name, ylabel="2-norm of the theorem's error", ylim=(0, None))
    drawn.axes[0].legend(frameon=False, fontsize="small")
    return drawn


def _histograms(axes: "Axes", rows: Sequence[Mapping[str, Cell]], law: str, edges: Float[np.ndarray, "edge"]) -> None:
    quiet(axes).axvspan(PUBLISHED - SPREAD, PUBLISHED + SPREAD, color=COLOURS[7], alpha=0.25, linewidth=0)
    axes.axvline(PUBLISHED, color=COLOURS[7], linewidth=1, label=f"published, {PUBLISHED} ± {SPREAD}")
    highest = 0.0
    for name, colour in zip(_NAMES, COLOURS[:3], strict=True):
        values = column(rows, f"{law} {name}")
        shares = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)
        # The exact value under replacement fills one or two bars, beside which the others would not be seen.
        cut = " (bar cut off)" if highest and shares.max() > 2 * highest else ""
        highest = highest if cut else max(highest, shares.max())
        label = f"{_NAMES[name]}, mean {np.mean(values):.3f}{cut}"
        axes.stairs(shares, edges, color=colour, label=label, linewidth=1.5)
    axes.set(title=_TITLES[law], xlabel="2-norm to the mean of five LIME runs", ylabel="share of reviews")
    axes.set_ylim(0, 1.2 * highest)
    axes.legend(frameon=False, fontsize="small")


def _trends(axes: "Axes", x: Float[np.ndarray, "document"], rows: Sequence[Mapping[str, Cell]]) -> None:
    """Median and quartiles of the printed theorem's error in bins of about equally many reviews."""
    # Of equal lengths, such as the longest that the model reads, all are in one bin.
    n_bins = 20 if len(x) > 1000 else 5
    lower = np.unique(np.quantile(x, np.arange(n_bins) / n_bins))
    group = np.searchsorted(lower, x, side="right")
    bins = [np.flatnonzero(group == number) for number in np.unique(group)]
    middle = [float(np.median(x[own])) for own in bins]
    for law, colour in zip(LAWS, COLOURS, strict=False):
        error = np.array(column(rows, f"{law} printed"))
        low, median, high = (np.array([np.quantile(error[own], q) for own in bins]) for q in (0.25, 0.5, 0.75))
        axes.fill_between(middle, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(middle, median, "o-", color=colour, markersize=3, label=f"{_TITLES[law]}: median, quartiles")
