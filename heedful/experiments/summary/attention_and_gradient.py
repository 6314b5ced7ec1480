"""The summary's first experiment: does attention correlate with the gradient, document by document?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import CORRELATIONS, Cell, Claim, ClaimVerdict, Mean, Numbers, column, mean_of
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.method_correlations import pearson
from heedful.experiments.reviews import review_texts_or
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.explanation import Explanation
from heedful.explanations.refusal import Refusal
from heedful.statistics.correlation import spearman

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_ATTENTION = {"α-avg": "attention-mean", "α-max": "attention-max"}
_GRADIENT = {
    "G-avg": "gradient-mean",
    "G-l1": "gradient-l1",
    "G-l2": "gradient-l2",
    "G×I": "gradient-x-input",
}
_SIGNED = ("G-avg", "G×I")
_OTHER = "G-avg, other class"


@final
@dataclass(frozen=True)
class AttentionAndGradient(Experiment):
    """Correlations of α-avg and α-max with every form of the gradient.

    On the bundled model, with the gradient of the positive class's logit; over the words of a review, without [cls] and
    padding; then the mean over reviews with a 95 % interval. Of another model: the attention of its first layer, and
    the predicted class if none is called positive. Signed gradients are also compared by absolute value, |G|:
    by Theorem 4.1, to first order, a head's G-avg is α times the mean of W_vᵀ W_ℓᵀ, whose sign attention does not
    include, and which differs for the logit of the other class (0, or 1 where 0 is explained). The single-layer result,
    that attention follows the gradient, holds if the intervals of α-avg with G-l1 and with G-avg lie above 0.
    """

    name: ClassVar[str] = "attention-and-gradient"
    part: ClassVar[ExperimentPart] = "summary"
    title: ClassVar[str] = "Attention and the gradient"
    source: ClassVar[str] = "summary, experiment 1; paper, after Theorem 4.1"
    smaller_when_quick: ClassVar[bool] = True
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables documents, texts."""
        origin, texts = review_texts_or(workspace, 8 if workspace.quick else 500)
        at_once = 4 if workspace.quick else 50
        rows: list[dict[str, Cell]] = []
        for start in range(0, len(texts), at_once):
            part = texts[start : start + at_once]
            rows += workspace.step(
                f"{origin}-{start}".replace(" ", "-"),
                lambda part=part, start=start: _correlations(workspace, part, start),
            )
            workspace.progress(start + len(part), len(texts))
        return {"documents": rows, "texts": [{"origin": origin, "n": len(texts)}]}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""

        def mean(attention: str, gradient: str) -> Mean:
            return mean_of(_of(numbers, attention, gradient), CORRELATIONS)

        n, origin = len(_of(numbers, "α-avg", "G-l1")), numbers["texts"][0]["origin"]
        over = f"over {n} reviews ({origin})"
        size, signed, sized = mean("α-avg", "G-l1"), mean("α-avg", "G-avg"), mean("α-avg", "|G-avg|")
        other, mixed, turned = mean("α-max", "G-l2"), mean("α-avg", "G-l2"), mean("α-avg", _OTHER)
        return [
            Claim(
                "α-avg and G-l1", "correlated", str(size), _up(size), f"Pearson's correlation within a review, {over}."
            ),
            Claim(
                "α-avg and G-avg",
                "correlated",
                str(signed),
                _up(signed),
                f"{_of_sign(signed, sized, turned)}; {over}.",
            ),
            Claim(
                "α-max and G-l2",
                "does not hold",
                str(other),
                "not measured" if not other.has_interval else "differs" if other.low > 0 else "agrees",
                "The two norms of a gradient rank words in nearly the same order, and so do the mean and the "
                f"maximum over heads: α-avg with G-l2 has {mixed}, {over}."
                if other.low > 0 or not other.has_interval
                else f"The interval does not lie above 0, {over}.",
            ),
            Claim(
                "does attention follow the gradient?",
                "",
                f"α-avg with G-l1 {size}, with |G-avg| {sized}",
                "new",
                _sentence(size, signed, sized),
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure attention-and-gradient."""
        drawn = figure(7.5, 4.0)
        axes = quiet(drawn.add_subplot())
        forms = list(dict.fromkeys(str(row["gradient"]) for row in numbers["documents"]))
        for number, attention in enumerate(_ATTENTION):
            each = [_of(numbers, attention, form) for form in forms]
            place = np.arange(len(forms)) + 0.35 * (number - 0.5)
            for at, values in zip(place.tolist(), each, strict=True):
                axes.plot(
                    [at] * len(values), values, ".", color=COLOURS[number], alpha=0.15, markersize=4, rasterized=True
                )
            means = [mean_of(values, CORRELATIONS) for values in each]
            arms = [[mean.value - mean.low for mean in means], [mean.high - mean.value for mean in means]]
            middle = [mean.value for mean in means]
            axes.errorbar(place, middle, yerr=arms, fmt="o", color=COLOURS[number], capsize=3, label=attention)
        axes.axhline(0.0, color=COLOURS[7], linewidth=0.8)
        axes.set(title="Attention against the gradient, one dot per review", ylabel="Pearson's correlation")
        axes.set(xticks=range(len(forms)), xticklabels=forms, xlabel="form of the gradient", ylim=(-1.05, 1.05))
        axes.legend(frameon=False, loc="lower right")
        return {"attention-and-gradient": drawn}


def _correlations(workspace: Workspace, texts: list[str], start: int) -> list[dict[str, Cell]]:
    model, target = workspace.model, workspace.target
    attention = {name: explain(model, texts, method, target=target, layer=0) for name, method in _ATTENTION.items()}
    gradient: dict[str, Sequence[Explanation | Refusal]]
    gradient = {name: explain(model, texts, method, target=target) for name, method in _GRADIENT.items()}
    others = [explain(model, texts, "gradient-mean", target=c) for c in range(min(2, len(model.classes)))]
    firsts = [not isinstance(own, Refusal) and own.target.index == 0 for own in gradient["G-avg"]]
    gradient[_OTHER] = [others[-1 if is_first else 0][number] for number, is_first in enumerate(firsts)]
    kinds: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {"pearson": pearson, "spearman": spearman}
    rows: list[dict[str, Cell]] = []
    for number in range(len(texts)):
        forms = {name: _informative(explanations[number]) for name, explanations in gradient.items()}
        forms |= {f"|{name}|": np.abs(forms[name]) for name in _SIGNED}
        for name, seen in attention.items():
            for form, scores in forms.items():
                same = {"document": start + number, "attention": name, "gradient": form}
                rows += [{**same, "kind": kind, "value": of(seen[number].scores, scores)} for kind, of in kinds.items()]
    return rows


def _informative(explanation: Explanation | Refusal) -> Float[np.ndarray, "unit"]:
    """The scores; not a number where they are rounding errors, which correlate with nothing."""
    rounding = any(note.kind == "uninformative" for note in explanation.notes)
    return explanation.scores * np.nan if rounding else explanation.scores


def _of(numbers: Numbers, attention: str, gradient: str) -> list[float]:
    return column(numbers["documents"], "value", attention=attention, gradient=gradient, kind="pearson")


def _up(mean: Mean) -> ClaimVerdict:
    return "not measured" if not mean.has_interval else "agrees" if mean.low > 0 else "differs"


def _of_sign(signed: Mean, sized: Mean, turned: Mean) -> str:
    if not signed.n:
        return "G-avg is zero up to rounding: the model's first layer norm ignores a constant added to every coordinate"
    if signed.low > 0:
        return "The interval lies above 0"
    way = "The correlation is negative" if signed.high < 0 else "The interval contains 0"
    return (
        f"{way}; for the other class's logit it is {turned}, and with |G-avg| {sized}: to first order a head's "
        "G-avg is α times the mean of W_vᵀ W_ℓᵀ, whose sign α does not include"
    )


def _sentence(size: Mean, signed: Mean, sized: Mean) -> str:
    if not size.has_interval:
        return "One text gives no interval, so it is not decided."
    if size.low > 0 and signed.low > 0:
        return "It does: α-avg follows both G-l1 and G-avg."
    if size.low > 0 and sized.low > 0:
        return (
            "In part: α-avg follows the size of the gradient, G-l1 and |G-avg|, but not G-avg, whose sign "
            "attention cannot have."
        )
    return "It does not: α-avg does not even follow the size of the gradient."
