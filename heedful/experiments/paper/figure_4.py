"""Figure 4: five LIME runs as boxes, Theorem 5.1 as crosses, and the exact value, word by word."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.target import resolve_target

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure

N_RUNS = 5
LAWS = {"delete": "words deleted, as the paper ran LIME", "replace": "words replaced by [UNK], as the paper says"}

_MOST, _ROWS = 36, 6
"""The maximum number of words whose names are legible on an axis, and of rows of words."""
_COVERED = 0.772
"""The probability that the whiskers over five normal draws contain their mean."""
_ALONE = "Theorem 5.1 and its exact limit are of the single layer alone; this model is of another kind."
_NO_THEOREM = Claim("Theorem 5.1 and the exact value", "“a very good match”", "", "not measured", _ALONE)
_NAMES = {"theorem": "Theorem 5.1", "exact": "exact value"}


@final
@dataclass(frozen=True)
class Figure4(Experiment):
    """LIME with deletion and replacement against Theorem 5.1 and LIME's limit."""

    name: ClassVar[str] = "figure-4"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "Five LIME runs, Theorem 5.1 and the exact value"
    source: ClassVar[str] = "paper, Figure 4 and Theorem 5.1, Eq. (19)"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables about, words, runs."""
        text = workspace.text or FIGURE_4
        settings = {"target": workspace.target, "unit": "type"}
        names = workspace.model.encode(text).units("type")
        closed = {}
        if workspace.is_single_layer:
            closed["theorem"] = explain(workspace.model, text, "lime-theorem", **settings).scores
            closed["corrected"] = explain(workspace.model, text, "lime-theorem", form="corrected", **settings).scores
            closed["exact"] = explain(workspace.model, text, "lime-exact", **settings).scores
        drawn = {"design": "independent", **settings}
        if workspace.quick and not closed:
            # Other models need a forward pass for each mask.
            drawn["n_samples"] = max(200, 4 * len(names))
        words = [
            {"word": word, **{name: float(scores[number]) for name, scores in closed.items()}}
            for number, word in enumerate(names)
        ]
        runs = []
        for law in LAWS:
            for run in range(N_RUNS):
                explanation = explain(workspace.model, text, "lime", absence=law, seed=workspace.seed + run, **drawn)
                scored = zip(explanation.units, explanation.scores.tolist(), strict=True)
                runs += [{"law": law, "run": run, "word": word, "score": score} for word, score in scored]
                workspace.progress(len(runs), len(LAWS) * N_RUNS * len(words))
        return {"about": [_about(workspace, text)], "words": words, "runs": runs}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        about = numbers["about"][0]
        is_like = (about["n_words"], about["n_types"], about["called"]) == (99, 71, "negative")
        theirs = Claim(
            "the document",
            "99 tokens, 71 distinct, predicted negative",
            f"{about['n_words']} tokens, {about['n_types']} distinct, predicted {about['called']}",
            "agrees" if is_like else "differs",
            "The paper does not print its text; this one was written to match its caption."
            if is_like
            else "The text does not match the caption.",
        )
        if "theorem" not in numbers["words"][0]:
            return [theirs, *(_noise(numbers, law) for law in LAWS), _NO_THEOREM]
        return [theirs, *_whiskers(numbers), *(_errors(numbers, law) for law in LAWS)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure boxes: all words, or the strongest of a long text, which the title says."""
        n_words = len(numbers["words"])
        strongest = np.argsort(-np.abs(scores_of(numbers, "replace").mean(axis=0)), kind="stable")[: _ROWS * _MOST]
        rows = np.array_split(np.sort(strongest), -(-len(strongest) // _MOST))
        drawn = figure(8.5, 3.75 * len(LAWS) * len(rows))
        for number, (law, chosen) in enumerate(product(LAWS, rows)):
            axes = quiet(drawn.add_subplot(len(LAWS) * len(rows), 1, number + 1))
            _boxes(axes, numbers, law, chosen)
            if number % len(rows) == 0:
                axes.set_title(LAWS[law], fontsize="medium")
        drawn.axes[0].legend(frameon=False, ncols=3, fontsize="small")
        if len(strongest) < n_words:
            drawn.suptitle(f"The {len(strongest)} of {n_words} words with the largest coefficients", fontsize="medium")
        return {"boxes": drawn}


def scores_of(numbers: Numbers, law: str) -> Float[np.ndarray, "run word"]:
    """LIME's coefficients for one absence, one row per run."""
    return np.array([column(numbers["runs"], "score", law=law, run=run) for run in range(N_RUNS)])


def within_whiskers(runs: Float[np.ndarray, "run word"], values: Sequence[float]) -> Bool[np.ndarray, "word"]:
    """Which values lie between the ends of a box plot's whiskers: the farthest runs within 1.5 boxes of the box."""
    low, high = np.quantile(runs, [0.25, 0.75], axis=0)
    reach = 1.5 * (high - low)
    inside = (runs >= low - reach) & (runs <= high + reach)
    ends = np.where(inside, runs, np.inf).min(axis=0), np.where(inside, runs, -np.inf).max(axis=0)
    return (ends[0] <= values) & (values <= ends[1])


def _about(workspace: Workspace, text: str) -> dict[str, Cell]:
    document = workspace.model.encode(text)
    shares = workspace.model.attention([document])[0, 0].max(axis=1)
    called = resolve_target(None, None, workspace.model.target_names(document), workspace.model.logits([document])[0])
    sizes = {"n_words": document.n_units("word"), "n_types": document.n_units("type"), "called": called.name}
    return {"text": text, **sizes, "largest_share": float(shares.max()), "mean_largest_share": float(shares.mean())}


def _whiskers(numbers: Numbers) -> list[Claim]:
    counts = {
        law: {
            name: int(within_whiskers(scores_of(numbers, law), column(numbers["words"], name)).sum()) for name in _NAMES
        }
        for law in LAWS
    }
    n = len(numbers["words"])
    # Three standard deviations of a count below the expected number.
    enough = _COVERED * n - 3 * sqrt(_COVERED * (1 - _COVERED) * n)
    ours = {law: f"Theorem 5.1: {c['theorem']} of {n}; exact value: {c['exact']} of {n}" for law, c in counts.items()}
    matched, calibrated = counts["delete"]["theorem"] >= enough, counts["replace"]["exact"] >= enough
    about = (
        f"Whiskers over five runs are expected to contain the true value for {_COVERED:.0%} of the words, here "
        f"{_COVERED * n:.0f}"
    )
    return [
        Claim(
            f"values within the whiskers of five runs, {LAWS['delete']}",
            "“a very good match”",
            ours["delete"],
            "agrees" if matched else "differs",
            f"{about}. With replacement, which the theorem is about, Theorem 5.1 has {counts['replace']['theorem']}.",
        ),
        Claim(
            f"values within the whiskers of five runs, {LAWS['replace']}",
            "",
            ours["replace"],
            "new" if calibrated else "differs",
            f"{about}; the exact value has {'as many' if calibrated else 'fewer'}, within sampling error.",
        ),
    ]


def _errors(numbers: Numbers, law: str) -> Claim:
    runs, about = scores_of(numbers, law), numbers["about"][0]
    mean, noise = runs.mean(axis=0), np.linalg.norm(runs.std(axis=0, ddof=1)) / sqrt(N_RUNS)
    error = {
        name: float(np.linalg.norm(mean - column(numbers["words"], name))) for name in ("theorem", "corrected", "exact")
    }
    length = np.linalg.norm(mean)
    reason = (
        f"LIME's explanation has length {length:.2f}, and the mean of five runs has a standard error of {noise:.3f}."
    )
    if law == "replace":
        reason += (
            f" One token receives {about['largest_share']:.0%} of a head's attention, "
            f"{about['mean_largest_share']:.0%} in the mean over heads; the theorem assumes that no token "
            "receives more than a vanishing share."
        )
    return Claim(
        f"2-norm to the mean of five runs, {LAWS[law]}",
        "",
        f"Theorem 5.1: {error['theorem']:.3f}, corrected {error['corrected']:.3f}; exact value: {error['exact']:.3f}",
        "new",
        reason,
    )


def _noise(numbers: Numbers, law: str) -> Claim:
    """How much of LIME's explanation is sampling noise, which needs no theorem."""
    runs = scores_of(numbers, law)
    length, noise = np.linalg.norm(runs.mean(axis=0)), np.linalg.norm(runs.std(axis=0, ddof=1))
    ours = f"length of the mean {length:.3f}, of the standard deviation {noise:.3f}"
    return Claim(f"spread of five runs, {LAWS[law]}", "", ours, "new", "2-norms over the words.")


def _boxes(axes: "Axes", numbers: Numbers, law: str, chosen: np.ndarray) -> None:
    runs, words = scores_of(numbers, law)[:, chosen], numbers["words"]
    place = np.arange(len(chosen))
    axes.axhline(0, color=COLOURS[7], linewidth=0.6)
    axes.boxplot(
        runs, positions=place, widths=0.6, manage_ticks=False, flierprops={"markersize": 3}, medianprops={"color": "k"}
    )
    marks = {"theorem": ("x", COLOURS[1]), "exact": ("D", COLOURS[2])}
    for name, (mark, colour) in marks.items():
        if name not in words[0]:
            continue
        values = np.array(column(words, name))[chosen]
        axes.plot(
            place, values, mark, color=colour, markersize=5, fillstyle="none", label=_NAMES[name], markeredgewidth=1.4
        )
    axes.plot([], [], "s", color="k", fillstyle="none", label=f"{N_RUNS} LIME runs")
    axes.set_xticks(place, [str(words[number]["word"]) for number in chosen], rotation=70, ha="right", fontsize=8)
    axes.set_xlim(-1, len(chosen))
    axes.set_ylabel("LIME coefficient")
