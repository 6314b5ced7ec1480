"""Lemma D.1: the difference between the mean of a ratio and the ratio of means, against the printed bound."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, claim_if, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.mathematics.document_game import DocumentGame
from heedful.experiments.mathematics.exact_means import mean_by_size, moments_by_size
from heedful.experiments.mathematics.log_log_slope import Slope, curves, rms, slope, slope_over_documents
from heedful.experiments.mathematics.random_documents import RandomDocuments, random_documents
from heedful.experiments.mathematics.subsets import kept_of_size
from heedful.experiments.workspace import Workspace
from heedful.statistics.intervals import NORMAL_97_5, mean_of_draws

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

OWN = "X and Y of Prop. B.1"


@final
class JointLaw(NamedTuple):
    """A joint distribution of X and Y on finitely many points, with c n ≤ Y ≤ C n and |X| ≤ C."""

    p: Float[np.ndarray, "point"]
    x: Float[np.ndarray, "point"]
    y: Float[np.ndarray, "point"]
    n: int

    def row(self) -> dict[str, Cell]:
        """The gap and both bounds."""
        mean_y = self.p @ self.y
        gap = abs(float(self.p @ (self.x / self.y) - self.p @ self.x / mean_y))
        c, C = float(self.y.min()) / self.n, float(max(self.y.max() / self.n, np.abs(self.x).max()))
        return {"gap": gap, **bounds(float(self.p @ (self.y - mean_y) ** 2), c, C, self.n)}


def bounds(variance: float, c: float, C: float, n: int) -> dict[str, Cell]:
    """The printed bound, and the one that its proof gives: the identity before it has no C in the second term."""
    first, second = C * variance / (c * n) ** 3, variance**0.5 / (c * n) ** 2
    return {"c": c, "C": C, "printed": first + C**2 * second, "corrected": first + C * second}


@final
@dataclass(frozen=True)
class LemmaD1(Experiment):
    """The difference of E[X/Y] and E[X]/E[Y], and its bound, by exact summation.

    The distributions include X and Y of the proof of Prop. B.1, which uses the lemma. A coin is 1/2 or 3/2, and Y is
    the sum of n coins.
    """

    name: ClassVar[str] = "lemma-d1"
    part: ClassVar[ExperimentPart] = "mathematics"
    title: ClassVar[str] = "Lemma D.1: the mean of a ratio"
    source: ClassVar[str] = "paper, Appendix D, Lemma D.1; used in Appendix C, Eq. (32)"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables laws, constants, drawn."""
        largest, n_documents, n_draws = (256, 16, 20_000) if workspace.quick else (1024, 16, 400_000)
        sizes = [2**power for power in range(3, largest.bit_length())]
        own = workspace.step("own", lambda: _own_rows(sizes, n_documents, workspace.seed))
        return {
            "laws": _rows_of_laws(sizes) + own,
            "constants": [two_points(C).row() for C in np.geomspace(0.05, 4, 20).tolist()],
            "drawn": workspace.step("drawn", lambda: _drawn([8, 16, 32], n_draws, workspace.seed)),
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return [_bound_claim(numbers), _small_constant_claim(numbers), _rate_claim(numbers)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure gaps."""
        sheet = figure(7.5, 3.9)
        axes = quiet(sheet.add_subplot(1, 2, 1))
        for (law, points), colour in zip(_by_law(numbers).items(), COLOURS, strict=False):
            n, gap, printed = points
            axes.loglog(n, gap, "o-", color=colour, markersize=3, label=law)
            axes.loglog(n, printed, "--", color=colour, linewidth=1)
        axes.set(title="gap, and dashed its bound", xlabel="n", ylabel="|E[X/Y] − E[X]/E[Y]|")
        axes.legend(frameon=False, fontsize=7)
        axes = quiet(sheet.add_subplot(1, 2, 2))
        rows = numbers["constants"]
        C = column(rows, "C")
        axes.loglog(C, column(rows, "gap"), "o-", color=COLOURS[6], markersize=3, label="gap")
        axes.loglog(C, column(rows, "printed"), "--", color=COLOURS[1], label="bound, printed: C²")
        axes.loglog(C, column(rows, "corrected"), "--", color=COLOURS[2], label="bound, corrected: C")
        axes.axvline(1, color=COLOURS[7], linewidth=1)
        axes.set(title="X = ±C, Y = n (m ± m/10)", xlabel="C", ylabel="gap and bounds, n = 10")
        axes.legend(frameon=False)
        return {"gaps": sheet}


def _ratio(rows: Sequence[Mapping[str, Cell]], bound: str) -> Float[np.ndarray, "row"]:
    """The gap as a share of a bound."""
    return np.divide(column(rows, "gap"), column(rows, bound))


def _bound_claim(numbers: Numbers) -> Claim:
    ratio = _ratio(numbers["laws"], "printed")
    mean, low, high, exact = (np.array(column(numbers["drawn"], name)) for name in ("mean", "low", "high", "exact"))
    inside = int(((low <= exact) & (exact <= high)).sum())
    far = bool((np.abs(mean - exact) > 4.5 / NORMAL_97_5 * (high - mean)).any())
    return Claim(
        "|E[X/Y] − E[X]/E[Y]|, where C ≥ 1",
        "≤ C Var(Y)/(c³n³) + C² √Var(Y)/(c²n²)",
        f"at most {ratio.max():.2f} of the bound in {len(ratio)} distributions; sampled: {inside} of "
        f"{len(exact)} 95 % intervals contain the exact E[X/Y]",
        "agrees" if ratio.max() <= 1 and not far else "differs",
        "Both sides were computed by exact summation." if ratio.max() <= 1 else "Some distribution exceeds the bound.",
    )


def _small_constant_claim(numbers: Numbers) -> Claim:
    C = np.array(column(numbers["constants"], "C"))
    printed, corrected = (_ratio(numbers["constants"], name) for name in ("printed", "corrected"))
    broken = bool((printed > 1).any())
    holds = bool((corrected <= 1).all() and (_ratio(numbers["laws"], "corrected") <= 1).all())
    return Claim(
        "the same where C < 1: X = ±C, Y = n (m ± m/10) together",
        "the same bound, for any positive C",
        f"up to {printed.max():.1f} times the printed bound (C = {C[printed.argmax()]:.2f}); at most "
        f"{corrected.max():.2f} of it with C in place of C²",
        ("corrected" if holds else "differs") if broken else "agrees",
        "The identity before the bound has no C in its second term, so the factor is C, from Popoviciu's "
        "inequality. C² is a valid bound only for C ≥ 1; the rates do not change."
        if broken
        else "No distribution with a small C violates the bound.",
    )


def _rate_claim(numbers: Numbers) -> Claim:
    own, sign = _own_slope(numbers), _slope_of(numbers, "X = sign of Y − E[Y]")
    return claim_if(
        own.high < -1.5,
        "the rate for X and Y of Prop. B.1, all positions words, half of them removed",
        "O(n^−3/2), Eq. (32)",
        f"n^{own} over documents",
        "X depends on one of Y's n words, so they are nearly uncorrelated and the gap decreases faster than "
        f"the bound. X = sign(Y − E[Y]) attains the rate of the bound: n^{sign:.2f}.",
        "The gap decreases more slowly than the bound.",
    )


def two_points(C: float, n: int = 10) -> JointLaw:
    """X = ±C and Y = n m (1 ± 1/10) with equal signs, and Y ≤ C n."""
    y = n * C / 1.1 * np.array([0.9, 1.1])
    return JointLaw(np.array([0.5, 0.5]), np.array([-C, C]), y, n)


def _laws(n: int) -> dict[str, JointLaw]:
    heads = np.arange(n + 1)
    y, probabilities = n / 2 + heads, _binomial(n)
    # One coin apart from the others: it is the last of n, or one more that is not in Y. X itself one of Y's coins would
    # leave no gap: all n of them have the same E[X/Y], and these sum to 1.
    rest, of_rest = n / 2 + np.arange(n), _binomial(n - 1)
    own = np.repeat([1.5, 0.5], n), np.concatenate([rest, rest + 1])
    another = np.repeat([0.5, 1.5], n + 1), np.tile(y, 2)
    return {
        "X = 2 − one of Y's coins": JointLaw(np.tile(of_rest, 2) / 2, *own, n),
        "X another coin": JointLaw(np.tile(probabilities, 2) / 2, *another, n),
        "X = sign of Y − E[Y]": JointLaw(probabilities, 1.5 * np.sign(heads - n / 2), y, n),
    }


def _rows_of_laws(sizes: list[int]) -> list[dict[str, Cell]]:
    return [{"law": name, "n": n, "document": None, **law.row()} for n in sizes for name, law in _laws(n).items()]


def _binomial(n: int) -> Float[np.ndarray, "point"]:
    """The distribution of the number of heads of n coins."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return np.exp(logs[-1] - logs - logs[::-1] - n * np.log(2))


def own_game(documents: RandomDocuments, document: int) -> DocumentGame:
    """X/Y of Prop. B.1 as a game: all n positions words, the numerator the term of word 1; word 0 is kept."""
    g, w, g_h, w_h = (x[document : document + 1] for x in (documents.g, documents.w, documents.g_h, documents.w_h))
    only = np.arange(documents.d) == 1
    return DocumentGame(g, g_h, g * w * only, g_h * w_h * only, np.zeros(1), np.zeros(1)).with_kept(0)


def _own_row(game: DocumentGame) -> dict[str, Cell]:
    """The exact gap where half of the other words are removed."""
    n = game.n_units + 1
    s = n // 2
    means, variances = moments_by_size(game.a[0], game.b[0])
    x = ((n - 1 - s) * game.A.sum() + s * game.B.sum()) / (n - 1)
    exact = float(mean_by_size(game)[s])
    low, high = min(game.a.min(), game.b.min()), max(game.a.max(), game.b.max())
    largest = max(float(high), float(np.abs(game.A).max()), float(np.abs(game.B).max()))
    gap = abs(exact - float(x / (means[s] + game.D_F[0])))
    return {"exact": exact, "gap": gap, **bounds(float(variances[s]), float(min(low, game.D_F[0])), largest, n)}


def _own_rows(sizes: list[int], n_documents: int, seed: int) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for n in sizes:
        documents = random_documents(n, n, n_documents, seed)
        for document in range(n_documents):
            row = _own_row(own_game(documents, document))
            rows.append({"law": OWN, "n": n, "document": document, **{k: v for k, v in row.items() if k != "exact"}})
    return rows


def _drawn(sizes: list[int], n_draws: int, seed: int) -> list[dict[str, Cell]]:
    """E[X/Y] by draws with 95 % intervals, and by the exact sum."""
    rows: list[dict[str, Cell]] = []
    rng = np.random.default_rng(seed)
    for n in sizes:
        game = own_game(random_documents(n, n, 1, seed), 0)
        f = game.values(kept_of_size(n - 1, n // 2, n_draws, rng))
        (mean,), (half,) = (x.tolist() for x in mean_of_draws(f[:, None]))
        rows.append({"n": n, "exact": _own_row(game)["exact"], "mean": mean, "low": mean - half, "high": mean + half})
    return rows


def _by_law(numbers: Numbers) -> dict[str, tuple[list[float], list[float], list[float]]]:
    """n, gap and printed bound of every law; of the documents root mean squares."""
    points = {}
    for law in dict.fromkeys(str(row["law"]) for row in numbers["laws"]):
        n, gap = curves(numbers["laws"], "n", "gap", law=law)
        _, printed = curves(numbers["laws"], "n", "printed", law=law)
        points[law] = n, rms(gap).tolist(), rms(printed).tolist()
    return points


def _slope_of(numbers: Numbers, law: str) -> float:
    n, gap, _ = _by_law(numbers)[law]
    return slope(n, gap)


def _own_slope(numbers: Numbers) -> Slope:
    return slope_over_documents(*curves(numbers["laws"], "n", "gap", law=OWN))
