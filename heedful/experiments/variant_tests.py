"""Do the single-layer results hold for other models? Two tests of every variant, a summary and a figure.

For one layer the paper argues that (a) the gradient is linear in α to first order, so attention follows its size (after
Theorem 4.1), and that (b) attention includes neither sign nor W_ℓ, so that methods that do are nearer to LIME (Sections
4 and 5). A variant keeps (a) if the mean over documents of Pearson's correlation between α-avg of the first layer and
G-l1 has a 95 % interval above 0. It keeps (b) if the same holds for the correlation of G×I with LIME minus that of α
with LIME, paired by document. The results hold where both are kept. In addition, integrated gradients from [unk]s are
tested instead of G×I, because the gradient at one point can fail where another signed method does not, and α is
compared with |LIME|, to separate the missing sign from other differences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from heedful.experiments.claim import CORRELATIONS, DIFFERENCES, Cell, Claim, Mean, Numbers, column, mean_of
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.method_correlations import (
    ALPHA_G_AVG,
    ALPHA_G_L1,
    LIME_ALPHA,
    LIME_GXI,
    LIME_IG,
    LIME_THEOREM,
    SIZE_ALPHA,
)
from heedful.statistics.intervals import wilson

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure

_PANELS = {
    "does attention follow the gradient?": (ALPHA_G_L1, ALPHA_G_AVG),
    "what goes with LIME?": (LIME_GXI, LIME_IG, SIZE_ALPHA, LIME_ALPHA, LIME_THEOREM),
}
QUICK = "Tiny models on synthetic texts cannot decide it; the full form trains on real ones."


@final
@dataclass(frozen=True)
class VariantTest:
    """The results of both tests for one variant."""

    variant: str
    follows: Mean
    """(a) Pearson's correlation of α and G-l1."""
    nearer: Mean
    """(b) That of G×I and LIME less that of α and LIME."""
    by_path: Mean
    """The same with integrated gradients in the place of G×I."""
    spared: Mean
    """That of α and |LIME|."""
    signed: Mean
    """That of α and G-avg."""

    @property
    def survives(self) -> bool:
        """Whether the variant passes both tests."""
        return self.follows.low > 0 and self.nearer.low > 0

    @property
    def because(self) -> str:
        """The failed tests, in words; empty if both passed."""
        if not (self.follows.has_interval and self.nearer.has_interval):
            return "there are too few documents to decide"
        failed = [] if self.follows.low > 0 else ["α does not follow G-l1"]
        if not self.nearer.low > 0:
            certain = self.nearer.high < 0
            reason = "α is nearer to LIME than G×I" if certain else "G×I is not significantly nearer to LIME than α"
            failed.append(reason + ", though integrated gradients are nearer" * (self.by_path.low > 0))
        return " and ".join(failed)


def variant_tests(rows: Sequence[Mapping[str, Cell]]) -> list[VariantTest]:
    """Both tests of every variant in a survey, in the same order."""
    tests = []
    for variant in dict.fromkeys(str(row["variant"]) for row in rows):
        follows, spared, alpha, signed = (
            of(rows, variant, measure) for measure in (ALPHA_G_L1, SIZE_ALPHA, LIME_ALPHA, ALPHA_G_AVG)
        )
        nearer, by_path = (
            mean_of(np.subtract(of(rows, variant, method), alpha).tolist(), DIFFERENCES)
            for method in (LIME_GXI, LIME_IG)
        )
        follows, spared, signed = (mean_of(values, CORRELATIONS) for values in (follows, spared, signed))
        tests.append(VariantTest(variant, follows, nearer, by_path, spared, signed))
    return tests


def of(rows: Sequence[Mapping[str, Cell]], variant: str, measure: str, kind: str = "pearson") -> list[float]:
    """The results from one number per document."""
    return column(rows, "value", variant=variant, measure=measure, kind=kind)


def variant_claims(numbers: Numbers, question: str) -> list[Claim]:
    """A summary of all variants, then every variant."""
    tests = variant_tests(numbers["documents"])
    quick = bool(numbers["models"][0]["quick"])
    n = f"{sum(test.survives for test in tests)} of {len(tests)} variants"
    first = Claim(question, "", n, "new", summary_sentence(tests))
    if quick:
        first = Claim(question, "", "", "not measured", QUICK)
    return [first, *(_claim(test, model) for test, model in zip(tests, numbers["models"], strict=True))]


