"""The talk's figures on perturbation: LIME's samples, LIME's output, and the words that anchor a prediction."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.explanation import Explanation
from heedful.perturb.surrogate import kernel
from heedful.render.text_strip import short_title

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

TEXT = "a wonderful cast , but the plot is boring and the ending is awful"
_KERNEL_WIDTH = 25.0


@final
@dataclass(frozen=True)
class LimeStepByStep(Experiment):
    """Masked texts with weights and model outputs, the linear surrogate, an anchor."""

    name: ClassVar[str] = "lime-step-by-step"
    part: ClassVar[ExperimentPart] = "lectures"
    title: ClassVar[str] = "LIME step by step, and an anchor"
    source: ClassVar[str] = "talk, Section 2.2: sampling, weights, output; Anchors"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables samples, coefficients, anchor, facts."""
        text = workspace.text or TEXT
        settings = {"target": workspace.target, "unit": "type", "n_samples": 500}
        lime = explain(workspace.model, text, "lime", seed=workspace.seed, design="independent", **settings)
        assert lime.error is not None
        coefficients = [
            {"word": word, "lime": float(a), "half-width": float(error)}
            for word, a, error in zip(lime.units, lime.scores, lime.error, strict=True)
        ]
        if workspace.is_single_layer:
            exact = explain(workspace.model, text, "lime-exact", **settings)
            coefficients = [{**row, "exact": float(b)} for row, b in zip(coefficients, exact.scores, strict=True)]
        anchor = explain(workspace.model, text, "anchors", target=workspace.target)
        anchors = [
            {"word": word, "in the anchor": bool(score > 0)}
            for word, score in zip(anchor.units, anchor.scores, strict=True)
        ]
        facts = [
            {"name": name, "value": float(value), "target": lime.target.name}
            for name, value in anchor.facts.items()
            if name in ("precision", "coverage")
        ]
        return {"samples": _samples(lime), "coefficients": coefficients, "anchor": anchors, "facts": facts}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        held = [str(row["word"]) for row in numbers["anchor"] if row["in the anchor"]]
        precision = next((row["value"] for row in numbers["facts"] if row["name"] == "precision"), None)
        weights, removed = column(numbers["samples"], "weight"), column(numbers["samples"], "removed")
        in_order = [weight for _, weight in sorted(zip(removed, weights, strict=True), key=lambda pair: pair[0])]
        half = kernel(np.array([[True, False]]), _KERNEL_WIDTH)[0]
        falls = all(a >= b for a, b in pairwise(in_order))
        return [
            Claim(
                "the more words are removed, the smaller the weight of a sample",
                "δ ≈ 1 far away, small weight",
                f"{max(weights):.2f} for the text itself, {min(weights):.1e} for {max(removed):.0f} words removed",
                "agrees" if falls else "differs",
                f"A text without half of its words still has weight {half:.2f}: the official package "
                "multiplies the cosine distance by 100 and uses a width of 25.",
                general=True,
            ),
            Claim(
                "LIME's coefficients",
                "",
                _within(numbers),
                "new",
                "The talk shows one run without intervals; here every bar has one, and the exact value if it is known.",
            ),
            Claim(
                "words that anchor the prediction",
                "",
                f"{', '.join(held) or 'none'}" + ("" if precision is None else f" (precision {float(precision):.3f})"),
                "new",
                "As long as these words are kept, that share of the texts with other words removed at random "
                "has the same prediction.",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures samples, coefficients."""
        table = figure(9.5, 0.34 * (len(numbers["samples"]) + 1.5))
        axes = table.add_subplot()
        axes.axis("off")
        axes.set(xlim=(0, 1), ylim=(len(numbers["samples"]) + 0.5, -1))
        for place, name in ((0.0, "masked text"), (0.8, "removed"), (0.89, "weight π"), (1.0, "output f")):
            axes.text(place, -0.5, name, ha="left" if place == 0 else "right", weight="bold", size=8)
        for row in numbers["samples"]:
            line = float(row["sample"] or 0)
            axes.text(0.0, line, short_title(str(row["text"]), 98), size=8, family="monospace", va="center")
            for place, name, form in ((0.8, "removed", ".0f"), (0.89, "weight", ".3f"), (1.0, "answer", "+.2f")):
                axes.text(place, line, f"{float(row[name] or 0):{form}}", size=8, ha="right", va="center")
        bars = figure(6.0, 3.6)
        axes = quiet(bars.add_subplot())
        rows = sorted(numbers["coefficients"], key=lambda row: float(row["lime"] or 0))
        values, place = column(rows, "lime"), np.arange(len(rows))
        tints = [COLOURS[2] if value > 0 else COLOURS[1] for value in values]
        axes.barh(place, values, xerr=column(rows, "half-width"), color=tints, label="LIME, 95 %")
        if "exact" in rows[0]:
            axes.plot(column(rows, "exact"), place, "x", color="black", label="exact")
        held = {str(row["word"]) for row in numbers["anchor"] if row["in the anchor"]}
        names = [f"{row['word']}{' ⚓' if row['word'] in held else ''}" for row in rows]
        axes.set_yticks(place, names)
        axes.set(xlabel=f"coefficient for {numbers['facts'][0]['target']}")
        axes.legend(frameon=False)
        return {"samples": table, "coefficients": bars}


def _samples(lime: Explanation) -> list[dict[str, Cell]]:
    """Some of LIME's own samples: the masked text, LIME's weight, and the model's output."""
    word_of = lime.document.coarsening("word", "type")
    keep = np.array([[stays == "1" for stays in sample.kept] for sample in lime.samples])
    rows: list[dict[str, Cell]] = []
    for number, (sample, stays, weight) in enumerate(zip(lime.samples, keep, kernel(keep, _KERNEL_WIDTH), strict=True)):
        words = zip(lime.document.units("word"), stays[word_of], strict=True)
        text = " ".join(word if kept else "[unk]" for word, kept in words)
        about = {"removed": int((~stays).sum()), "weight": float(weight), "answer": sample.value}
        rows.append({"sample": number, "text": text, **about})
    return rows


def _within(numbers: Numbers) -> str:
    rows = numbers["coefficients"]
    if "exact" not in rows[0]:
        n_clear = sum(abs(float(row["lime"] or 0)) > float(row["half-width"] or 0) for row in rows)
        return f"{n_clear} of {len(rows)} words have an interval without 0"
    lime, half, exact = (np.array(column(rows, name)) for name in ("lime", "half-width", "exact"))
    inside = int((np.abs(lime - exact) <= half + 1e-9).sum())
    return f"{inside} of {len(lime)} exact values lie in their 95 % intervals"
