"""Lemma D.3: mean and variance of a random sum over words, given that one word is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, claim_if, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.mathematics.exact_means import moments_by_size
from heedful.experiments.mathematics.log_log_slope import slope
from heedful.experiments.mathematics.subsets import kept_of_size
from heedful.experiments.workspace import Workspace
from heedful.statistics.intervals import NORMAL_97_5, mean_of_draws

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

Numbers1D = Float[np.ndarray, "unit"]
N_DRAWN = 30
FAR = 4.5
"""The largest deviation, in standard errors, expected among a few dozen draws."""


def printed_mean(a: Numbers1D, b: Numbers1D, kept: int, s: int) -> float:
    """E_s[H_S | ℓ ∉ S] as printed."""
    n = len(a)
    return float((n - 1 - s) * a.sum() + s * b.sum() + s * (a[kept] - b[kept])) / (n - 1)


def printed_variance(a: Numbers1D, b: Numbers1D, kept: int, s: int, divisor: int) -> float:
    """Var_s(H_S | ℓ ∉ S) as printed; the source does not say whether the empirical variance divides by n or n − 1."""
    n, c = len(a), a - b
    spread = ((c - c.mean()) ** 2).sum() / divisor
    return float(n * s * (n - s - 1) / ((n - 1) * (n - 2)) * (spread - (c[kept] - c.mean()) ** 2 / (n - 1)))


def printed_second_moment(a: Numbers1D, kept: int, s: int) -> float:
    """E_s[H_S² | ℓ ∉ S] as in the proof, for b = 0 and Σ a = 0."""
    n = len(a)
    return float(s * (n - s - 1) * (a**2).sum() - s * (n - 2 * s) * a[kept] ** 2) / ((n - 1) * (n - 2))


@final
@dataclass(frozen=True)
class LemmaD3(Experiment):
    """Mean and variance of a random sum, a word kept: all sets, and draws.

    H_S = Σ_i a_i 1{i ∉ S} + b_i 1{i ∈ S}; the lemma says "as before", but H_S is defined only in the talk. For n = 2
    the formula is 0/0.
    """

    name: ClassVar[str] = "lemma-d3"
    part: ClassVar[ExperimentPart] = "mathematics"
    title: ClassVar[str] = "Lemma D.3: conditional mean and variance"
    source: ClassVar[str] = "paper, Appendix D.1, Lemma D.3"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables counted, drawn, growth."""
        n_draws, largest = (20_000, 256) if workspace.quick else (400_000, 1024)
        return {
            "counted": workspace.step(
                "counted", lambda: _counted(range(3, 8 if workspace.quick else 10), workspace.seed)
            ),
            "drawn": workspace.step("drawn", lambda: _drawn(n_draws, workspace.seed)),
            "growth": workspace.step("growth", lambda: _growth(largest, workspace.seed)),
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return [claim(numbers) for claim in (_mean_claim, _variance_claim, _moment_claim, _growth_claim)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure moments."""
        rows = numbers["drawn"]
        s = column(rows, "s")
        sheet = figure(7.5, 3.6)
        for place, (name, axis) in enumerate((("mean", "E[H | ℓ ∉ S]"), ("variance", "Var(H | ℓ ∉ S)")), start=1):
            axes = quiet(sheet.add_subplot(1, 2, place))
            drawn, low, high = (np.array(column(rows, name + end)) for end in ("", " low", " high"))
            axes.plot(s, column(rows, name + " printed"), color=COLOURS[0], label="printed, V̂ar over n")
            if name == "variance":
                other = column(rows, "variance printed, n - 1")
                axes.plot(s, other, "--", color=COLOURS[1], label="printed, V̂ar over n − 1")
            axes.errorbar(s, drawn, [drawn - low, high - drawn], fmt="o", color=COLOURS[6], markersize=3, label="drawn")
            axes.set(title=f"{name}, n = {N_DRAWN}", xlabel="removed units s", ylabel=axis)
        sheet.axes[1].legend(frameon=False)
        return {"moments": sheet}


def _mean_claim(numbers: Numbers) -> Claim:
    gap = _gap(numbers["counted"], "mean", "mean printed")
    return claim_if(
        gap < 1e-9 and _farthest(numbers["drawn"], "mean") < FAR,
        "E_s[H_S | ℓ ∉ S]",
        "(n−1−s)/(n−1) Σa + s/(n−1) Σb + s/(n−1) (a_ℓ − b_ℓ)",
        f"over all sets within {gap:.1e} (relative); drawn: {_held(numbers['drawn'], 'mean')}",
        "All sets were enumerated for small n; the difference is rounding.",
        "The mean over all sets, or over the draws, differs.",
    )


def _variance_claim(numbers: Numbers) -> Claim:
    by_n, by_less = (_gap(numbers["counted"], "variance", f"variance printed{end}") for end in ("", ", n - 1"))
    holds = by_n < 1e-9 and _farthest(numbers["drawn"], "variance") < FAR
    why = (
        "V̂ar must divide by n − 1."
        if by_less < 1e-9
        else "The formula is not the variance under either convention for V̂ar."
    )
    return Claim(
        "Var_s(H_S | ℓ ∉ S)",
        "ns(n−s−1)/((n−1)(n−2)) [V̂ar(a−b) − (a_ℓ−b_ℓ−(ā−b̄))²/(n−1)]",
        f"over all sets within {by_n:.1e} (relative) if V̂ar divides by n, {by_less:.1e} if by n − 1; drawn, by n: "
        f"{_held(numbers['drawn'], 'variance')}",
        "agrees" if holds else ("corrected" if by_less < 1e-9 else "differs"),
        "The source does not say how V̂ar is normalised: it must divide by n." if holds else why,
    )


def _moment_claim(numbers: Numbers) -> Claim:
    gap = _gap(numbers["counted"], "moment", "moment printed")
    return claim_if(
        gap < 1e-9,
        "E_s[H_S² | ℓ ∉ S] in its proof, for b = 0 and Σa = 0",
        "s(n−s−1)/((n−1)(n−2)) Σa² − s(n−2s)/((n−1)(n−2)) a_ℓ²",
        f"over all sets within {gap:.1e} (relative)",
        "This step, from which the variance follows, was also checked over all sets.",
        "The second moment over all sets differs.",
    )


def _growth_claim(numbers: Numbers) -> Claim:
    n, variance, summands = (column(numbers["growth"], name) for name in ("n", "variance", "summands"))
    share = np.divide(variance, np.multiply(n, summands))
    why = "By an exact recursion over sizes, without the lemma's formula."
    return claim_if(
        slope(n, share.tolist()) <= 0.05,
        "growth of the variance with n, at the worst s",
        "O(n)",
        f"{share.min():.2f} – {share.max():.2f} times n V̂ar(a−b) for n up to {max(n):.0f}",
        why,
        why,
    )


def _terms(n: int, seed: int) -> tuple[Numbers1D, Numbers1D]:
    a, b = np.random.default_rng([seed, n]).uniform(0.5, 3.0, size=(2, n))
    return a, b


def _counted(n_units: range, seed: int) -> list[dict[str, Cell]]:
    """Mean and variance over every set of every size, and what is printed."""
    rows: list[dict[str, Cell]] = []
    for n in n_units:
        a, b = _terms(n, seed)
        centred = a - a.mean()
        for kept in range(n):
            others = [unit for unit in range(n) if unit != kept]
            for s in range(1, n):
                sets = [list(chosen) for chosen in combinations(others, s)]
                H = np.array([a.sum() + (b - a)[gone].sum() for gone in sets])
                square = np.array([centred[gone].sum() ** 2 for gone in sets])
                row: dict[str, Cell] = {"n": n, "kept": kept, "s": s, "mean": H.mean(), "variance": H.var()}
                row |= {"mean printed": printed_mean(a, b, kept, s), "moment": square.mean()}
                row |= {"moment printed": printed_second_moment(centred, kept, s)}
                rows.append({**row, **_variances(a, b, kept, s)})
    return rows


def _variances(a: Numbers1D, b: Numbers1D, kept: int, s: int) -> dict[str, Cell]:
    names = {"variance printed": len(a), "variance printed, n - 1": len(a) - 1}
    return {name: printed_variance(a, b, kept, s, divisor) for name, divisor in names.items()}


def _drawn(n_draws: int, seed: int) -> list[dict[str, Cell]]:
    """Draws of S that keep unit 0, with 95 % intervals of the mean and of the variance."""
    rows: list[dict[str, Cell]] = []
    rng = np.random.default_rng(seed)
    a, b = _terms(N_DRAWN, seed)
    for s in range(1, N_DRAWN):
        # A set that keeps unit 0 is a set of the others.
        keep = kept_of_size(N_DRAWN - 1, s, n_draws, rng)
        H = a[0] + b[1:].sum() + keep @ (a - b)[1:]
        mean, variance = float(H.mean()), float(H.var(ddof=1))
        half = float(mean_of_draws(H[:, None])[1][0])
        fourth = float(((H - mean) ** 4).mean())
        wide = NORMAL_97_5 * float(np.sqrt(max(fourth - variance**2, 0.0) / n_draws))
        row: dict[str, Cell] = {"n": N_DRAWN, "s": s, "mean": mean, "mean low": mean - half, "mean high": mean + half}
        row |= {"variance": variance, "variance low": variance - wide, "variance high": variance + wide}
        rows.append({**row, "mean printed": printed_mean(a, b, 0, s), **_variances(a, b, 0, s)})
    return rows


def _growth(largest: int, seed: int) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    n = 8
    while n <= largest:
        a, b = _terms(n, seed)
        _, variance = moments_by_size(a[1:], b[1:])
        rows.append({"n": n, "variance": float(variance.max()), "summands": float((a - b).var())})
        n *= 2
    return rows


def _gap(rows: Sequence[Mapping[str, Cell]], measured: str, printed: str) -> float:
    """The largest difference, relative to the largest value."""
    real, claimed = np.array(column(rows, measured)), np.array(column(rows, printed))
    return float(np.abs(real - claimed).max() / np.abs(real).max())


def _held(rows: Sequence[Mapping[str, Cell]], name: str) -> str:
    low, high, printed = (np.array(column(rows, name + end)) for end in (" low", " high", " printed"))
    slack = 1e-9 * np.abs(printed)
    inside = int(((low - slack <= printed) & (printed <= high + slack)).sum())
    return f"{inside} of {len(printed)} 95 % intervals contain it"


def _farthest(rows: Sequence[Mapping[str, Cell]], name: str) -> float:
    """The largest distance of a draw from the printed value, in standard errors."""
    drawn, high, printed = (np.array(column(rows, name + end)) for end in ("", " high", " printed"))
    error = (high - drawn) / NORMAL_97_5
    # Where all sets have one sum, both are that sum.
    return float((np.abs(drawn - printed) / np.maximum(error, 1e-9 * np.abs(printed).max())).max())
