"""Prop. B.1: attention times value of one position, given that a word is kept, and the distribution of S."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.mathematics.conditional_means import mean_given_kept
from heedful.experiments.mathematics.document_game import DocumentGame
from heedful.experiments.mathematics.exact_means import mean_by_size
from heedful.experiments.mathematics.log_log_slope import Slope, curves, longer_half, rms, slope_over_documents
from heedful.experiments.mathematics.proposition_b1_sums import corrected_law, equation_29, equation_30, printed_law
from heedful.experiments.mathematics.random_documents import RandomDocuments, random_documents
from heedful.experiments.mathematics.subsets import all_kept, lime_kept
from heedful.experiments.workspace import Workspace
from heedful.statistics.intervals import mean_of_draws, wilson
from heedful.theory.game import Games

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

EPSILONS = (0.3, 0.5, 0.7, 0.9)
N_WORDS = 8
"""The number of words of the document whose distribution of sizes is counted and sampled."""
N_TERMS = 3
"""The number of words, from the first on, whose term A_t V_t is measured in each document."""
SLACK = 0.05
"""The tolerance for exponents, which are measured at finite lengths."""


@final
@dataclass(frozen=True)
class PropositionB1(Experiment):
    """Eqs. (29) and (30) against exact expectations, under two distributions of s.

    One distribution of the number s of removed words is as printed, the other follows from LIME's sampling. The exact
    values come from integrals over p (`conditional_means.py`), those given s from a recursion over sizes.
    """

    name: ClassVar[str] = "proposition-b1"
    part: ClassVar[ExperimentPart] = "mathematics"
    title: ClassVar[str] = "Prop. B.1: conditional expectations"
    source: ClassVar[str] = "paper, Appendix B, Prop. B.1, Eqs. (29) and (30); proof in Appendix C"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables law, drawn, errors, sizes."""
        largest, n_documents, n_draws = (12, 8, 40_000) if workspace.quick else (13, 16, 1_000_000)
        errors: list[dict[str, Cell]] = []
        sizes: list[dict[str, Cell]] = []
        powers = range(6, largest + 1)
        for done, power in enumerate(powers):
            workspace.progress(done, len(powers))
            errors += workspace.step(
                f"errors-{power}", lambda power=power: _errors(2**power, n_documents, workspace.seed)
            )
            sizes += workspace.step(
                f"sizes-{power}", lambda power=power: _given_size(2**power, n_documents, workspace.seed)
            )
        return {
            "law": workspace.step("law", lambda: _law(n_draws, workspace.seed)),
            "drawn": workspace.step("drawn", lambda: _drawn(n_draws, workspace.seed)),
            "errors": errors,
            "sizes": sizes,
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        law = numbers["law"]
        counted, printed, corrected = (np.array(column(law, name)) for name in ("counted", "printed", "corrected"))
        low, high = (np.array(column(law, name)) for name in ("low", "high"))
        held = {
            name: int(((low <= law_of_s) & (law_of_s <= high)).sum())
            for name, law_of_s in (("printed", printed), ("corrected", corrected))
        }
        wrong, right = np.abs(counted - printed).max() > 1e-12, np.abs(counted - corrected).max() < 1e-12
        by_size = slope_over_documents(*curves(numbers["sizes"], "T_max", "error"))
        return [
            Claim(
                "distribution of the number s of removed words, given ℓ ∉ S",
                "1/d for each s (first display of the proof)",
                f"2(d−s)/(d(d−1)) in a count of all sets of d = {N_WORDS}; {held['corrected']} of {len(law)} "
                f"sampled 95 % intervals contain it, {held['printed']} contain the printed one",
                ("corrected" if right else "differs") if wrong else "agrees",
                "A set of s words excludes ℓ with probability (d−s)/d, so given ℓ ∉ S smaller sets are more "
                "likely; s = 0, which the display includes, is never sampled."
                if wrong
                else "The count gives the printed distribution.",
            ),
            Claim(
                "E_s[A_t V_t | ℓ ∉ S] for a given s, Eq. (35): the worst s",
                "remainder O(T_max^−3/2)",
                f"T_max^{by_size} for ε = 0.7",
                "agrees" if by_size.high < -1.5 + SLACK else "differs",
                "Given s the approximation holds, with a smaller remainder than printed: the neglected terms "
                "are of order T_max^−2."
                if by_size.high < -1.5 + SLACK
                else "Given s the remainder decreases more slowly than printed.",
            ),
            *(self._equation(numbers, equation) for equation in ("(29)", "(30)")),
            _short_document(numbers["drawn"]),
        ]

    def _equation(self, numbers: Numbers, equation: str) -> Claim:
        slopes = {
            form: {epsilon: fit_slope(numbers, equation, form, epsilon) for epsilon in EPSILONS}
            for form in ("printed", "corrected")
        }
        unclear = [epsilon for epsilon in EPSILONS if equation == "(29)" and _costs_cancel(numbers, epsilon)]
        for epsilon in unclear:
            del slopes["printed"][epsilon]
        slow = [epsilon for epsilon, slope in slopes["printed"].items() if slope.low > -1.5 + SLACK]
        corrected = all(slope.high < -1.5 for slope in slopes["corrected"].values())
        costs = {"(29)": "1/d + a/6 of the value, T_max^((ε−2) ∨ (−1−ε))", "(30)": "(g_h v_h − g v)/(6 Σg), T_max^−1"}
        return Claim(
            f"remainder of Eq. {equation}",
            "O(T_max^−3/2)",
            f"T_max^{_listed(slopes['printed'])} as printed, T_max^{_listed(slopes['corrected'])} corrected"
            + "".join(f"; at ε = {epsilon} 1/d and a/6 nearly cancel, so there is no exponent" for epsilon in unclear),
            ("corrected" if corrected else "differs") if slow else "agrees",
            f"The printed distribution adds an error of {costs[equation]}, too large for ε = "
            f"{', '.join(map(str, slow))}; with 2(d−s)/(d(d−1)) instead of 1/d the remainder is of order T_max^−2."
            if slow
            else "The remainder decreases as printed.",
        )

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure expectations."""
        sheet = figure(8.0, 3.8)
        axes = quiet(sheet.add_subplot(1, 3, 1))
        law = numbers["law"]
        s, share, low, high = (np.array(column(law, name)) for name in ("s", "drawn", "low", "high"))
        axes.plot(s, column(law, "printed"), "--", color=COLOURS[1], label="printed, 1/d")
        axes.plot(s, column(law, "corrected"), color=COLOURS[0], label="2(d−s)/(d(d−1))")
        axes.plot(s, column(law, "counted"), "s", color=COLOURS[2], markersize=7, fillstyle="none", label="all sets")
        axes.errorbar(s, share, [share - low, high - share], fmt="o", color=COLOURS[6], markersize=3, label="drawn")
        axes.set(
            title=f"law of s given ℓ ∉ S, d = {N_WORDS}", xlabel="removed words s", ylabel="probability", ylim=(0, 0.4)
        )
        axes.legend(frameon=False, fontsize=7)
        for place, equation in enumerate(("(29)", "(30)"), start=2):
            axes = quiet(sheet.add_subplot(1, 3, place))
            for epsilon, colour in zip(EPSILONS, COLOURS, strict=False):
                for form, style in (("printed", "--"), ("corrected", "-")):
                    T_max, error = _curve(numbers, equation, form, epsilon)
                    label = f"ε = {epsilon}" if form == "corrected" else None
                    axes.loglog(
                        T_max, rms(error), style, color=colour, marker="o", markersize=3, linewidth=1, label=label
                    )
            ends = np.array([min(column(numbers["errors"], "T_max")), max(column(numbers["errors"], "T_max"))])
            axes.loglog(ends, 3 * ends**-1.5, color=COLOURS[7], linewidth=3, alpha=0.5, label="slope −3/2")
            axes.set(title=f"Eq. {equation}", xlabel="T_max", ylabel="error (root mean square)" if place == 2 else "")
        sheet.axes[1].legend(frameon=False, fontsize=7, title="dashed: printed distribution", title_fontsize=7)
        return {"expectations": sheet}


def _short_document(rows: Sequence[Mapping[str, Cell]]) -> Claim:
    exact, low, high = (np.array(column(rows, name)) for name in ("exact", "low", "high"))
    off, held = {}, {}
    for form in ("printed", "corrected", "exact"):
        values = np.array(column(rows, form))
        off[form] = float(np.abs(values - exact).max() / np.abs(exact).max())
        held[form] = int(((low <= values) & (values <= high)).sum())
    better = off["corrected"] < off["printed"] / 5
    return Claim(
        f"E[A_t V_t | ℓ ∉ S] of a document of 16 words, T_max = 64: {len(rows)} pairs of t and ℓ",
        "Eqs. (29) and (30)",
        f"off by up to {100 * off['printed']:.1f} % of the largest as printed, {100 * off['corrected']:.1f} % with the "
        f"corrected law; {held['exact']} sampled 95 % intervals contain the exact value, {held['printed']} "
        "contain the printed one",
        ("corrected" if better else "differs") if off["printed"] > 0.02 else "agrees",
        "The samples use neither formula."
        if off["printed"] > 0.02
        else "Both distributions give nearly the same values for this document.",
    )


def _curve(
    numbers: Numbers, equation: str, form: str, epsilon: float
) -> tuple[list[float], Float[np.ndarray, "document x"]]:
    return curves(numbers["errors"], "T_max", "error", equation=equation, form=form, epsilon=epsilon)


def _costs_cancel(numbers: Numbers, epsilon: float) -> bool:
    """Whether 1/d + a/6, what the printed law costs Eq. (29), nearly vanishes where its exponent is measured."""
    T_max, d = curves(numbers["errors"], "T_max", "d", equation="(29)", form="printed", epsilon=epsilon)
    _, a = curves(numbers["errors"], "T_max", "a", equation="(29)", form="printed", epsilon=epsilon)
    one, other = 1 / d[:, len(T_max) // 2 :], a[:, len(T_max) // 2 :] / 6
    # Or has changed its sign between two lengths.
    share = (one + other) / np.maximum(one, np.abs(other))
    return bool((np.abs(share) < 0.5).any() or (np.sign(share) != np.sign(share[:, :1])).any())


def _listed(slopes: dict[float, Slope]) -> str:
    values = ", ".join(f"{slope.value:.2f}" for slope in slopes.values())
    return f"({values}) for ε = {', '.join(map(str, slopes))}"


def fit_slope(numbers: Numbers, equation: str, form: str, epsilon: float) -> Slope:
    """The exponent of an error in T_max, over the longer half of the documents."""
    return longer_half(*_curve(numbers, equation, form, epsilon))


def _terms(documents: RandomDocuments, document: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """g v and g_h v_h of the measured words, Σg and Σg_h."""
    g, w, g_h, w_h = (x[document] for x in (documents.g, documents.w, documents.g_h, documents.w_h))
    return (g * w)[:N_TERMS], (g_h * w_h)[:N_TERMS], float(g.sum()), float(g_h.sum())


def term_games(documents: RandomDocuments) -> Games:
    """For every document and each of its first words a game whose value is that word's term A_t V_t."""
    games = documents.games()
    n_documents, d = len(games.n_units), documents.d
    only = torch.eye(N_TERMS, d, dtype=torch.float64).repeat(n_documents, 1)[:, None]
    a, b, A, B = (x.repeat_interleave(N_TERMS, dim=0) for x in (games.a, games.b, games.A, games.B))
    D_F = games.D_F.repeat_interleave(N_TERMS, dim=0)
    return Games(a, b, A * only, B * only, D_F, torch.zeros_like(D_F), np.repeat(games.n_units, N_TERMS))


def _errors(T_max: int, n_documents: int, seed: int) -> list[dict[str, Cell]]:
    """Root mean square errors of (29), over terms, and of (30), over terms and kept words, of every document."""
    rows: list[dict[str, Cell]] = []
    for epsilon in EPSILONS:
        documents = random_documents(T_max, max(N_TERMS, round(T_max**epsilon)), n_documents, seed)
        games, d = term_games(documents), documents.d
        exact = mean_given_kept(games) + games.whole.numpy()[:, None]
        exact = exact.reshape(n_documents, N_TERMS, d)
        own = np.eye(N_TERMS, d, dtype=bool)
        for document in range(n_documents):
            g_v, g_v_h, G, G_h = _terms(documents, document)
            for form, law in (("printed", printed_law(d)), ("corrected", corrected_law(d))):
                terms = {"(29)": equation_29(g_v, G, G_h, law), "(30)": equation_30(g_v, g_v_h, G, G_h, law)}
                for equation, where in (("(29)", own), ("(30)", ~own)):
                    square = (exact[document] - terms[equation][:, None])[where] ** 2
                    key = {"epsilon": epsilon, "T_max": T_max, "d": d, "a": G_h / G - 1, "document": document}
                    rows.append({**key, "equation": equation, "form": form, "error": float(square.mean() ** 0.5)})
    return rows


def _given_size(T_max: int, n_documents: int, seed: int) -> list[dict[str, Cell]]:
    """The largest error of Eq. (35) over s, for the first word of every document, ε = 0.7."""
    rows: list[dict[str, Cell]] = []
    documents = random_documents(T_max, round(T_max**0.7), n_documents, seed)
    games, d = term_games(documents), documents.d
    x = np.arange(1, d) / (d - 1)
    for document in range(n_documents):
        g_v, _, G, G_h = _terms(documents, document)
        exact = mean_by_size(DocumentGame.of(games, N_TERMS * document).with_kept(0))[1:]
        error = np.abs(exact - g_v[0] / ((1 - x) * G + x * G_h)).max()
        rows.append({"T_max": T_max, "d": d, "document": document, "error": float(error)})
    return rows


def _law(n_draws: int, seed: int) -> list[dict[str, Cell]]:
    """The law of s given that word 0 is kept: over all sets, as fractions, and by drawing."""
    d = N_WORDS
    keep = all_kept(d)
    gone = d - keep.sum(axis=1)
    drawn = lime_kept(d, n_draws, np.random.default_rng(seed))
    sizes = (d - drawn.sum(axis=1))[drawn[:, 0]]
    joint = [Fraction(0)] + [
        Fraction(int((keep[:, 0] & (gone == s)).sum()), d * int((gone == s).sum())) for s in range(1, d)
    ]
    rows: list[dict[str, Cell]] = []
    for s in range(d):
        count = int((sizes == s).sum())
        low, high = wilson(count, len(sizes))
        laws = {"printed": 1 / d, "corrected": float(corrected_law(d)[s - 1]) if s else 0.0}
        row: dict[str, Cell] = {"s": s, "counted": float(joint[s] / sum(joint)), **laws}
        rows.append({**row, "drawn": count / len(sizes), "low": low, "high": high})
    return rows


def _drawn(n_draws: int, seed: int) -> list[dict[str, Cell]]:
    """E[A_t V_t | ℓ ∉ S] of one short document by LIME's sampling, with 95 % intervals, and all computed values."""
    rows: list[dict[str, Cell]] = []
    documents = random_documents(64, 16, 1, seed)
    games, d = term_games(documents), documents.d
    exact = mean_given_kept(games) + games.whole.numpy()[:, None]
    keep = lime_kept(d, n_draws, np.random.default_rng(seed + 1))
    g_v, g_v_h, G, G_h = _terms(documents, 0)
    for term in range(N_TERMS):
        f = DocumentGame.of(games, term).values(keep)
        for kept in range(N_TERMS):
            some = f[keep[:, kept]]
            (mean,), (half,) = (x.tolist() for x in mean_of_draws(some[:, None]))
            row: dict[str, Cell] = {"term": term, "kept": kept, "exact": float(exact[term, kept])}
            row |= {"mean": mean, "low": mean - half, "high": mean + half}
            for form, law in (("printed", printed_law(d)), ("corrected", corrected_law(d))):
                same = equation_29(g_v, G, G_h, law) if kept == term else equation_30(g_v, g_v_h, G, G_h, law)
                row[form] = float(same[term])
            rows.append(row)
    return rows
