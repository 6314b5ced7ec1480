"""Figure 1: one sentence, explained by every method, with words coloured by their scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.evaluation.comparison import compare
from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers, column
from heedful.experiments.reviews import FIGURE_1
from heedful.experiments.workspace import Workspace
from heedful.explainers.gradient import ONLY_ROUNDING
from heedful.render.figures import draw_tinted
from heedful.render.palette import strengths

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

PAPERS = {
    "attention-mean": "α-avg",
    "attention-max": "α-max",
    "gradient-mean": "G-avg",
    "gradient-l1": "G-l1",
    "gradient-l2": "G-l2",
    "gradient-x-input": "G×I",
    "lime": "lime",
}
"""The seven methods of the figure, with the paper's names for them."""
_UNSIGNED = ("α-avg", "α-max", "G-l1", "G-l2")


@final
@dataclass(frozen=True)
class Figure1(Experiment):
    """Seven explanations of one prediction, and those of all other methods."""

    name: ClassVar[str] = "figure-1"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "One sentence, every explainer"
    source: ClassVar[str] = "paper and talk, Figure 1"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables scores, output, skipped, rounding."""
        comparison = compare(workspace.model, workspace.text or FIGURE_1, "all", target=workspace.target)
        rows = [
            {"method": e.method, "signed": e.signed, "position": number, "word": word, "score": float(score)}
            for e in comparison.explanations
            for number, (word, score) in enumerate(zip(e.units, e.scores, strict=True))
        ]
        rounding = [{"method": e.method} for e in comparison.explanations if ONLY_ROUNDING in e.notes]
        skipped = [{"methods": ", ".join(names), "reason": reason} for reason, names in comparison.reasons.items()]
        first = comparison.explanations[0]
        return {
            "scores": rows,
            "output": [{"target": first.target.name, "f": first.output}],
            "skipped": skipped,
            "rounding": rounding,
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        rows = numbers["scores"]
        word = {int(row["position"] or 0): str(row["word"]) for row in rows}
        scores = {PAPERS[method]: np.array(column(rows, "score", method=method)) for method in _drawn(numbers)}
        least = min(float(scores[name].min()) for name in _UNSIGNED if name in scores)
        claims = [
            Claim(
                "α-avg, α-max, G-l1 and G-l2 give no negative weight",
                "none",
                f"smallest {least:.2g}",
                "agrees" if least >= 0 else "differs",
                "They cannot show whether a word is evidence for or against the class.",
                general=True,
            )
        ]
        claims += [Claim(str(row["methods"]), "", "", "not measured", str(row["reason"])) for row in numbers["skipped"]]
        is_published = " ".join(word.values()) == FIGURE_1 and len(scores) == len(PAPERS)
        return [*claims, *_caption(scores, word)] if is_published else claims

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures seven, all."""
        methods = list(dict.fromkeys(str(row["method"]) for row in numbers["scores"]))
        f, target = column(numbers["output"], "f")[0], numbers["output"][0]["target"]
        legend = [f"f = {f:+.3f} for {target}; green: for it, underlined orange: against it"]
        rounding = [str(row["method"]) for row in numbers.get("rounding", ())]
        if rounding:
            names = ", ".join(PAPERS.get(method, method) for method in rounding)
            legend.append(f"{names}: without colour, as all scores are zero up to rounding")

        def strip(name: str, method: str) -> tuple[str, list[tuple[str, float | None]]]:
            words = [str(row["word"]) for row in numbers["scores"] if row["method"] == method]
            tints = strengths(np.array(column(numbers["scores"], "score", method=method))) * (method not in rounding)
            return name, [(word, float(tint)) for word, tint in zip(words, tints, strict=True)]

        return {
            "seven": draw_tinted([strip(PAPERS[method], method) for method in _drawn(numbers)], legend),
            "all": draw_tinted([strip(method, method) for method in methods], legend),
        }


def _drawn(numbers: Numbers) -> list[str]:
    """The figure's methods that the model offers."""
    measured = {row["method"] for row in numbers["scores"]}
    return [method for method in PAPERS if method in measured]


def _caption(scores: Mapping[str, Float[np.ndarray, "unit"]], word: Mapping[int, str]) -> list[Claim]:
    """The three statements of the figure's caption, for its sentence."""
    place = next(number for number, name in word.items() if name == "questionable")
    ranks = {name: 1 + int((np.abs(own) > abs(own[place])).sum()) for name, own in scores.items()}
    against = [name for name, own in scores.items() if own[place] < 0]
    first = {name: word[int(np.abs(own).argmax())] for name, own in scores.items()}
    popular = [name for name, strongest in first.items() if strongest == "popular"]
    ours = "The model was retrained from the paper's formulas, so its scores differ"
    return [
        Claim(
            "all explainers find “questionable” highly significant",
            "all seven",
            "rank among seven words: " + ", ".join(f"{name} {rank}" for name, rank in ranks.items()),
            "agrees" if max(ranks.values()) <= 2 else "differs",
            f"{ours}; {sum(rank <= 2 for rank in ranks.values())} of {len(ranks)} put it first or second.",
        ),
        Claim(
            "only LIME and G×I show that it is evidence against the class",
            "lime, G×I",
            ", ".join(against) or "none",
            "agrees" if set(against) == {"lime", "G×I"} else "differs",
            "The sign comes from W_ℓ and the values, which attention and norms do not include; G-avg has a sign too.",
        ),
        Claim(
            "α-avg and α-max put “popular” first, unlike all others",
            "α-avg, α-max",
            "first: " + ", ".join(f"{name} {strongest}" for name, strongest in first.items()),
            "agrees" if set(popular) == {"α-avg", "α-max"} else "differs",
            f"{ours}. It is true that the methods contradict each other: they put {len(set(first.values()))} "
            "different words first.",
        ),
    ]