def summary_sentence(tests: Sequence[VariantTest]) -> str:
    """Where the single-layer results hold and where they do not, and why."""
    kept = [test.variant for test in tests if test.survives]
    lost = [f"{test.variant} ({test.because})" for test in tests if not test.survives]
    if len(tests) == 1:
        text = "The single-layer results hold" if kept else "The single-layer results do not hold"
        text += f": {tests[0].because or 'attention follows the gradient, and G×I is nearer to LIME than α'}."
    elif not lost:
        text = "The single-layer results hold everywhere: attention follows the size of the gradient, and a method "
        text += "with a sign is nearer to LIME than attention is."
    elif not kept:
        text = f"The single-layer results hold nowhere: {'; '.join(lost)}."
    else:
        text = f"The single-layer results hold with {', '.join(kept)}, but not with {'; '.join(lost)}."
    return text + _strength(tests) * (len(tests) > 1)


def _strength(tests: Sequence[VariantTest]) -> str:
    """The strength of the correlations, which an interval above 0 does not show."""
    most, least = (pick(tests, key=lambda test: test.follows.value) for pick in (max, min))
    n_signed = sum(test.signed.low > 0 for test in tests)
    how_many = "all" if n_signed == len(tests) else f"only {n_signed} of {len(tests)}" if n_signed else "none"
    verb = "keeps" if how_many == "none" else "keep"
    return (
        f" The strength differs: the correlation of α with G-l1 is {most.follows.value:.2f} at best "
        f"({most.variant}) and {least.follows.value:.2f} at worst ({least.variant}), and {how_many} {verb} a "
        "correlation with G-avg above 0."
    )


def _claim(test: VariantTest, model: Mapping[str, Cell]) -> Claim:
    n_right, n_test = (int(model[name] or 0) for name in ("n_right", "n_test"))
    low, high = wilson(n_right, n_test)
    return Claim(
        f"{test.variant}: α with G-l1; G×I with LIME, less α with LIME",
        "",
        f"{test.follows}; {test.nearer}",
        "not measured" if model["quick"] else "new",
        f"{QUICK} "
        * bool(model["quick"])
        + f"Over {test.follows.n} documents {test.because or 'both are above 0'}. With integrated gradients "
        f"instead of G×I: {test.by_path}; α with |LIME|: {test.spared}. The model, trained on "
        f"{int(model['n_train'] or 0):,} texts, has an accuracy of {n_right / n_test:.1%} [{low:.1%}, "
        f"{high:.1%}] on {n_test:,}. One training run: intervals are over documents and do not include the "
        "variation between training runs.",
    )


def variant_figure(numbers: Numbers) -> "Figure":
    """Means over documents with their 95 % intervals, variant by variant, and every document as a dot."""
    drawn = figure(7.5, 6.5)
    variants = [str(model["variant"]) for model in numbers["models"]]
    shares = [int(model["n_right"] or 0) / int(model["n_test"] or 1) for model in numbers["models"]]
    for number, (title, measures) in enumerate(_PANELS.items(), start=1):
        axes = quiet(drawn.add_subplot(2, 1, number))
        measured = [measure for measure in measures if any(row["measure"] == measure for row in numbers["documents"])]
        for place, measure in enumerate(measured):
            _series(axes, numbers, variants, measure, (place - (len(measured) - 1) / 2) * 0.17, COLOURS[place])
        axes.axhline(0.0, color=COLOURS[7], linewidth=0.8)
        names = [f"{variant}\n{share:.1%} right" for variant, share in zip(variants, shares, strict=True)]
        axes.set(title=title, ylabel="Pearson's correlation", xticks=range(len(variants)), ylim=(-1.05, 1.05))
        axes.set_xticklabels(names)
        axes.legend(
            frameon=False, fontsize="small", ncols=len(measured), loc="upper center", bbox_to_anchor=(0.5, -0.16)
        )
    return drawn


def _series(axes: "Axes", numbers: Numbers, variants: Sequence[str], measure: str, shift: float, colour: str) -> None:
    each = {number: of(numbers["documents"], variant, measure) for number, variant in enumerate(variants)}
    each = {number: values for number, values in each.items() if values}
    for number, values in each.items():
        axes.plot([number + shift] * len(values), values, ".", color=colour, alpha=0.15, markersize=4, rasterized=True)
    means = [mean_of(values, CORRELATIONS) for values in each.values()]
    middle = [mean.value for mean in means]
    arms = [[mean.value - mean.low for mean in means], [mean.high - mean.value for mean in means]]
    at = [number + shift for number in each]
    axes.errorbar(at, middle, yerr=arms, fmt="o", color=colour, markersize=5, capsize=3, label=measure)
