"""Pictures of decoding: the most likely tokens of every step with the kept set shaded, and the tree of a beam."""

from typing import TYPE_CHECKING

from heedful.generation.generation import Generation
from heedful.generation.step import BeamNode, Step
from heedful.render.chart import INK, PAPER, RULE, new_figure, page_axes
from heedful.render.text_strip import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS_SHOWN = 40
"""The steps of a picture; the first ones, if there are more."""
_GREEN, _ORANGE, _GREY = "#009e73", "#d55e00", "#9a9a9a"
_COLUMNS, _WIDTH, _ROW = 4, 2.9, 0.17
_ACROSS, _DOWN = 1.05, 0.27
_ROWS_SHOWN = 24
_NAME = 11
_FILE = {"text": "black", "rule": "#cccccc", "paper": "white"}
_PAGE = {"text": INK, "rule": RULE, "paper": PAPER}


def token_name(token: str, longest: int = _NAME) -> str:
    """A token as pictures show it: ␣ is a space, ↵ a line break."""
    name = visible(token).replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥") or "∅"
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def draw_decoding(generation: Generation) -> "Figure":
    """The picture of a file: the tree of a beam search, or the bars of every step."""
    if generation.tree is not None:
        return draw_tree(generation, for_page=False)
    steps = generation.steps[:STEPS_SHOWN]
    n_rows = -(-len(steps) // _COLUMNS)
    height = 0.62 + _ROW * max(len(step.alternatives) for step in steps)
    whole = (_WIDTH * min(_COLUMNS, len(steps)), height * n_rows + 0.35)
    figure = new_figure(*whole)
    for number, step in enumerate(steps):
        row, column = divmod(number, _COLUMNS)
        left, bottom = _WIDTH * column + 1.0, whole[1] - height * (row + 1) + 0.12
        axes = figure.add_axes(
            (left / whole[0], bottom / whole[1], (_WIDTH - 1.55) / whole[0], (height - 0.45) / whole[1])
        )
        _draw_bars(axes, step, _FILE)
        axes.set_title(f"{number + 1}. {token_name(step.token)}: {_kept(step)}", size=8, loc="left", x=-0.65)
    more = f" The first {STEPS_SHOWN} of {len(generation.steps)} steps." if len(steps) < len(generation.steps) else ""
    figure.text(0.08 / whole[0], 0.1 / whole[1], f"{steps_legend(generation)}{more}", size=8, color="dimgray")
    return figure


def draw_step(step: Step) -> "Figure":
    """The bars of one step, for a page."""
    height = 0.15 + _ROW * len(step.alternatives)
    axes = page_axes(_WIDTH, height, (1.0, 0.55, 0.05, 0.1))
    _draw_bars(axes, step, _PAGE)
    return axes.figure  # type: ignore[return-value]


def steps_legend(generation: Generation) -> str:
    """What the bars mean."""
    if generation.strategy == "beam":
        return "Bar: probability by the model. Shaded: the tokens by which the search went on from here or ended."
    drawn = "" if generation.strategy == "greedy" else " Tick: probability in the law that was drawn from."
    return f"Bar: probability by the model. Shaded: the kept set.{drawn} Bold: the token that was written."


def _kept(step: Step) -> str:
    if step.forced:
        return "demanded by the model's settings"
    return f"1 kept, p = {step.mass:.2f}" if step.n_kept == 1 else f"{step.n_kept:,} kept, mass {step.mass:.2f}"


def _draw_bars(axes: "Axes", step: Step, colours: dict[str, str]) -> None:
    """A bar for every alternative: green if kept, grey if not; the law as a tick."""
    for row, token in enumerate(step.alternatives):
        if token.kept:
            axes.axhspan(row - 0.5, row + 0.5, color=_GREEN, alpha=0.14, linewidth=0)
        axes.barh(row, token.probability, height=0.66, color=_GREEN if token.kept else _GREY)
        if token.law and abs(token.law - token.probability) > _SEEN:
            axes.plot([token.law] * 2, [row - 0.4, row + 0.4], color=colours["text"], linewidth=1.4, clip_on=False)
        axes.text(1.04, row, f"{token.probability:.3f}", va="center", size=7, color=colours["text"])
    names = [token_name(token.token) for token in step.alternatives]
    axes.set_yticks(range(len(names)), names, size=8, color=colours["text"], parse_math=False)
    chosen = [token.id for token in step.alternatives].index(step.id)
    axes.get_yticklabels()[chosen].set_fontweight("bold")
    axes.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6), xticks=[])
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    axes.axvline(0, color=colours["rule"], linewidth=1)


