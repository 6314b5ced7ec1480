"""Attention patterns of the parenthesis task: the most and the least stack-like accurate models, and a random one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import SHARES, Cell, Claim, Numbers, column, mean_over_seeds
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.toy_tasks.dyck_construction import UNIFORM, constructed_weights
from heedful.experiments.toy_tasks.dyck_evaluation import (
    RIGHT,
    STACK_LIKE,
    boxes_of,
    evaluate_run,
    opened_last,
    uniform_on_stack,
    weights_of,
)
from heedful.experiments.toy_tasks.dyck_network import DyckParts
from heedful.experiments.toy_tasks.dyck_training import DyckRun, DyckSettings, quick_dyck_settings, train_runs
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure

Row = Mapping[str, Cell]

_TRAINED = {
    "whole": DyckParts(),
    "no attention residual": DyckParts(attention_residual=False),
    "no feed-forward": DyckParts(feed_forward=False),
    "no positions": DyckParts(positions=False),
}
_RANDOM = {f"random attention, σ = {noise:g}": DyckParts(content=False, noise=noise) for noise in (1.0, 0.5, 0.25)}
_N_SEEDS, _N_SEEDS_QUICK = 6, 2
_QUICK = ("no attention residual", "no feed-forward", "random attention, σ = 1")
_N_SHUFFLES = 200
_TITLES = {
    "most": "trained, most stack-like",
    "least": "trained, least stack-like",
    "random": "random, not trained",
}


@final
@dataclass(frozen=True)
class DyckPatterns(Experiment):
    """Second-layer attention with the last open bracket boxed in each row."""

    name: ClassVar[str] = "dyck-patterns"
    part: ClassVar[ExperimentPart] = "toy tasks"
    title: ClassVar[str] = "Parenthesis task: stack-like and random attention"
    source: ClassVar[str] = "lecture, section 9.4; Wen et al., 2023, arXiv:2312.01429"
    smaller_when_quick: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables shown, cells, models, written."""
        settings = quick_dyck_settings(workspace.seed) if workspace.quick else DyckSettings(seed=workspace.seed)
        n_seeds = _N_SEEDS_QUICK if workspace.quick else _N_SEEDS
        kinds = {name: parts for name, parts in (_TRAINED | _RANDOM).items() if not workspace.quick or name in _QUICK}
        seeds = range(workspace.seed * n_seeds, (workspace.seed + 1) * n_seeds)
        runs = [DyckRun(name, parts, seed) for name, parts in kinds.items() for seed in seeds]
        trained = workspace.tensors("weights", lambda: train_runs(settings, runs, workspace.device, workspace.progress))
        models = workspace.step("models", lambda: [_model(settings, run, i, trained) for i, run in enumerate(runs)])
        chosen = _chosen(models)
        cells = [
            cell
            for place, index in chosen.items()
            for cell in _cells(settings, place, weights_of(settings, runs[index], index, trained))
        ]
        shown = [
            {"shown": place, "uniform": uniform_on_stack(settings.language, settings.held_out), **models[index]}
            for place, index in chosen.items()
        ]
        by_hand = {
            name: weight[None].to(workspace.device) for name, weight in constructed_weights(settings.network).items()
        }
        uniform = DyckRun("uniform, written by hand", UNIFORM, 0)
        exact = workspace.step("written", lambda: [evaluate_run(settings, uniform, 0, by_hand)])
        return {"shown": shown, "cells": cells, "models": models, "written": exact}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        most, least, random = (
            next(row for row in numbers["shown"] if row["shown"] == place) for place in ("most", "least", "random")
        )
        return [
            _nearly_random(random, numbers["models"]),
            _written(numbers["written"][0]),
            _least(least, most),
            _most(most, least, random),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure patterns."""
        drawn = figure(7.5, 7.2)
        for number, shown in enumerate(numbers["shown"], start=1):
            cells = [cell for cell in numbers["cells"] if cell["shown"] == shown["shown"]]
            _pattern(drawn.add_subplot(2, 2, number), cells, shown)
        _control(quiet(drawn.add_subplot(2, 2, 4)), numbers["shown"])
        bar = drawn.colorbar(drawn.axes[0].images[0], ax=drawn.axes[:2], shrink=0.8)
        bar.set_label("attention; boxed: last open bracket", size=8)
        return {"patterns": drawn}


def _percent(cell: Cell) -> str:
    return f"{float(cell or 0):.2%}"


def _number(cell: Cell) -> str:
    return f"{float(cell or 0):.3f}"


def _nearly_random(random: Row, models: Sequence[Row]) -> Claim:
    of_its_kind = [row for row in models if row["noise"] is not None]
    n_right = sum(bool(row["right"]) for row in of_its_kind)
    weight, low, high = (float(random[name] or 0) for name in ("on stack", "shuffled low", "shuffled high"))
    over_seeds = mean_over_seeds(column(models, "accuracy", noise=random["noise"]), SHARES)
    if not random["right"]:
        why = f"No model with random scores reaches an accuracy of {RIGHT:.0%}."
    elif low <= weight <= high:
        why = "The second layer's scores were drawn once, for all strings, and not trained; all else was trained."
    else:
        why = "Its scores were drawn independently of the strings, but its weight lies outside 95 % of its shuffles."
    return Claim(
        "nearly random attention with high accuracy",
        "there are such models",
        f"accuracy {_percent(random['accuracy'])} with scores N(0, {random['noise']}²), mean of {over_seeds.n} seeds "
        f"{over_seeds}; weight on the last open bracket {weight:.3f}, with shuffled rows {low:.3f} to {high:.3f}; "
        f"{n_right} of {len(of_its_kind)} such models are accurate",
        "agrees" if random["right"] and low <= weight <= high else "differs",
        why,
    )


def _written(row: Row) -> Claim:
    perfect = row["accuracy"] == row["longer accuracy"] == 1
    return Claim(
        "uniform attention, with every bracket closed correctly",
        "",
        f"accuracy {_percent(row['accuracy'])}, on longer strings {_percent(row['longer accuracy'])}; weight on the "
        f"last open bracket {_number(row['on stack'])}",
        "new",
        "By construction, on the minimal first layer: closed brackets cancel, so the mean encodes the stack."
        if perfect
        else "The construction is exact, so the difference is rounding.",
    )


def _least(least: Row, most: Row) -> Claim:
    both = least["right"] and most["right"]
    return Claim(
        "the least stack-like of the accurate models with trained attention",
        "patterns do not match intuition",
        f"{least['variant']}: accuracy {_percent(least['accuracy'])}, weight on the last open bracket "
        f"{_number(least['on stack'])}, where uniform attention has {_number(least['uniform'])}",
        "agrees" if both and not least["stack-like"] else "differs",
        f"The most stack-like has {_number(most['on stack'])} and {_percent(most['accuracy'])}: both are "
        "accurate, so accuracy does not require the pattern."
        if both
        else f"One of the two models does not reach {RIGHT:.0%}.",
    )


def _most(most: Row, least: Row, random: Row) -> Claim:
    stack_like = bool(most["stack-like"])
    return Claim(
        "the most stack-like model, on longer strings",
        "",
        f"weight {_number(most['on stack'])} on the last open bracket, accuracy {_percent(most['accuracy'])}; on "
        f"longer strings {_percent(most['longer accuracy'])}, least stack-like {_percent(least['longer accuracy'])}, "
        f"random one {_percent(random['longer accuracy'])}",
        "new",
        f"{most['variant']}, seed {most['seed']}: {'more' if stack_like else 'not more'} than {STACK_LIKE:.0%} of the "
        f"weight, so it is {'' if stack_like else 'not '}counted as stack-like.",
    )


def _model(settings: DyckSettings, run: DyckRun, index: int, trained: Mapping[str, Tensor]) -> dict[str, Cell]:
    """The results of every model, with the control: the same rows, shuffled."""
    attention = _attention(settings, weights_of(settings, run, index, trained), settings.held_out)
    boxes = boxes_of(settings.language, settings.held_out)
    low, high = np.quantile(shuffled_weights(attention, boxes, _N_SHUFFLES, run.seed), [0.025, 0.975])
    noise = None if run.parts.content else run.parts.noise
    control = {"shuffled low": float(low), "shuffled high": float(high), "noise": noise}
    return evaluate_run(settings, run, index, trained) | control


@torch.no_grad()
def _attention(
    settings: DyckSettings, weights: Mapping[str, Tensor], tokens: Int[np.ndarray, "string place"]
) -> Float[np.ndarray, "string row key"]:
    read = settings.network.run(weights, torch.tensor(tokens, device=weights["tokens"].device))
    return read.attention.double().cpu().numpy()


def shuffled_weights(
    attention: Float[np.ndarray, "string row key"], boxes: Int[np.ndarray, "string row"], n: int, seed: int
) -> Float[np.ndarray, "shuffle"]:
    """The weight on the last open bracket when the positions of each row are shuffled, in the same way for all strings.

    A pattern drawn independently of the strings is distributed like its shuffles; a stack-like one is above them.
    """
    rng, n_rows = np.random.default_rng(seed), attention.shape[1]
    # What row r gives to each key, summed over the strings whose box it has at b: all that a shuffle needs.
    at = (boxes[..., None] == np.arange(n_rows)) & (boxes[..., None] > 0)
    sums = at.transpose(1, 2, 0).astype(np.float64) @ attention.transpose(1, 0, 2)
    totals = np.zeros(n)
    for shuffle in range(n):
        for row in range(n_rows):
            keys = rng.permutation(row + 1)
            totals[shuffle] += sums[row, np.arange(row + 1), keys].sum()
    return totals / (boxes > 0).sum()


def _chosen(models: Sequence[Row]) -> dict[str, int]:
    """The models to show, among the accurate ones if there are any; of the random ones the one with the most noise.

    Among those with equal noise, the one whose weight on the last open bracket is closest to that of its shuffles.
    """
    weights = [float(row["on stack"] or 0) for row in models]
    middle = [(float(row["shuffled low"] or 0) + float(row["shuffled high"] or 0)) / 2 for row in models]
    noise = [-1.0 if row["noise"] is None else float(row["noise"]) for row in models]
    trained, random = ([i for i, own in enumerate(noise) if (own < 0) == kind] for kind in (True, False))

    def best(of: list[int], key: Callable[[int], tuple[float, ...]]) -> int:
        right = [index for index in of if models[index]["right"]]
        return max(right, key=key) if right else max(of, key=lambda index: float(models[index]["accuracy"] or 0))

    return {
        "most": best(trained, lambda index: (weights[index],)),
        "least": best(trained, lambda index: (-weights[index],)),
        "random": best(random, lambda index: (noise[index], -abs(weights[index] - middle[index]))),
    }


def _cells(settings: DyckSettings, place: str, weights: Mapping[str, Tensor]) -> list[dict[str, Cell]]:
    """The pattern on one held-out string, one row per pair of positions; a long string that requires a stack."""
    language, held_out = settings.language, settings.held_out
    order = np.lexsort((opened_last(language, held_out)[1].sum(axis=1), language.lengths(held_out)))
    chosen = held_out[order[-1:]]
    attention, boxes = _attention(settings, weights, chosen)[0], boxes_of(language, chosen)[0]
    labels = ["begin", *language.spell(chosen[0])]
    return [
        {
            "shown": place,
            "row": row,
            "key": key,
            "read": labels[row],
            "looked at": labels[key],
            "attention": float(attention[row, key]),
            "boxed": bool(key == boxes[row] > 0),
        }
        for row in range(len(labels))
        for key in range(row + 1)
    ]


def _pattern(axes: "Axes", cells: Sequence[Row], shown: Row) -> None:
    """The attention of one model on the string; colours show the root of the weight, so that small ones are visible."""
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import Rectangle

    labels = {int(cell["row"] or 0): str(cell["read"]) for cell in cells}
    matrix = np.full((len(labels), len(labels)), np.nan)
    for cell in cells:
        row, key = int(cell["row"] or 0), int(cell["key"] or 0)
        matrix[row, key] = float(cell["attention"] or 0)
        if cell["boxed"]:
            axes.add_patch(Rectangle((key - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=COLOURS[1], linewidth=1.2))
    axes.imshow(matrix, cmap="Blues", norm=PowerNorm(0.5, 0, 1))
    axes.set_xticks(np.arange(len(labels)), list(labels.values()), size=7)
    axes.set_yticks(np.arange(len(labels)), list(labels.values()), size=7)
    axes.tick_params(length=0)
    title = f"{_TITLES[str(shown['shown'])]}\n{shown['variant']}: accuracy {_percent(shown['accuracy'])}"
    axes.set_title(title, size=9)
    axes.set_xlabel("token attended to", size=8)
    axes.set_ylabel("last token read", size=8)


def _control(axes: "Axes", shown: Sequence[Row]) -> None:
    """The weight on the last open bracket, compared with that of shuffled rows."""
    places = np.arange(len(shown))
    lows, highs, weights, uniform = (
        [float(row[name] or 0) for row in shown] for name in ("shuffled low", "shuffled high", "on stack", "uniform")
    )
    axes.hlines(places, lows, highs, color=COLOURS[7], linewidth=5, label="rows shuffled, 95 %")
    axes.plot(uniform, places, "|", color=COLOURS[6], markersize=14, label="uniform attention")
    axes.plot(weights, places, "D", color=COLOURS[0], markersize=6, label="the model")
    axes.set_yticks(places, [str(row["shown"]) for row in shown], size=8)
    axes.set_title("share of attention in the boxes", size=9)
    axes.set_xlabel("weight on the last open bracket", size=8)
    axes.set(xlim=(0, 1), ylim=(len(shown) - 0.2, -0.5))
    axes.legend(frameon=False, fontsize=8, loc="lower right")
