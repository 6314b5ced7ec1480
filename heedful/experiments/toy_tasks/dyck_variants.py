"""The parenthesis task: transformers with parts removed, their accuracy, and whether their attention is stack-like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import SHARES, Cell, Claim, Mean, Numbers, column, finite_or_none, mean_over_seeds
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.toy_tasks.dyck_evaluation import RIGHT, STACK_LIKE, describe_strings, evaluate_run
from heedful.experiments.toy_tasks.dyck_network import DyckParts
from heedful.experiments.toy_tasks.dyck_training import DyckRun, DyckSettings, quick_dyck_settings, train_runs
from heedful.experiments.workspace import Workspace
from heedful.statistics.correlation import spearman
from heedful.statistics.intervals import rank_correlation_interval

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_Rows = Sequence[Mapping[str, Cell]]

VARIANTS = {
    "whole": DyckParts(),
    "no attention residual": DyckParts(attention_residual=False),
    "no projection": DyckParts(projection=False),
    "no feed-forward": DyckParts(feed_forward=False),
    "no layer norm": DyckParts(norm=False),
    "no positions": DyckParts(positions=False),
    "minimal first layer": DyckParts(first_layer=False, positions=False),
    "no norm, no positions": DyckParts(norm=False, positions=False),
}
_N_SEEDS = 3
_N_SEEDS_QUICK = 2
_PUBLISHED = 1e-2
_RATES = (_PUBLISHED, 3e-3, 1e-3)
"""Learning rates; networks without norms or positions often diverge at the published one."""
_BOUNDS = {"balance violation": (0.0, inf)}
"""Bounds of what is not a share."""
_MARKERS = "os^vDP*X"


@final
@dataclass(frozen=True)
class DyckVariants(Experiment):
    """Eight kinds of two-layer transformers that close brackets, over seeds."""

    name: ClassVar[str] = "dyck-variants"
    part: ClassVar[ExperimentPart] = "toy tasks"
    title: ClassVar[str] = "Parenthesis task: is the attention of accurate models stack-like?"
    source: ClassVar[str] = "lecture, section 9.4; Wen et al., 2023, arXiv:2312.01429"
    smaller_when_quick: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables variants, models, every rate, strings."""
        settings = quick_dyck_settings(workspace.seed) if workspace.quick else DyckSettings(seed=workspace.seed)
        n_seeds = _N_SEEDS_QUICK if workspace.quick else _N_SEEDS
        seeds = range(workspace.seed * n_seeds, (workspace.seed + 1) * n_seeds)
        rates = _RATES[:1] if workspace.quick else _RATES
        runs = [
            DyckRun(name, parts, seed, rate) for name, parts in VARIANTS.items() for rate in rates for seed in seeds
        ]
        trained = workspace.tensors("weights", lambda: train_runs(settings, runs, workspace.device, workspace.progress))
        models = workspace.step(
            "models", lambda: [evaluate_run(settings, run, i, trained) for i, run in enumerate(runs)]
        )
        losses = trained["final loss"].tolist()
        every = [{**model, "final loss": finite_or_none(loss)} for model, loss in zip(models, losses, strict=True)]
        kept = _at_the_best_rate(every)
        return {
            "variants": _summary(kept),
            "models": kept,
            "every rate": every,
            "strings": workspace.step("strings", lambda: describe_strings(settings)),
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        models, variants = numbers["models"], numbers["variants"]
        return [
            _accuracy(variants, len(models)),
            _stack_share(models, numbers["every rate"]),
            _tells("accuracy", "held-out strings", numbers["every rate"]),
            _tells("longer accuracy", "longer strings", numbers["every rate"]),
            _longer(variants, numbers["strings"]),
            _violation(numbers["every rate"]),
            _at_the_published_rate(numbers["every rate"]),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures accuracy, stack."""
        return {"accuracy": _accuracies(numbers), "stack": _scatter(numbers)}


def _at_the_best_rate(models: _Rows) -> _Rows:
    """For every variant the models of the rate with the lowest final training loss, averaged over seeds."""
    kept: list[Mapping[str, Cell]] = []
    for name in VARIANTS:
        own = [row for row in models if row["variant"] == name]
        rates = {
            row["rate"]: np.mean(np.nan_to_num(column(own, "final loss", rate=row["rate"]), nan=np.inf)) for row in own
        }
        best = min(rates, key=lambda rate: rates[rate])
        kept.extend(row for row in own if row["rate"] == best)
    return kept


def _chosen(variants: _Rows) -> str:
    """A sentence on the selected rates."""
    rates = {str(row["variant"]): float(row["rate"] or 0) for row in variants}
    if set(rates.values()) == {_PUBLISHED}:
        return "All were trained at the published rate."
    chosen = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
    return f"The rate with the lowest training loss was selected: {chosen}."


def _at_the_published_rate(every: _Rows) -> Claim:
    rows = [row for row in every if row["rate"] == _PUBLISHED]
    n_right = sum(bool(row["right"]) for row in rows)
    poor = [name for name in VARIANTS if not any(row["right"] for row in rows if row["variant"] == name)]
    return Claim(
        f"accuracy on held-out strings, all trained at the published rate of {_PUBLISHED:g}",
        "near 100 % for all models",
        f"{n_right} of {len(rows)} models at least {RIGHT:.0%}",
        "differs" if poor else "agrees",
        f"At this rate no seed reaches {RIGHT:.0%} with {', '.join(poor)}; above, the rate is selected by the "
        "training loss."
        if poor
        else "Every variant reaches it with some seed.",
    )


def _summary(models: _Rows) -> _Rows:
    """Means over seeds with intervals, one row per variant."""
    rows: list[dict[str, Cell]] = []
    for name in VARIANTS:
        row: dict[str, Cell] = {"variant": name, "n": len(column(models, "accuracy", variant=name))}
        row["rate"] = next(model["rate"] for model in models if model["variant"] == name)
        for what in ("accuracy", "longer accuracy", "on stack", "balance violation"):
            mean = mean_over_seeds(column(models, what, variant=name), _BOUNDS.get(what, SHARES))
            row |= {
                what: finite_or_none(mean.value),
                f"{what} low": finite_or_none(mean.low),
                f"{what} high": finite_or_none(mean.high),
            }
        row["best accuracy"] = max(column(models, "accuracy", variant=name))
        row["share right"] = float(np.mean(column(models, "right", variant=name)))
        row["share stack-like"] = float(np.mean(column(models, "stack-like", variant=name)))
        rows.append(row)
    return rows


def _accuracy(variants: _Rows, n_models: int) -> Claim:
    best, means = column(variants, "best accuracy"), column(variants, "accuracy")
    names = [str(row["variant"]) for row in variants]
    n_right = round(sum(a * b for a, b in zip(column(variants, "share right"), column(variants, "n"), strict=True)))
    poor = [name for name, value in zip(names, best, strict=True) if value < RIGHT]
    lowest = int(np.argmin(means))
    return Claim(
        "accuracy on closing brackets, held-out strings of the training lengths",
        "near 100 % for all models",
        f"{n_right} of {n_models} models at least {RIGHT:.0%}; best seed of each variant {min(best):.2%} to "
        f"{max(best):.2%}; means from {min(means):.2%} ({names[lowest]}) to {max(means):.2%}",
        "differs" if poor else "agrees",
        f"No seed reaches {RIGHT:.0%} with {', '.join(poor)}."
        if poor
        else "Whichever part is removed, some seed reaches a high accuracy; no held-out string is in the training set. "
        + _chosen(variants),
    )


def _stack_share(models: _Rows, every: _Rows) -> Claim:
    right = [row for row in models if row["right"]]
    n_stack = sum(bool(row["stack-like"]) for row in right)
    weights = column(right, "on stack")
    return Claim(
        f"models at {RIGHT:.0%} or more whose attention is stack-like",
        "patterns do not match intuition",
        f"{n_stack} of {len(right)}"
        + (f"; weight {np.nanmin(weights):.2f} to {np.nanmax(weights):.2f}" if right else ""),
        "not measured" if not right else "agrees" if n_stack < len(right) / 2 else "differs",
        f"Stack-like: more than {STACK_LIKE:.0%} of the second layer's weight lies on the last open bracket. "
        f"It depends on the learning rate: {_stack_by_rate(every)}."
        if right
        else "No model is accurate.",
    )


def _stack_by_rate(every: _Rows) -> str:
    shares = []
    for rate in dict.fromkeys(row["rate"] for row in every):
        right = [row for row in every if row["right"] and row["rate"] == rate]
        n_stack = sum(bool(row["stack-like"]) for row in right)
        shares.append(f"at rate {rate:g} {n_stack} of {len(right)} accurate models")
    return ", ".join(shares)


def _tells(what: str, where: str, models: _Rows) -> Claim:
    question = f"attention patterns predict the accuracy on {where}"
    rho = _rank_correlation(column(models, "on stack"), column(models, what))
    if not rho.has_interval:
        reason = "There are too few models, or all have the same value."
        return Claim(question, "no", "", "not measured", reason)
    finding = "no significant effect"
    if not rho.low <= 0 <= rho.high:
        finding = f"{'more' if rho.value > 0 else 'less'} stack-like models are more accurate"
    return Claim(
        question,
        "no",
        f"rank correlation of weight on the stack with accuracy {rho}",
        # Only a significant positive correlation would mean that patterns predict the accuracy.
        "differs" if rho.low > 0 else "agrees",
        f"Over {len(models)} models of {len({row['variant'] for row in models})} variants and all rates: {finding}.",
    )


def _longer(variants: _Rows, strings: _Rows) -> Claim:
    longer = next(row for row in strings if row["strings"] == "longer")
    training = next(row for row in strings if row["strings"] == "training")
    accuracies = ", ".join(f"{row['variant']} {float(row['longer accuracy'] or 0):.1%}" for row in variants)
    return Claim(
        f"accuracy on strings of {longer['shortest']} to {longer['longest']} tokens, means over seeds",
        "",
        accuracies,
        "new",
        f"Training ends at {training['longest']} tokens. Always predicting the type opened last, which needs no stack, "
        f"gives {float(longer['accuracy of the type opened last'] or 0):.1%}; later positions are not in training.",
    )


def _violation(models: _Rows) -> Claim:
    rho = _rank_correlation(column(models, "balance violation"), column(models, "longer accuracy"))
    return Claim(
        "balance violation and accuracy on longer strings",
        "a penalty on the violation raises it",
        f"rank correlation {rho}",
        "new",
        "No penalty was trained here; only the correlation over models is measured.",
    )


def _rank_correlation(one: list[float], other: list[float]) -> Mean:
    """Spearman's ρ over models and its 95 % confidence interval."""
    pairs = np.array([pair for pair in zip(one, other, strict=True) if np.isfinite(pair).all()]).reshape(-1, 2)
    rho = spearman(pairs[:, 0], pairs[:, 1]) if len(pairs) else float("nan")
    return Mean(rho, *rank_correlation_interval(rho, len(pairs)), len(pairs))


def _accuracies(numbers: Numbers) -> "Figure":
    """One point per model, and means with intervals, for both kinds of strings."""
    drawn = figure(7.5, 3.8)
    axes = quiet(drawn.add_subplot())
    variants, models = numbers["variants"], numbers["models"]
    places = np.arange(len(variants))
    for what, shift, colour, label in (
        ("accuracy", -0.17, COLOURS[0], "held out, training lengths"),
        ("longer accuracy", 0.17, COLOURS[1], "longer"),
    ):
        points = [column(models, what, variant=row["variant"]) for row in variants]
        for place, own in zip(places, points, strict=True):
            axes.plot(np.multiply(own, 100), np.full(len(own), place + shift), ".", color=colour, alpha=0.4)
        mean, low, high = (100 * np.array(column(variants, f"{what}{end}")) for end in ("", " low", " high"))
        spread = np.nan_to_num(np.stack([mean - low, high - mean])).clip(0)
        axes.errorbar(mean, places + shift, xerr=spread, fmt="D", color=colour, markersize=5, capsize=3, label=label)
    axes.axvline(100 * RIGHT, color=COLOURS[7], linewidth=0.8, linestyle="--", label=f"{RIGHT:.0%}")
    axes.set_yticks(places, [str(row["variant"]) for row in variants])
    axes.invert_yaxis()
    axes.set(xlabel="accuracy on closing brackets, %", title="Brackets closed by networks with parts removed")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=3, fontsize=8)
    return drawn


def _scatter(numbers: Numbers) -> "Figure":
    """Attention of the second layer to the last open bracket against the accuracy of the model."""
    drawn = figure(7.5, 4.0)
    for number, (what, label) in enumerate(
        (("accuracy", "held-out strings of training lengths"), ("longer accuracy", "longer strings")), start=1
    ):
        axes = quiet(drawn.add_subplot(1, 2, number))
        for index, row in enumerate(numbers["variants"]):
            own = {"variant": row["variant"]}
            axes.plot(
                column(numbers["models"], "on stack", **own),
                np.multiply(column(numbers["models"], what, **own), 100),
                _MARKERS[index],
                color=COLOURS[index],
                markersize=5,
                linestyle="none",
                label=str(row["variant"]),
            )
        axes.axvline(STACK_LIKE, color=COLOURS[7], linewidth=0.8, linestyle="--", label="stack-like to the right")
        axes.set(xlabel="weight on the last open bracket", ylabel="accuracy on closing brackets, %", xlim=(0, 1))
        axes.set_title(label, size=10)
    handles, labels = drawn.axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return drawn