_SEEN = 0.004


def draw_tree(generation: Generation, for_page: bool) -> "Figure":
    """The tree of a beam search: a column for every token, the most likely continuation on top.

    Green: the text that was written. Black: went on. Boxed: ended. Grey: pruned.
    """
    tree, colours = generation.tree or (), _PAGE if for_page else _FILE
    place = _places(tree)
    depth, n_rows = max(x for x, _ in place.values()), max(y for _, y in place.values()) + 1
    width, height = _ACROSS * (depth + 1.4), _DOWN * (n_rows + 1.5) + 0.2
    figure = new_figure(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.patch.set_visible(False)
    axes.set(xlim=(-0.5, depth + 0.9), ylim=(n_rows + 0.9, -1.1))
    axes.axis("off")
    axes.text(-0.08, 0, "prompt", size=8, va="center", ha="right", color=colours["text"])
    for number, (x, y) in place.items():
        node = tree[number]
        colour = _GREEN if node.written else _GREY if node.fate == "pruned" else colours["text"]
        x_parent, y_parent = place.get(node.parent, (0, 0))
        start = x_parent + 0.15 + (_letter_widths(tree[node.parent]) if node.parent >= 0 else 0)
        style = {"color": colour, "linewidth": 1.8 if node.written else 0.6, "alpha": 1.0 if node.written else 0.6}
        axes.plot([start, x + 0.06], [y_parent, y], zorder=2 if node.written else 1, **style)
        _write_name(axes, node, (x + 0.1, float(y)), colour, colours["paper"])
    for x in range(1, depth + 1):
        best = next(tree[number] for number, at in place.items() if at == (x, 0))
        axes.text(x + 0.1, -0.8, f"{best.total:.2f}", size=7, va="center", color=colours["text"], alpha=0.7)
    if not for_page:
        axes.text(-0.45, n_rows + 0.4, tree_legend(generation), size=8, va="center", color=colours["text"])
    return figure


def _write_name(axes: "Axes", node: BeamNode, at: tuple[float, float], colour: str, paper: str) -> None:
    """The name of a node, bold if it was written, in a box if it ended."""
    box = {"boxstyle": "round,pad=0.15", "facecolor": paper, "edgecolor": colour, "linewidth": 0.9}
    axes.text(
        *at,
        token_name(node.token, 9),
        size=8,
        va="center",
        color=colour,
        family="monospace",
        fontweight="bold" if node.written else "normal",
        bbox=box if node.fate == "finished" else None,
        parse_math=False,
        zorder=3,
    )


def tree_legend(generation: Generation) -> str:
    """What the tree shows, and how much of it."""
    tree = generation.tree or ()
    counts = {fate: sum(node.fate == fate for node in tree) for fate in ("kept", "finished", "pruned")}
    hidden = len(tree) - len(_places(tree))
    left_out = f" {hidden:,} of them are not drawn." if hidden else ""
    return (
        f"{len(tree):,} continuations: {counts['kept']:,} went on, {counts['finished']:,} ended (boxed), "
        f"{counts['pruned']:,} were pruned (grey).{left_out} Green: written. On top: the best log-probability."
    )


def _places(tree: tuple[BeamNode, ...]) -> dict[int, tuple[int, int]]:
    """Column and row of the nodes that are drawn: the first steps, and the best of each."""
    rows: dict[int, int] = {}
    places: dict[int, tuple[int, int]] = {}
    for number, node in enumerate(tree):
        row = rows.get(node.depth, 0)
        rows[node.depth] = row + 1
        if node.depth <= STEPS_SHOWN and (row < _ROWS_SHOWN or node.written):
            places[number] = (node.depth, row)
    return places


def _letter_widths(node: BeamNode) -> float:
    """How far the name of a node reaches, in columns."""
    return 0.068 * len(token_name(node.token, 9)) / _ACROSS
