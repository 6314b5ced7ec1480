"""Superposition: more features than dimensions, and their recovery by sparse autoencoders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from torch.nn.functional import normalize

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, claim_if, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.workspace import Workspace
from heedful.features.fitting import fit
from heedful.features.superposition import RECOVERED, STORED, ToyModel, ToyRows, ToySettings, train_toy

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_PLANE = (1.0, 0.2, 0.1)
"""The probabilities of five features in a plane, as published: sparsity 0, 0.8 and 0.9."""
_UNIFORM = (1.0, 0.3, 0.1, 0.03, 0.01)
_KINDS: Mapping[str, Mapping[str, float]] = {"relu": {"sparsity": 2.0}, "topk": {"k": 1}}
"""The lecture's autoencoder, its λ chosen on other seeds, and one that gives a row one activation, as in the theory."""
_REGULAR = {"alone": 1, "tetrahedron": 3 / 4, "antipodal pair": 1 / 2, "pentagon": 2 / 5}


@final
@dataclass(frozen=True)
class Superposition(Experiment):
    """How many features a layer stores, by their sparsity, and which are recovered."""

    name: ClassVar[str] = "superposition"
    part: ClassVar[ExperimentPart] = "lectures"
    title: ClassVar[str] = "Superposition, and the features that sparse autoencoders recover from it"
    source: ClassVar[str] = "lecture, Section 9.5; Elhage et al., Toy Models of Superposition, 2022"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables features and recovered."""
        n, d_e, n_steps = (20, 5, 800) if workspace.quick else (400, 30, 5_000)
        plane = [ToySettings(5, 2, p, 0.9, 8, 1_000, 512, seed=workspace.seed) for p in _PLANE]
        # Of 400 features none is alone in half of its rows before it is so rare.
        sparse = _UNIFORM if workspace.quick else (*_UNIFORM, 0.001)
        uniform = [ToySettings(n, d_e, p, 1.0, 1, n_steps, 512, seed=workspace.seed) for p in sparse]
        features, recovered = [], []
        for number, settings in enumerate([*plane, *uniform]):
            toy, where = _trained(workspace, settings), "plane" if number < len(plane) else "uniform"
            features += _described(toy, where)
            for kind in _KINDS:
                recovered += [{"where": where, "kind": kind, **row} for row in _recovered(workspace, toy, kind)]
            workspace.progress(number + 1, len(plane) + len(uniform))
        return {"features": features, "recovered": recovered}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the sources say."""
        return [*_geometry(numbers), *_growth(numbers), *_recovery(numbers)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures plane, dimensions, recovered."""
        return {"plane": _plane(numbers), "dimensions": _dimensions(numbers), "recovered": _cosines(numbers)}


def _key(settings: ToySettings) -> str:
    return f"{settings.n_features}-in-{settings.d_e}-{settings.probability:g}"


def _trained(workspace: Workspace, settings: ToySettings) -> ToyModel:
    def work() -> dict[str, torch.Tensor]:
        toy = train_toy(settings)
        return {"W": toy.W, "b": toy.b, "loss": torch.tensor(toy.loss)}

    kept = {name: tensor.cpu() for name, tensor in workspace.tensors(f"toy-{_key(settings)}", work).items()}
    return ToyModel(settings, kept["W"], kept["b"], float(kept["loss"]))


def _described(toy: ToyModel, where: str) -> list[dict[str, Cell]]:
    """The geometry of every feature; x and y are its first two coordinates."""
    p, shares = toy.settings.probability, toy.dimensionality.tolist()
    return [
        {
            "where": where,
            "active": p,
            "feature": number,
            "x": float(W[0]),
            "y": float(W[1]),
            "norm": float(W.norm()),
            "dimensionality": shares[number],
            "squares per dimension": toy.squares_per_dimension,
        }
        for number, W in enumerate(toy.W)
    ]


def _recovered(workspace: Workspace, toy: ToyModel, kind: str) -> list[dict[str, Cell]]:
    """The cosine of every feature with the nearest direction of a dictionary that has twice as many."""
    settings = toy.settings

    def work() -> list[float]:
        rows, n = ToyRows(toy, workspace.seed), 2 * settings.n_features
        training = {"batch_size": 512, "learning_rate": 0.01, "device": workspace.device}
        training["n_rows"] = 500_000 if workspace.quick else 4_000_000
        made = fit(rows, n, kind, workspace.seed, progress=None, **_KINDS[kind], **training)
        return (normalize(toy.W, dim=1) @ made.W_dec.T).amax(dim=1).tolist()

    cosines = workspace.step(f"{kind}-{_key(settings)}", work)
    states = zip(toy.stored.tolist(), toy.recoverable.tolist(), toy.nearest.tolist(), cosines, strict=True)
    names = ("active", "feature", "stored", "recoverable", "nearest", "cosine")
    return [dict(zip(names, (settings.probability, number, *own), strict=True)) for number, own in enumerate(states)]


def _vectors(numbers: Numbers, p: float) -> np.ndarray:
    return np.array([column(numbers["features"], axis, where="plane", active=p) for axis in "xy"]).T


def _geometry(numbers: Numbers) -> list[Claim]:
    """What five features in a plane look like, by their sparsity."""
    dense, pairs, pentagon = (_vectors(numbers, p) for p in _PLANE)
    norms, others = np.linalg.norm(dense, axis=1), np.linalg.norm(pairs, axis=1)
    cosine = float(dense[0] @ dense[1] / (norms[0] * norms[1]))
    four = pairs[:4] / others[:4, None]
    gaps = np.sort(np.degrees(np.arctan2(*pentagon.T[::-1])) % 360)
    gaps = np.diff([*gaps, gaps[0] + 360])
    return [
        claim_if(
            min(norms[:2]) > 0.9 and max(norms[2:]) < STORED and abs(cosine) < 0.1,
            "five features in a plane, always active",
            "the two most important features, orthogonal, as in a principal component analysis",
            f"norms {', '.join(f'{norm:.2f}' for norm in norms)}; cosine of the first two {cosine:.2f}",
            "A dense model stores the most important features and nothing else.",
            "Other features are stored, or these two are not orthogonal.",
        ),
        claim_if(
            min(others[:4]) > 0.9
            and others[4] < STORED
            and np.abs(np.sort((four @ four.T), axis=1)[:, 0] + 1).max() < 0.02,
            "the same, active in 20 % of rows",
            "the four most important features as two antipodal pairs",
            f"norms {', '.join(f'{norm:.2f}' for norm in others)}; opposite features have cosine "
            f"{(four @ four.T).min(axis=1).max():.3f} or less",
            "Two features that are seldom active together share a dimension.",
            "Other features are stored, or they are not opposite each other.",
        ),
        claim_if(
            np.linalg.norm(pentagon, axis=1).min() > 0.9 and np.abs(gaps - 72).max() < 10,
            "the same, active in 10 % of rows",
            "all five features, as a pentagon",
            f"angles between neighbours {', '.join(f'{gap:.0f}°' for gap in gaps)}",
            "The angles differ from 72° a little because the features are not equally important.",
            "The five features form no pentagon.",
        ),
    ]


def _growth(numbers: Numbers) -> list[Claim]:
    first = [row for row in numbers["features"] if row["where"] == "uniform" and row["feature"] == 0]
    counts, active = (column(first, name) for name in ("squares per dimension", "active"))
    shares = ", ".join(f"{count:.2f} at {p:g}" for count, p in zip(counts, active, strict=True))
    return [
        claim_if(
            abs(counts[0] - 1) < 0.1 and np.all(np.diff(counts) > 0) and counts[-1] > 2,
            "‖W‖²/m, the source's number of features per dimension, by the probability that a feature is active",
            "1 for dense features, 2 for antipodal pairs, more the sparser the features are",
            shares,
            "Sparse features interfere less, so more of them fit. Norms above 1 make it larger than the number itself.",
            "The number does not grow from 1 to more than 2.",
        )
    ]


def _recovery(numbers: Numbers) -> list[Claim]:
    """Whether every feature is recovered that must be, and how many of the others are."""
    claims = []
    for kind in _KINDS:
        cosines = column(numbers["recovered"], "cosine", kind=kind, recoverable=True)
        least, n_right = min(cosines, default=float("nan")), sum(cosine >= RECOVERED for cosine in cosines)
        claims.append(
            claim_if(
                bool(cosines) and n_right == len(cosines),
                f"{kind}: features that sparsity determines are recovered",
                f"all, with a cosine of at least {RECOVERED}",
                f"{n_right} of {len(cosines)}; the smallest cosine is {least:.4f}",
                "Determined: stored, alone in at least half of the rows in which the feature is active, and no other "
                "stored feature on nearly the same ray (after Hillar & Sommer, 2015).",
                "Some feature that sparsity determines is not recovered.",
            )
        )
    others = column(numbers["recovered"], "cosine", stored=True, recoverable=False)
    n_right = sum(cosine >= RECOVERED for cosine in others)
    ours = f"{n_right} of {len(others)} with a cosine of at least {RECOVERED}; the mean is {np.mean(others):.2f}"
    why = "They are too often active together, so the criterion does not say that they are recovered."
    return [*claims, Claim("stored features that the criterion leaves out", "", ours, "new", why)]


def _plane(numbers: Numbers) -> "Figure":
    drawn = figure(7.5, 2.8)
    for number, p in enumerate(_PLANE, start=1):
        axes = drawn.add_subplot(1, len(_PLANE), number)
        for feature, (x, y) in enumerate(_vectors(numbers, p)):
            axes.plot([0, x], [0, y], "-o", color=COLOURS[feature], markevery=[1], label=f"feature {feature + 1}")
        axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", title=f"active in {p:.0%} of rows")
        axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        quiet(axes)
    drawn.legend(*drawn.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return drawn


def _dimensions(numbers: Numbers) -> "Figure":
    drawn = figure(7.5, 3.2)
    left, right = (quiet(drawn.add_subplot(1, 2, number)) for number in (1, 2))
    rows = [row for row in numbers["features"] if row["where"] == "uniform"]
    first = [row for row in rows if row["feature"] == 0]
    left.plot(column(first, "active"), column(first, "squares per dimension"), "o-", color=COLOURS[0])
    left.set(xscale="log", xlabel="probability that a feature is active", ylabel="‖W‖² per dimension")
    right.plot(column(rows, "active"), column(rows, "dimensionality"), "o", color=COLOURS[0], alpha=0.3, ms=4)
    for shape, share in _REGULAR.items():
        right.axhline(share, color=COLOURS[7], lw=0.8, zorder=0)
        right.annotate(shape, (1, share), xycoords=("axes fraction", "data"), ha="right", va="bottom", size=7)
    right.set(xscale="log", xlabel="probability that a feature is active", ylabel="share of a dimension per feature")
    for axes in (left, right):
        axes.invert_xaxis()
    return drawn


def _cosines(numbers: Numbers) -> "Figure":
    """The cosine of every stored feature, by where and how sparse; filled where it must be recovered."""
    drawn = figure(7.5, 3.4)
    places = [*dict.fromkeys((row["where"], row["active"]) for row in numbers["recovered"])]
    every = drawn.subplots(1, len(_KINDS), sharey=True)
    for axes, kind in zip(every, _KINDS, strict=True):
        quiet(axes)
        for recoverable, face in ((True, COLOURS[0]), (False, "none")):
            rows = [row for row in numbers["recovered"] if (row["kind"], row["stored"]) == (kind, True)]
            shown = [row for row in rows if row["recoverable"] == recoverable]
            points = [(places.index((row["where"], row["active"])), row["cosine"]) for row in shown]
            label = "determined by sparsity" if recoverable else "stored, not determined"
            axes.plot(*np.array(points).reshape(-1, 2).T, "o", mec=COLOURS[0], mfc=face, alpha=0.6, ms=5, label=label)
        axes.axhline(RECOVERED, color=COLOURS[1], lw=1, label=f"{RECOVERED:g}")
        names = [f"{where} {p:g}" for where, p in places]
        axes.set_xticks(range(len(places)), names, rotation=60, ha="right", rotation_mode="anchor")
        axes.set(title=kind)
    every[0].set(ylabel="cosine with the nearest direction", ylim=(None, 1.06))
    every[0].legend(frameon=False, fontsize=7, loc="lower right")
    return drawn
