"""The parts of a model of several layers, from one forward pass: Figure 2 for models other than the single layer."""

from itertools import pairwise
from typing import TYPE_CHECKING

from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure
from heedful.experiments.workspace import Workspace
from heedful.models.recording import record
from heedful.target import resolve_target

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_A_ROW = 4


def layered_parts(workspace: Workspace, text: str) -> Numbers:
    """The tables parts, sizes and output: embeddings, every attention call, and the output for one text."""
    model = workspace.model
    document = model.encode(workspace.text or text)
    recording = record(model, [document])
    logits = recording.logits[0].double().cpu().numpy()
    target = resolve_target(workspace.target, None, model.target_names(document), logits, returns=model.returns)
    n, d_e = model.embed([document]).shape[1:]
    parts: list[dict[str, Cell]] = [{"what": "text", "shape": f"{len(document.ids)} tokens"}]
    parts.append({"what": "embeddings e", "shape": f"{n} × {d_e}"})
    for number, call in enumerate(recording.calls, start=1):
        heads, queries, keys = call.maps().shape[1:]
        kind = "cross-attention" if call.kind == "cross" else "attention"
        shape = f"{heads} heads, each {queries} × {keys}\nd_att {call.q.shape[-1]}, d_out {call.v.shape[-1]}"
        parts.append({"what": f"layer {number}, {kind}", "shape": shape})
    f = float(target.of(logits[None])[0])
    parts.append({"what": "f", "shape": f"read from {model.reads or 'its last layer'}\n{target.name}: {f:+.3f}"})
    weights = sum(weight.numel() for weight in model.network.parameters())
    heads = recording.calls[0].q.shape[1]
    sizes = {"layers": len(recording.calls), "heads": heads, "d_e": d_e, "weights": weights}
    return {"parts": parts, "sizes": [dict(sizes)], "output": [{"f": f}]}


def layered_claims(numbers: Numbers) -> list[Claim]:
    """The sizes, and what cannot be compared with the paper."""
    (sizes,) = numbers["sizes"]
    ours = ", ".join(f"{size:,} {name}" for name, size in sizes.items())
    alone = "Eq. (1) is about the single layer; here layers follow each other, so f is no mean of heads."
    return [
        Claim("sizes of the model", "", ours, "new", "Recorded in one forward pass."),
        Claim("f is the mean of its heads' outputs", "Eq. (1)", "", "not measured", alone),
    ]


def draw_layers(numbers: Numbers) -> "Figure":
    """Boxes in reading order with their shapes, four a row."""
    parts = numbers["parts"]
    n_rows = -(-len(parts) // _A_ROW)
    drawn = figure(9.5, 1.1 * n_rows + 0.4)
    axes = drawn.add_subplot()
    axes.set(xlim=(-0.55, _A_ROW - 0.45), ylim=(n_rows - 0.45, -0.6))
    axes.axis("off")
    edge = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": COLOURS[0]}
    places = [(number % _A_ROW, number // _A_ROW) for number in range(len(parts))]
    for start, end in pairwise(places):
        axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "gray", "shrinkA": 2, "shrinkB": 50})
    for place, part in zip(places, parts, strict=True):
        axes.text(*place, f"{part['what']}\n{part['shape']}", ha="center", va="center", size=7, bbox=edge)
    (f,), (sizes,) = column(numbers["output"], "f"), numbers["sizes"]
    axes.text(-0.5, -0.55, f"{sizes['weights']:,} weights; f = {f:+.3f}", size=8, color="gray")
    return drawn
