"""Mardaoui & Garreau's limit of LIME at any bandwidth, and Eq. (17) as its limit for large bandwidths."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, claim_if, column
from heedful.experiments.mathematics.document_game import DocumentGame, games_of_text
from heedful.experiments.mathematics.exact_means import mean_by_size
from heedful.experiments.mathematics.finite_bandwidth_figure import bandwidth_figure
from heedful.experiments.mathematics.log_log_slope import curves, longer_half
from heedful.experiments.mathematics.mardaoui_garreau import (
    DEFAULT,
    WIDE,
    PerUnit,
    cosine_kernel,
    large_bandwidth,
    least_squares_slopes,
    sigmas,
    theorem_1,
)
from heedful.experiments.mathematics.random_documents import random_documents
from heedful.experiments.mathematics.subsets import all_kept, lime_kept, lime_law
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace
from heedful.statistics.intervals import mean_of_draws
from heedful.theory.exact import lime
from heedful.theory.game import Games

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

N_LISTED = 10
N_SHOWN = 5
OfSizes = tuple[Float[np.ndarray, "size"], Float[np.ndarray, "unit size"]]
"""E[f; s removed] and E[z_j f; s removed]."""


@final
@dataclass(frozen=True)
class FiniteBandwidth(Experiment):
    """Theorem 1 of Mardaoui & Garreau against all sets, sampled LIME and exact LIME.

    E[π f] and E[π z_j f] of the text come from a recursion over sizes that `theory/exact.py` does not use.
    """

    name: ClassVar[str] = "finite-bandwidth"
    part: ClassVar[ExperimentPart] = "mathematics"
    title: ClassVar[str] = "LIME's limit at any bandwidth"
    source: ClassVar[str] = (
        "talk, sketch of proof (i) and (ii); paper, Eqs. (15)–(17); Mardaoui & Garreau, AISTATS 2021"
    )
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables listed, limits, text, wide, drawn, samples."""
        widths = np.geomspace(0.1, 10, 13 if workspace.quick else 25).tolist()
        n_runs, powers = (16, range(9, 15)) if workspace.quick else (16, range(9, 17))
        text = workspace.text or FIGURE_4
        games = games_of_text(workspace.single_layer, text, "type")
        game = DocumentGame.of(games)
        expectations = workspace.tensors("expectations", lambda: _expectations(game))
        of_sizes = expectations["f"].cpu().numpy(), expectations["kept"].cpu().numpy()
        return {
            "listed": workspace.step("listed", lambda: _listed(widths, workspace.seed)),
            "limits": workspace.step(
                "limits", lambda: _limits(range(3, 11 if workspace.quick else 14), workspace.seed)
            ),
            "text": workspace.step("text", lambda: _text(games, of_sizes, [*widths, DEFAULT])),
            "wide": _wide(*of_sizes, workspace.model.encode(text).units("type")),
            "drawn": workspace.step("drawn", lambda: _drawn(game, n_runs, workspace.seed)),
            "samples": workspace.step("samples", lambda: _samples(game, of_sizes, powers, n_runs, workspace.seed)),
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return [claim(numbers) for claim in (_theorem_claim, _sigma_claim, _draws_claim, _limit_claim, _width_claim)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure bandwidth."""
        return {"bandwidth": bandwidth_figure(numbers)}


def _theorem_claim(numbers: Numbers) -> Claim:
    listed = {name: max(column(numbers["listed"], name)) for name in ("theorem", "exact")}
    text = max(column(numbers["text"], "difference")) / max(map(abs, column(numbers["text"], "theorem")))
    return claim_if(
        max(*listed.values(), text) < 1e-6,
        "Theorem 1 at any ν",
        "β_j = c_d⁻¹ {σ_1 E[πf] + σ_2 E[πz_j f] + σ_3 Σ_{k≠j} E[πz_k f]}",
        f"within {listed['theorem']:.1e} of the regression on all sets of {N_LISTED} words (relative), heedful's exact "
        f"LIME within {listed['exact']:.1e}; on the text's {len(numbers['wide'])} words the two differ by {text:.1e}",
        "All sets of the short document were enumerated; on the text a recursion over sizes and an integral agree.",
        "The closed form and the regression differ.",
    )


def _sigma_claim(numbers: Numbers) -> Claim:
    sigma, d = max(column(numbers["limits"], "sigmas")), column(numbers["limits"], "d")
    return claim_if(
        sigma < 1e-5,
        "σ_1, σ_2, σ_3 over c_d as ν → ∞",
        "−6/(d+1), 6(d²−2d+3)/(d²−1), −6(d−3)/(d²−1) (the authors' code)",
        f"within {sigma:.1e} (relative) for d = {min(d):.0f} … {max(d):.0f}",
        "From α_0 → 1, α_1 → (d−1)/(2d) and α_2 → (d−2)/(3d).",
        "The coefficients tend to other values.",
    )


def _draws_claim(numbers: Numbers) -> Claim:
    rate = longer_half(*curves(numbers["samples"], "n", "distance"))
    return Claim(
        f"LIME with n samples at ν = {DEFAULT}: distance to Theorem 1",
        "→ 0 in probability",
        f"n^{rate} for the larger half of the n",
        "agrees" if rate.high < -0.4 else "differs",
        "The difference is only sampling noise, which decreases like n^−1/2."
        if abs(rate.value + 0.5) < 0.1
        else "The distance does not decrease like sampling noise.",
    )


def _limit_claim(numbers: Numbers) -> Claim:
    off = {form: column(numbers["limits"], form) for form in numbers["limits"][0]}
    wide = np.array(column(numbers["text"], "theorem", nu=WIDE))
    on_text = {form: _relative(np.array(column(numbers["wide"], form)), wide) for form in ("Eq. (17)", "with both")}
    both, wrong = max(*off["with both"], on_text["with both"]), max(off["Eq. (17)"]) > 1e-3
    return Claim(
        "its limit as ν → ∞",
        "3 E[f | j ∉ S] − 3/d Σ_k E[f | k ∉ S], Eq. (17)",
        f"off by {100 * on_text['Eq. (17)']:.0f} % on the text, {_range(off['Eq. (17)'])} in short documents; of LIME "
        f"less its mean by {_range(off['Eq. (17), centred'])}, with a factor (d−1)/(d+1) by "
        f"{max(off['with the factor, centred']):.1e}; within {both:.1e} of LIME with 6/(d+1) (mean_k E[f | k ∉ S] − "
        "E[f]) added",
        ("corrected" if both < 1e-6 else "differs") if wrong else "agrees",
        "Eq. (17) sums to zero over the words, but LIME's coefficients do not: a factor and their mean are missing."
        if wrong
        else "Eq. (17) is the limit.",
    )


def _width_claim(numbers: Numbers) -> Claim:
    default, wide = (np.array(column(numbers["text"], "theorem", nu=nu)) for nu in (DEFAULT, WIDE))
    distance = _relative(default, wide)
    return claim_if(
        distance < 0.05,
        f"whether the default bandwidth ν = {DEFAULT} is large",
        "“the bandwidth ν is also large”",
        f"LIME at ν = {DEFAULT} differs from its limit ν → ∞ by {100 * distance:.0f} % of it, on the text",
        "On this text the kernel hardly matters.",
        "Distances are at most 1, and weights fall to e^−8 at the farthest set.",
    )


def _by_lists(game: DocumentGame) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every set, its probability under LIME, the number of removed units, and f."""
    keep = all_kept(game.n_units)
    return keep, lime_law(keep), game.n_units - keep.sum(axis=1), game.values(keep)


def _listed(widths: list[float], seed: int) -> list[dict[str, Cell]]:
    """Theorem 1 and heedful's exact LIME against the regression on all sets of a random document."""
    rows: list[dict[str, Cell]] = []
    games = random_documents(24, N_LISTED, 1, seed).games()
    keep, law, gone, f = _by_lists(DocumentGame.of(games))
    for nu in widths:
        mass = law * cosine_kernel(N_LISTED, nu)[gone]
        line = least_squares_slopes(keep, f, mass)
        size = np.abs(line).max()
        closed = theorem_1(float(mass @ f), (mass * f) @ keep, nu)
        exact = _exact(games, nu)
        difference = {name: float(np.abs(x - line).max() / size) for name, x in (("theorem", closed), ("exact", exact))}
        rows.append({"nu": nu, **difference})
    return rows


def _exact(games: Games, nu: float) -> PerUnit:
    """LIME for infinitely many samples without penalty, by `theory/exact.py`."""
    return lime(games, 100 * nu, 0.0, 10**18, 1e-9).values[0].cpu().numpy()


def _limits(n_words: range, seed: int) -> list[dict[str, Cell]]:
    """Eq. (17) against the regression on all sets of documents of d words, flat kernel, with and without its mean."""
    rows: list[dict[str, Cell]] = []
    for d in n_words:
        keep, law, _, f = _by_lists(DocumentGame.of(random_documents(2 * d, d, 1, seed).games()))
        line = least_squares_slopes(keep, f, law)
        forms = large_bandwidth(d, (law * f) @ keep / (law @ keep), float(law @ f))
        off = {name: _relative(x, line) for name, x in forms.items()}
        centred = {f"{name}, centred": _relative(forms[name], line - line.mean()) for name in list(forms)[:2]}
        published = np.array([-6 / (d + 1), 6 * (d**2 - 2 * d + 3) / (d**2 - 1), -6 * (d - 3) / (d**2 - 1)])
        difference = float(np.abs(np.array(sigmas(d, WIDE)) - published).max() / np.abs(published).max())
        rows.append({"d": d, "sigmas": difference, **off, **centred})
    return rows


def _relative(values: PerUnit, real: PerUnit) -> float:
    return float(np.linalg.norm(values - real) / np.linalg.norm(real))


def _expectations(game: DocumentGame) -> dict[str, Tensor]:
    """E[f; s removed] and E[z_j f; s removed] for s = 0 … d, under LIME's distribution; nothing is sampled."""
    d = game.n_units
    law = np.append(0.0, np.full(d, 1 / d))
    share = 1 - np.arange(d + 1) / d
    kept = np.array([np.append(mean_by_size(game.with_kept(unit)), 0.0) for unit in range(d)])
    return {"f": torch.from_numpy(law * mean_by_size(game)), "kept": torch.from_numpy(law * share * kept)}


def _closed(of_sizes: OfSizes, nu: float) -> PerUnit:
    f, kept = of_sizes
    pi = cosine_kernel(len(kept), nu)
    return theorem_1(float(pi @ f), kept @ pi, nu)


def _text(games: Games, of_sizes: OfSizes, widths: list[float]) -> list[dict[str, Cell]]:
    """Theorem 1 on the text at every bandwidth, including a very wide one, and the distance of exact LIME."""
    rows: list[dict[str, Cell]] = []
    for nu in [*widths, WIDE]:
        closed = _closed(of_sizes, nu)
        difference = np.abs(_exact(games, inf if nu == WIDE else nu) - closed)
        for unit in range(len(closed)):
            rows.append({"unit": unit, "nu": nu, "theorem": float(closed[unit]), "difference": float(difference[unit])})
    return rows


def _wide(
    f: Float[np.ndarray, "size"], kept: Float[np.ndarray, "unit size"], words: Sequence[str]
) -> list[dict[str, Cell]]:
    """Eq. (17) on the text, and corrected."""
    d = len(kept)
    forms = large_bandwidth(d, kept.sum(axis=1) / ((d - 1) / (2 * d)), float(f.sum()))
    return [
        {"unit": unit, "word": words[unit], **{name: float(x[unit]) for name, x in forms.items()}} for unit in range(d)
    ]


def _drawn(game: DocumentGame, n_runs: int, seed: int) -> list[dict[str, Cell]]:
    """The largest coefficients of LIME with n = 5000 at some bandwidths, with 95 % intervals over runs."""
    rows: list[dict[str, Cell]] = []
    rng = np.random.default_rng(seed)
    masks = [lime_kept(game.n_units, 5000, rng) for _ in range(n_runs)]
    answers = [game.values(keep) for keep in masks]
    shown = None
    for nu in (4.0, 1.0, DEFAULT, 0.1):
        pi = cosine_kernel(game.n_units, nu)
        lines = np.array(
            [least_squares_slopes(keep, f, pi[(~keep).sum(axis=1)]) for keep, f in zip(masks, answers, strict=True)]
        )
        mean, half = mean_of_draws(lines)
        shown = np.argsort(-np.abs(mean))[:N_SHOWN].tolist() if shown is None else shown
        for unit in shown:
            ends = {"low": float(mean[unit] - half[unit]), "high": float(mean[unit] + half[unit])}
            rows.append({"unit": unit, "nu": nu, "mean": float(mean[unit]), **ends})
    return rows


def _samples(game: DocumentGame, of_sizes: OfSizes, powers: range, n_runs: int, seed: int) -> list[dict[str, Cell]]:
    """The distance of sampled LIME to Theorem 1 at the default bandwidth, for growing n."""
    pi, closed = cosine_kernel(game.n_units, DEFAULT), _closed(of_sizes, DEFAULT)
    rows: list[dict[str, Cell]] = []
    for run in range(n_runs):
        rng = np.random.default_rng([seed, run])
        for power in powers:
            keep = lime_kept(game.n_units, 2**power, rng)
            line = least_squares_slopes(keep, game.values(keep), pi[(~keep).sum(axis=1)])
            rows.append({"run": run, "n": 2**power, "distance": float(np.linalg.norm(line - closed))})
    return rows


def _range(shares: list[float]) -> str:
    return f"{100 * min(shares):.0f} – {100 * max(shares):.0f} %"
