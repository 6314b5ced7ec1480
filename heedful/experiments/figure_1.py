"""Figure 1: one sentence, explained by every method, words tinted for and against."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from heedful.comparison import compare
from heedful.experiments import Experiment, Part
from heedful.lab.claim import Claim, Numbers, column
from heedful.lab.corpus import FIGURE_1
from heedful.lab.desk import Desk
from heedful.render.figures import draw_tinted
from heedful.render.palette import strengths

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPERS = {
    "attention-mean": "α-avg",
    "attention-max": "α-max",
    "gradient-mean": "G-avg",
    "gradient-l1": "G-l1",
    "gradient-l2": "G-l2",
    "gradient-x-input": "G×I",
    "lime": "lime",
}
"""The seven of the figure, and what the paper calls them."""


@final
@dataclass(frozen=True)
class Figure1(Experiment):
    """Seven explanations of one prediction, and every other method's beside them."""

    name: ClassVar[str] = "figure-1"
    part: ClassVar[Part] = "paper"
    title: ClassVar[str] = "One sentence, every explainer"
    source: ClassVar[str] = "paper and talk, Figure 1"

    def measure(self, desk: Desk) -> Numbers:
        comparison = compare(desk.model, desk.text or FIGURE_1, target="positive")
        rows = [
            {"method": one.method, "signed": one.signed, "position": number, "word": word, "score": float(score)}
            for one in comparison.explanations
            for number, (word, score) in enumerate(zip(one.units, one.scores, strict=True))
        ]
        return {"scores": rows, "output": [{"target": "positive", "f": comparison.explanations[0].output}]}

    def claims(self, numbers: Numbers) -> list[Claim]:
        rows = numbers["scores"]
        scores = {method: np.array(column(rows, "score", method=method)) for method in PAPERS}
        unsigned = ("attention-mean", "attention-max", "gradient-l1", "gradient-l2")
        least = min(float(scores[method].min()) for method in unsigned)
        negative = {PAPERS[m]: int((s < 0).sum()) for m, s in scores.items() if m not in unsigned}
        first = {method: int(np.abs(s).argmax()) for method, s in scores.items()}
        word = {int(row["position"] or 0): str(row["word"]) for row in rows}
        named = sorted({word[place] for place in first.values()})
        return [
            Claim(
                "α-avg, α-max, G-l1 and G-l2 give no negative weight",
                "none",
                f"smallest {least:.2g}",
                "agrees" if least >= 0 else "differs",
                "They cannot say whether a word speaks for the class or against it.",
            ),
            Claim(
                "G×I and LIME mark words against the class",
                "yes",
                ", ".join(f"{name}: {n} of {len(word)} words" for name, n in negative.items()),
                "agrees" if negative["G×I"] and negative["lime"] else "differs",
                "Signs come from W_ℓ and the values, which attention does not see.",
            ),
            Claim(
                "the seven explanations contradict each other",
                "yes",
                f"{len(named)} different strongest words: {', '.join(named)}",
                "agrees" if len(named) > 1 else "differs",
                "One prediction, seven answers to what it rests on; the bundled model is trained anew, so tints differ "
                "from the printed figure."
                if len(named) > 1
                else "On this text all seven name the same word first.",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        methods = list(dict.fromkeys(str(row["method"]) for row in numbers["scores"]))
        f = column(numbers["output"], "f")[0]
        legend = [f"f = {f:+.3f} for positive; green: for it, underlined red: against it"]

        def strip(name: str, method: str) -> tuple[str, list[tuple[str, float | None]]]:
            words = [str(row["word"]) for row in numbers["scores"] if row["method"] == method]
            tints = strengths(np.array(column(numbers["scores"], "score", method=method)))
            return name, [(word, float(tint)) for word, tint in zip(words, tints, strict=True)]

        return {
            "seven": draw_tinted([strip(PAPERS[method], method) for method in PAPERS], legend),
            "all": draw_tinted([strip(method, method) for method in methods], legend),
        }
