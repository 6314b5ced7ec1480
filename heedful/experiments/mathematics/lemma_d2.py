"""Lemma D.2: the integral that becomes 1/2 in Theorem 5.1, and for which a its expansion is accurate."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, claim_if, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.mathematics.document_game import games_of_text
from heedful.experiments.mathematics.log_log_slope import slope
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

Points = Float[np.ndarray, "point"]


def integral(a: Points) -> Points:
    """∫_0^1 x dx/(1+ax) by the double-exponential rule, which is accurate even if 1 + ax nearly vanishes at x = 1."""
    step = 1 / 64
    t = np.arange(-4, 4 + step, step)
    x, rest = 1 / (1 + np.exp(-np.pi * np.sinh(t))), 1 / (1 + np.exp(np.pi * np.sinh(t)))
    weights = step * np.pi * np.cosh(t) * x * rest
    # 1 + ax = (1 + a) − a (1 − x) loses no digits where a is near −1.
    return x / ((1 + a)[:, None] - a[:, None] * rest) @ weights


def closed_form(a: Points) -> Points:
    """(a − log(a+1))/a², as printed."""
    return (a - np.log1p(a)) / a**2


def expansion(a: Points) -> Points:
    """1/2 − a/3, as printed, without the O(a²)."""
    return 0.5 - a / 3


@final
@dataclass(frozen=True)
class LemmaD2(Experiment):
    """Quadrature, closed form and expansion over −1 < a, and the a of real heads.

    In the proof of Theorem 5.1 a = Σ g_h / Σ g − 1, which is negative where words receive more attention than [UNK];
    the lemma is stated for a > 0.
    """

    name: ClassVar[str] = "lemma-d2"
    part: ClassVar[ExperimentPart] = "mathematics"
    title: ClassVar[str] = "Lemma D.2: the integral of Theorem 5.1"
    source: ClassVar[str] = "paper, Appendix D, Lemma D.2"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables integral, near zero, heads."""
        n = 60 if workspace.quick else 400
        wide = np.concatenate([np.geomspace(1e-6, 0.99, n), np.geomspace(1.01, 11, n)]) - 1
        small = np.geomspace(1e-3, 0.1, 13)
        return {
            "integral": _rows(wide),
            "near zero": _rows(np.concatenate([-small[::-1], small])),
            "heads": workspace.step("heads", lambda: _heads(workspace)),
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return [_closed_form_claim(numbers), _expansion_claim(numbers), *_claims_of_heads(numbers)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure integral."""
        rows, near, heads = numbers["integral"], numbers["near zero"], numbers["heads"]
        sheet = figure(7.5, 3.8)
        axes = quiet(sheet.add_subplot(1, 2, 1))
        ratio = 1 + np.array(column(rows, "a"))
        axes.semilogx(ratio, column(rows, "integral"), color=COLOURS[0], linewidth=4, alpha=0.4, label="quadrature")
        axes.plot(ratio, column(rows, "closed form"), "--", color=COLOURS[6], linewidth=1, label="closed form")
        axes.plot(ratio, column(rows, "expansion"), color=COLOURS[1], linewidth=1, label="1/2 − a/3")
        axes.plot(
            1 + np.array(column(heads, "a")),
            column(heads, "integral"),
            "o",
            color=COLOURS[2],
            label="heads of the model",
        )
        axes.axhline(0.5, color=COLOURS[7], linewidth=1, label="1/2, as in Eq. (19)")
        axes.set(title="the integral", xlabel="1 + a = Σg_h / Σg", ylabel="∫ x dx/(1+ax)", ylim=(-0.5, 13))
        axes.legend(frameon=False)
        axes = quiet(sheet.add_subplot(1, 2, 2))
        left = np.abs(np.subtract(column(near, "integral"), column(near, "expansion")))
        at = np.array(column(near, "a"))
        for sign, colour, name in ((1, COLOURS[0], "a > 0"), (-1, COLOURS[1], "a < 0")):
            axes.loglog(np.abs(at[sign * at > 0]), left[sign * at > 0], "o", color=colour, markersize=4, label=name)
        line = np.sort(at[at > 0])
        axes.loglog(line, line**2 / 4, color=COLOURS[7], linewidth=1, label="a²/4")
        axes.set(title="what 1/2 − a/3 leaves", xlabel="|a|", ylabel="|integral − (1/2 − a/3)|")
        axes.legend(frameon=False)
        return {"integral": sheet}


def _closed_form_claim(numbers: Numbers) -> Claim:
    sides = {}
    for side, sign in (("a > 0", 1), ("−1 < a < 0", -1)):
        some = [row for row in numbers["integral"] if sign * column([row], "a")[0] > 0]
        real = np.array(column(some, "integral"))
        sides[side] = float(np.abs(real / np.array(column(some, "closed form")) - 1).max())
    return claim_if(
        max(sides.values()) < 1e-9,
        "∫_0^1 x dx/(1+ax)",
        "(a − log(a+1))/a² for a > 0",
        f"within {sides['a > 0']:.1e} of quadrature for a > 0 and {sides['−1 < a < 0']:.1e} for −1 < a < 0, relative",
        "The closed form holds on the whole range a > −1 where the integral exists.",
        "Quadrature gives a different value.",
    )


def _expansion_claim(numbers: Numbers) -> Claim:
    near = [row for row in numbers["near zero"] if column([row], "a")[0] > 0]
    a = np.array(column(near, "a"))
    remainder = np.abs(np.subtract(column(near, "integral"), column(near, "expansion")))
    order = slope(a.tolist(), remainder.tolist())
    return claim_if(
        abs(order - 2) < 0.1,
        "remainder of the expansion",
        "1/2 − a/3 + O(a²)",
        f"falls like a^{order:.2f}, with constant {remainder[0] / a[0] ** 2:.3f} as a → 0",
        "The next term of the series is a²/4.",
        "The remainder after 1/2 − a/3 is not of second order.",
    )


def _claims_of_heads(numbers: Numbers) -> list[Claim]:
    """The range of a in a trained model, and the error of 1/2 there."""
    a, real, expanded = (np.array(column(numbers["heads"], name)) for name in ("a", "integral", "expansion"))
    error, expanded_error = (float((np.abs(x - real) / real).max()) for x in (0.5, expanded))
    negative = bool((a < 0).any())
    return [
        Claim(
            "the range of a where the proof of Theorem 5.1 uses it",
            "a > 0",
            f"1 + a from {1 + a.min():.1e} to {1 + a.max():.1e} in the bundled model: a < 0 in {(a < 0).sum()} of "
            f"{len(a)} heads",
            "corrected" if negative else "agrees",
            "In a trained head words receive more attention than [UNK], so the proof needs the lemma for a > −1."
            if negative
            else "Every head of this text has a > 0.",
        ),
        claim_if(
            error < 0.1,
            "the 1/2 of Eq. (19) instead of the integral, in these heads",
            "1/2 + O(a), a → 0",
            f"off by up to {100 * error:.0f} % of the integral; with −a/3 by up to {100 * expanded_error:.0f} %",
            "|a| is small in every head of this text.",
            "The expansion is valid for small |a|, but |a| is not small in the heads of a trained model.",
        ),
    ]


def _rows(a: Points) -> list[dict[str, Cell]]:
    columns = {"a": a, "integral": integral(a), "closed form": closed_form(a), "expansion": expansion(a)}
    return [{name: float(values[index]) for name, values in columns.items()} for index in range(len(a))]


def _heads(workspace: Workspace) -> list[dict[str, Cell]]:
    """a of every head, for one text."""
    games = games_of_text(workspace.single_layer, workspace.text or FIGURE_4, "token")
    kept, gone = (games.D_F + x.sum(dim=2) for x in (games.a, games.b))
    a = (gone / kept - 1)[0].cpu().numpy()
    return [{"head": head, **row} for head, row in enumerate(_rows(a))]
