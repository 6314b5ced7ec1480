"""Figure 2: the architecture, drawn from the model itself, with its sizes and its values for one text."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from einops import einsum

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure
from heedful.experiments.paper.layered_model import draw_layers, layered_claims, layered_parts
from heedful.experiments.reviews import FIGURE_1
from heedful.experiments.workspace import Workspace
from heedful.models.question import ask

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure, Text

_APPENDIX_F = {"T_max": 256, "d_e": 128, "d_att": 64, "d_out": 64}
_PLACES = {
    "x": (-0.1, 2.0),
    "e": (1.6, 2.0),
    "q": (3.4, 3.7),
    "k": (3.4, 2.0),
    "v": (3.4, 0.3),
    "alpha": (4.9, 2.8),
    "v_tilde": (6.4, 1.6),
    "f_i": (8.1, 1.6),
    "f": (9.8, 1.6),
}
_SYMBOLS = {"alpha": "α", "v_tilde": "ṽ", "f_i": "$f_i$"}
_PATHS = (
    ("x", "e"),
    ("e", "q"),
    ("e", "k"),
    ("e", "v"),
    ("q", "alpha"),
    ("k", "alpha"),
    ("alpha", "v_tilde"),
    ("v", "v_tilde"),
    ("v_tilde", "f_i"),
    ("f_i", "f"),
)


@final
@dataclass(frozen=True)
class Figure2(Experiment):
    """Every quantity between the text and f: its equation, shape and weights."""

    name: ClassVar[str] = "figure-2"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "The architecture, from the model itself"
    source: ClassVar[str] = "paper and talk, Figure 2; Eqs. (1) to (9); Appendix F"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables parts, paths, heads, sizes, output; of another kind of model parts, sizes and output."""
        return _measured(workspace) if workspace.is_single_layer else layered_parts(workspace, FIGURE_1)

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        if "paths" not in numbers:
            return layered_claims(numbers)
        sizes = {str(row["name"]): row["size"] for row in numbers["sizes"]}
        same = all(sizes[name] == size for name, size in _APPENDIX_F.items())
        gap = abs(float(np.mean(column(numbers["heads"], "f_i"))) - column(numbers["output"], "f")[0])
        return [
            Claim(
                "sizes of the model",
                ", ".join(f"{name} {size}" for name, size in _APPENDIX_F.items()),
                ", ".join(f"{name} {sizes[name]}" for name in _APPENDIX_F) + f", {sizes['n_heads']} heads",
                "agrees" if same else "differs",
                "Read from the weights; Figure 3 also shows six heads."
                if same
                else "The model was trained with other sizes than Appendix F gives.",
            ),
            Claim(
                "f is the mean of its heads' outputs",
                "Eq. (1)",
                f"difference {gap:.1e}",
                "agrees" if gap < 1e-6 else "differs",
                "The heads were computed one by one with explicit keys and values, which the model itself "
                "does not compute.",
                general=True,
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure architecture."""
        if "paths" not in numbers:
            return {"architecture": draw_layers(numbers)}
        drawn = figure(9.5, 3.6)
        axes = drawn.add_subplot()
        axes.set(xlim=(-0.9, 10.6), ylim=(-0.6, 4.6))
        axes.axis("off")
        boxes = {str(row["symbol"]): _box(axes, row) for row in numbers["parts"]}
        for row in numbers["paths"]:
            start, end = str(row["from"]), str(row["to"])
            arrow = {"arrowstyle": "->", "color": "gray", "shrinkA": 2, "shrinkB": 2}
            arrow |= {"patchA": boxes[start].get_bbox_patch(), "patchB": boxes[end].get_bbox_patch()}
            axes.annotate("", _PLACES[end], _PLACES[start], arrowprops=arrow)
        outputs = column(numbers["heads"], "f_i")
        lines = [f"$f_{i}$ = {value:+.2f}" for i, value in enumerate(outputs, start=1)]
        axes.text(8.1, 0.9, "\n".join(lines), ha="center", va="top", size=7)
        axes.text(9.8, 0.9, f"f = {column(numbers['output'], 'f')[0]:+.3f}", ha="center", va="top", size=9)
        axes.text(5.0, 4.4, f"{len(outputs)} heads, each with its own W_q, W_k, W_v, W_ℓ", size=8, color="gray")
        return {"architecture": drawn}


def _measured(workspace: Workspace) -> Numbers:
    """The tables of the single layer, head by head."""
    model, net = workspace.single_layer, workspace.single_layer.network
    question = ask(model, [workspace.text or FIGURE_1], workspace.target)
    (document,), c = question.documents, question.targets[0].index
    with torch.no_grad():
        e = model.embed([document]).to(net.W_q.dtype)
        q = net.query(e)
        k = einsum(e, net.W_k, "batch token d_e, head d_att d_e -> batch head token d_att")
        v = einsum(e, net.W_v, "batch token d_e, head d_out d_e -> batch head token d_out") + net.b_v[:, None]
        score = einsum(q, k, "batch head d_att, batch head token d_att -> batch head token")
        alpha = torch.softmax(score / sqrt(net.config.d_att), dim=-1)
        v_tilde = einsum(alpha, v, "batch head token, batch head token d_out -> batch head d_out")
        f_i = einsum(v_tilde, net.W_l[:, c], "batch head d_out, head d_out -> batch head")
        f = net(e)[0, c]
    made = {
        "x": ("", "[cls], words, [unk]", (1, net.config.T_max), None),
        "e": ("(2)–(4)", "words + positions", tuple(e.shape), net.W_e),
        "q": ("(6)", "query of [cls]", tuple(q.shape), net.W_q),
        "k": ("(5)", "keys", tuple(k.shape), net.W_k),
        "v": ("(7)", "values", tuple(v.shape), net.W_v),
        "alpha": ("(8)", "attention", tuple(alpha.shape), None),
        "v_tilde": ("(9)", "weighted values", tuple(v_tilde.shape), None),
        "f_i": ("(1)", "one number per head", tuple(f_i.shape), net.W_l),
        "f": ("(1)", "mean over heads", (1,), None),
    }
    parts = [
        {
            "symbol": symbol,
            "equation": equation,
            "what": what,
            "shape": " × ".join(str(size) for size in (shape[1:] or shape)),
            "weights": 0 if weight is None else weight.numel(),
        }
        for symbol, (equation, what, shape, weight) in made.items()
    ]
    heads = [{"head": i + 1, "f_i": float(value)} for i, value in enumerate(f_i[0])]
    sizes = [{"name": name, "size": getattr(net.config, name)} for name in ("n_heads", *_APPENDIX_F)]
    paths = [{"from": start, "to": end} for start, end in _PATHS]
    return {"parts": parts, "paths": paths, "heads": heads, "sizes": sizes, "output": [{"f": float(f)}]}


def _box(axes: "Axes", row: Mapping[str, Cell]) -> "Text":
    symbol = str(row["symbol"])
    weights = f"\n{row['weights']:,} weights" if row["weights"] else ""
    label = f"{_SYMBOLS.get(symbol, symbol)}   {row['equation']}\n{row['what']}\n{row['shape']}{weights}"
    edge = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": COLOURS[0]}
    return axes.text(*_PLACES[symbol], label, ha="center", va="center", size=7, bbox=edge)
