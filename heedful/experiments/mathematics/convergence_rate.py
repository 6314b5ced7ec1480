"""Theorem 5.1: how fast Eq. (19) approaches what it approximates as T_max grows, as printed and corrected."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.mathematics.conditional_means import mean_given_kept
from heedful.experiments.mathematics.log_log_slope import Slope, curves, longer_half, rms
from heedful.experiments.mathematics.random_documents import RandomDocuments, random_documents
from heedful.experiments.workspace import Workspace
from heedful.theory.exact import lime_limit
from heedful.theory.lime import lime_approximation, lime_leading_term

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

EPSILONS = (0.3, 0.5, 0.7, 0.9)
LIME, EQUATION_17 = "LIME's limit", "Eq. (17)"
PRINTED, CONSTANT, CENTRE, CORRECTED, LESS_MEAN = (
    "printed",
    "constant corrected",
    "centre corrected",
    "corrected",
    "corrected − mean",
)
NEAR = 0.1
"""The tolerance for a measured exponent to match a predicted one; for ε = 0.3 the candidates differ by 0.2."""
SLOWER = 0.05
"""A remainder decreases more slowly than a bound if its exponent's interval is above the bound's by more than this."""


@final
@dataclass(frozen=True)
class ConvergenceRate(Experiment):
    """Eq. (19) against exact expectations in growing documents of T_max^ε words.

    The documents are random and meet the theorem's assumptions. Two things are approximated by Eq. (19). LIME's limit
    solves the normal equations for infinitely many samples and a flat kernel; Eq. (17) is the paper's expression for
    it, which sums to zero over the words. |β| is itself of order 1/T_max, so a remainder of order T_max^−1 is a share
    of β that does not decrease.
    """

    name: ClassVar[str] = "convergence-rate"
    part: ClassVar[ExperimentPart] = "mathematics"
    title: ClassVar[str] = "Theorem 5.1: the rate of convergence"
    source: ClassVar[str] = "paper, Theorem 5.1, Eqs. (17) and (19); proof in Appendix B"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the table errors."""
        largest, n_documents = (12, 16) if workspace.quick else (14, 16)
        rows: list[dict[str, Cell]] = []
        powers = range(6, largest + 1)
        for done, power in enumerate(powers):
            workspace.progress(done, len(powers))
            rows += workspace.step(
                f"errors-{power}", lambda power=power: _errors(2**power, n_documents, workspace.seed)
            )
        return {"errors": rows}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return [claim(numbers) for claim in (_printed_form, _one_correction, _exponent, _exponent_of_17)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure rates."""
        sheet = figure(8.0, 6.2)
        styles = {
            (PRINTED, LIME): (COLOURS[1], "o-"),
            (CONSTANT, LIME): (COLOURS[4], "v:"),
            (CENTRE, LIME): (COLOURS[3], "^:"),
            (CORRECTED, LIME): (COLOURS[0], "o-"),
            (LESS_MEAN, EQUATION_17): (COLOURS[2], "s--"),
        }
        for place, epsilon in enumerate(EPSILONS, start=1):
            axes = quiet(sheet.add_subplot(2, 2, place))
            for (form, against), (colour, style) in styles.items():
                T_max, error = points(numbers, epsilon, form, against)
                name = f"{form}, against {against}"
                axes.loglog(T_max, rms(error), style, color=colour, markersize=3, linewidth=1, label=name)
            T_max, size = points(numbers, epsilon, CORRECTED, LIME, "size")
            axes.loglog(T_max, rms(size), color=COLOURS[6], linewidth=2, label="|β|")
            last = rms(points(numbers, epsilon, CORRECTED, LIME)[1])[-1]
            line = last * (np.array(T_max) / T_max[-1]) ** (epsilon - 2)
            axes.loglog(T_max, line, color=COLOURS[7], linewidth=4, alpha=0.4, label="slope ε − 2")
            axes.set(title=f"ε = {epsilon}", xlabel="T_max", ylabel="error (root mean square)")
        sheet.legend(*sheet.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        return {"rates": sheet}


_EPSILON = f"ε = {', '.join(map(str, EPSILONS))}"
_BOUND = {epsilon: max(epsilon - 2, -1.5) for epsilon in EPSILONS}
"""The exponent of the theorem's bound, with its sign corrected."""


def _printed_form(numbers: Numbers) -> Claim:
    shares = {form: _last_shares(numbers, form) for form in (PRINTED, CORRECTED)}
    slopes = {form: _slopes(numbers, form, LIME) for form in (PRINTED, CORRECTED)}
    stays = all(slope.high > -1 - NEAR for slope in slopes[PRINTED].values())
    falls = all(slope.high < -1 for slope in slopes[CORRECTED].values())
    most = f"{max(column(numbers['errors'], 'T_max')):.0f}"
    return Claim(
        "Eq. (19) as T_max grows, against LIME's limit",
        "β = 3/(2K) Σ W_ℓ(α v − α_h v_h) + a remainder",
        f"remainder T_max^{_values(slopes[PRINTED])} for {_EPSILON}, the order of |β| itself: the remainder "
        f"is {_percent(shares[PRINTED])} of |β| at T_max = {most}, {_percent(shares[CORRECTED])} with the "
        "corrected form",
        ("corrected" if falls else "differs") if stays else "agrees",
        "The constant must be 1 and the values must be centred at ṽ; with both corrections the remainder "
        "decreases faster than β."
        if stays
        else "The printed form approaches LIME faster than β decreases.",
    )


def _one_correction(numbers: Numbers) -> Claim:
    shares = {form: _percent(_last_shares(numbers, form)) for form in (CONSTANT, CENTRE)}
    slopes = {form: _slopes(numbers, form, LIME) for form in (CONSTANT, CENTRE)}
    return Claim(
        "one correction alone",
        "",
        f"{shares[CONSTANT]} of |β| is left with the constant alone, {shares[CENTRE]} with the centre alone; they fall "
        f"like T_max^{_values(slopes[CONSTANT])} and T_max^{_values(slopes[CENTRE])}",
        "new",
        "Both corrections are needed: with only one, the remainder decreases no faster than β."
        if all(slope.high > -1 - NEAR for some in slopes.values() for slope in some.values())
        else "With one correction the remainder decreases faster than β in some of these documents.",
    )


def _exponent(numbers: Numbers) -> Claim:
    slopes = _slopes(numbers, CORRECTED, LIME)
    fits = _all_near(slopes, {epsilon: epsilon - 2 for epsilon in EPSILONS})
    bounded = _all_below(slopes, _BOUND)
    return Claim(
        "the remainder's exponent, corrected form, against LIME's limit",
        "(2−ε) ∨ 3/2, which grows; with its sign corrected (ε−2) ∨ (−3/2)",
        f"{_listed(slopes)} for {_EPSILON}",
        "corrected" if bounded else "differs",
        "The bound with the sign corrected holds"
        + (", and the measured exponents match ε − 2, which is better than −3/2 for ε < 1/2." if fits else ".")
        if bounded
        else "The remainder decreases more slowly than the bound with its sign corrected.",
    )


def _exponent_of_17(numbers: Numbers) -> Claim:
    slopes = _slopes(numbers, LESS_MEAN, EQUATION_17)
    slower = [epsilon for epsilon, slope in slopes.items() if slope.low > _BOUND[epsilon] + SLOWER]
    bounded = _all_below(slopes, {epsilon: max(epsilon - 2, -1 - epsilon) for epsilon in EPSILONS})
    return Claim(
        "the same against Eq. (17) itself, less the mean over words",
        "(2−ε) ∨ 3/2; with its sign corrected (ε−2) ∨ (−3/2)",
        f"{_listed(slopes)} for {_EPSILON}",
        ("corrected" if bounded else "differs") if slower else "agrees",
        f"Slower than that for ε = {', '.join(map(str, slower))}: under the correct distribution the sum over "
        "s is (d+1)/(d−1), not 1, which adds an error of T_max^(−1−ε), so the exponent is (ε−2) ∨ (−1−ε)."
        if slower
        else "The bound with the sign corrected holds.",
    )


def forms(documents: RandomDocuments, document: int) -> dict[str, Float[np.ndarray, "word"]]:
    """Eq. (19) as printed, with one correction, with both, and with both less its mean over the words."""
    scores, d = documents.scores(document), documents.d
    printed, corrected = (formula(*scores).numpy()[:d] for formula in (lime_approximation, lime_leading_term))
    return {
        PRINTED: printed,
        CONSTANT: printed / 1.5,
        CENTRE: 1.5 * corrected,
        CORRECTED: corrected,
        LESS_MEAN: corrected - corrected.mean(),
    }


def _errors(T_max: int, n_documents: int, seed: int) -> list[dict[str, Cell]]:
    """Root mean squares over the words of every document: of each form's error, and of what it approximates."""
    rows: list[dict[str, Cell]] = []
    for epsilon in EPSILONS:
        documents = random_documents(T_max, max(3, round(T_max**epsilon)), n_documents, seed)
        games = documents.games()
        kept = mean_given_kept(games)
        limits = {
            LIME: lime_limit(games, 1e-12).values.numpy(),
            EQUATION_17: 3 * (kept - kept.mean(axis=1, keepdims=True)),
        }
        for document in range(n_documents):
            for form, scores in forms(documents, document).items():
                for against, beta in limits.items():
                    key = {"epsilon": epsilon, "T_max": T_max, "d": documents.d, "document": document}
                    error, size = (float((x**2).mean() ** 0.5) for x in (scores - beta[document], beta[document]))
                    rows.append({**key, "form": form, "against": against, "error": error, "size": size})
    return rows


def points(
    numbers: Numbers, epsilon: float, form: str, against: str, name: str = "error"
) -> tuple[list[float], Float[np.ndarray, "document x"]]:
    """T_max, and a column of every document at each."""
    return curves(numbers["errors"], "T_max", name, epsilon=epsilon, form=form, against=against)


def _slopes(numbers: Numbers, form: str, against: str) -> dict[float, Slope]:
    """The exponent of the error for each ε, over the longer half of the documents."""
    slopes = {}
    for epsilon in EPSILONS:
        T_max, error = points(numbers, epsilon, form, against)
        slopes[epsilon] = longer_half(T_max, error)
    return slopes


def _last_shares(numbers: Numbers, form: str) -> dict[float, float]:
    """The error as a share of |β| at the largest T_max."""
    shares = {}
    for epsilon in EPSILONS:
        error, size = (rms(points(numbers, epsilon, form, LIME, name)[1])[-1] for name in ("error", "size"))
        shares[epsilon] = float(error / size)
    return shares


def _all_near(slopes: dict[float, Slope], exponents: dict[float, float]) -> bool:
    return all(abs(slope.value - exponents[epsilon]) <= NEAR for epsilon, slope in slopes.items())


def _all_below(slopes: dict[float, Slope], exponents: dict[float, float]) -> bool:
    return all(slope.value <= exponents[epsilon] + NEAR for epsilon, slope in slopes.items())


def _listed(slopes: dict[float, Slope]) -> str:
    return ", ".join(map(str, slopes.values()))


def _values(slopes: dict[float, Slope]) -> str:
    return ", ".join(f"{slope.value:.2f}" for slope in slopes.values())


def _percent(shares: dict[float, float]) -> str:
    low, high = 100 * min(shares.values()), 100 * max(shares.values())
    return f"{low:.2g} – {high:.2g} %"
