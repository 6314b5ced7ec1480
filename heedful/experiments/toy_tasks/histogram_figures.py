"""The figures of the histogram task: attention maps, training curves, and token dependence."""

from typing import TYPE_CHECKING

import numpy as np

from heedful.experiments.claim import Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_KINDS = ("semantic", "positional")
_COLOUR = {"semantic": COLOURS[0], "positional": COLOURS[1], "none": COLOURS[7]}
_CALLED = {"semantic": "semantic", "positional": "positional", "none": "untrained start"}


def draw_maps(numbers: Numbers) -> "Figure":
    """Attention maps of both kinds on a few sequences."""
    rows = [row for row in numbers["maps"] if row["weights"] == "tied"]
    sequences = list(dict.fromkeys(str(row["sequence"]) for row in rows))
    drawn = figure(2.5 * len(sequences) + 0.6, 5.4)
    grid = drawn.subplots(len(_KINDS), len(sequences), squeeze=False)
    top = max(column(rows, "weight"))
    for line, kind in zip(grid, _KINDS, strict=True):
        for axes, sequence in zip(line, sequences, strict=True):
            weight = np.array(column(rows, "weight", kind=kind, sequence=sequence)).reshape(len(sequence), -1)
            axes.imshow(weight, cmap="viridis", vmin=0, vmax=top)
            axes.set_xticks(range(len(sequence)), list(sequence))
            axes.set_yticks(range(len(sequence)), list(sequence))
            axes.set(title=kind, xlabel="key")
        line[0].set_ylabel("query")
        drawn.colorbar(line[0].images[0], ax=list(line), label="attention weight", shrink=0.8)
    return drawn


def draw_curves(numbers: Numbers) -> "Figure":
    """The regularised risk in training, before and after the restriction is lifted."""
    forms = list(dict.fromkeys(str(row["weights"]) for row in numbers["curves"]))
    drawn = figure(7.0, 3.2 * len(forms))
    grid = drawn.subplots(len(forms), 2, squeeze=False, sharey="row")
    for line, weights in zip(grid, forms, strict=True):
        for axes, phase in zip(line, ("restricted", "lifted"), strict=True):
            rows = [row for row in numbers["curves"] if (row["weights"], row["phase"]) == (weights, phase)]
            for kind in dict.fromkeys(str(row["kind"]) for row in rows):
                for number, seed in enumerate(dict.fromkeys(row["seed"] for row in rows)):
                    steps, losses = (column(rows, name, kind=kind, seed=seed) for name in ("step", "loss"))
                    label = _CALLED[kind] if number == 0 else None
                    axes.plot(steps, losses, color=_COLOUR[kind], linewidth=1, label=label)
            quiet(axes).set(title=f"{weights} weights, restriction {'on' if phase == 'restricted' else 'lifted'}")
            axes.set(xlabel="step", yscale="log")
        line[0].set_ylabel("regularised risk (nats)")
    drawn.legend(*grid[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return drawn


def draw_dependence(numbers: Numbers) -> "Figure":
    """The token dependence of the maps, as bars."""
    runs = [row for row in numbers["runs"] if row["kind"] != "none"]
    bars = list(dict.fromkeys((str(row["weights"]), str(row["kind"]), str(row["phase"])) for row in runs))
    drawn = figure(7.0, 1.6 + 0.4 * len(bars))
    axes = quiet(drawn.add_subplot())
    for place, (weights, kind, phase) in enumerate(bars):
        chosen = [row for row in runs if (row["weights"], row["kind"], row["phase"]) == (weights, kind, phase)]
        scores, whole = column(chosen, "token_dependence"), column(chosen, "of_whole_maps")
        axes.barh(place, float(np.mean(scores)), color=_COLOUR[kind], alpha=0.6)
        axes.plot(scores, [place] * len(scores), "o", color="black", markersize=4, clip_on=False)
        axes.plot(whole, [place] * len(whole), "x", color="black", markersize=5, clip_on=False)
    axes.lines[0].set_label("queries and keys from two sequences")
    axes.lines[1].set_label("maps of whole sequences")
    axes.set_yticks(range(len(bars)), [f"{weights}, {kind}, {phase}" for weights, kind, phase in bars])
    axes.vlines((0.05, 0.5), -0.5, len(bars) - 0.5, color="black", linestyles="--", linewidth=1)
    axes.set(xlim=(0, 1.1), xlabel="token dependence (0: one map for all, 1: unrelated maps)")
    axes.invert_yaxis()
    drawn.legend(loc="outside upper center", ncols=2, frameon=False)
    return drawn
