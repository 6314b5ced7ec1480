"""Which text of every pair is more probable, in the terminal and as a figure."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from heedful.generation.bias import PairBias
from heedful.render.chart import INK, RULE, inline_svg, page_axes
from heedful.render.templating import fill_template
from heedful.render.text_strip import short_title

_LETTERS, _NAMED = 60, 60
"""The most letters of a pair, and the most pairs whose texts a figure names."""
_FIRST, _SECOND = "#2a7f62", "#c2571a"


def draw_bias(result: PairBias) -> Any:
    """A bar for every pair, the largest difference first, with its texts if there are at most 60 pairs.

    The band is the 95 % interval of the mean.
    """
    rows = result.as_rows()
    values, names = [float(row["difference"]) for row in rows], [_pair(row) for row in rows]
    if len(rows) > _NAMED:
        names = [""] * len(rows)
    left, height = 0.066 * max(map(len, names)) + 0.2, 0.22 * min(len(rows), _NAMED)
    axes = page_axes(left + 3.6, height + 0.9, (left, 0.1, 0.1, 0.8))
    axes.barh(range(len(rows)), values, color=[_FIRST if value > 0 else _SECOND for value in values], height=0.6)
    mean = result.mean
    if mean.low == mean.low:
        axes.axvspan(mean.low, mean.high, color=RULE, alpha=0.15, linewidth=0, zorder=0)
    axes.axvline(mean.value, color=INK, linewidth=1, linestyle="--")
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.set_yticks(range(len(rows)), names, parse_math=False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    # In one line the summary is wider than the axes, and a page cuts it off.
    summary = _summary(result).replace("; ", "\n")
    axes.set_xlabel(f"difference in {result.measure}, nats\n{summary}", color=INK, size=8)
    return axes.figure


def bias_page(result: PairBias, skeleton: str = "base.html") -> str:
    """The figure, what it shows, and every number."""
    chart = inline_svg(draw_bias(result), "difference of every pair")
    return fill_template(
        "pairs.html", {"skeleton": skeleton, "result": result, "summary": _summary(result), "chart": chart}
    )


def print_bias(result: PairBias, console: Console) -> None:
    """Prints the mean, the share preferred, and a line for every pair."""
    console.print(_summary(result), markup=False, highlight=False)
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("pair")
    table.add_column("difference", justify="right")
    for row in result.as_rows():
        table.add_row(_pair(row).replace("[", r"\["), f"{row['difference']:+.3f}")
    console.print(table)


def _summary(result: PairBias) -> str:
    n, share = len(result.firsts), result.share
    return f"mean {result.mean:+.3g} nats; first text preferred in a share of {share:.2f} of {n} pair{'s' * (n > 1)}"


def _pair(row: dict[str, str | float]) -> str:
    """Both texts in one line: what differs, with what both share once."""
    first, second = str(row["first"]).split(), str(row["second"]).split()
    start = _n_shared(first, second)
    end = _n_shared(first[start:][::-1], second[start:][::-1])
    ends = [" ".join(words[start : len(words) - end]) or "–" for words in (first, second)]
    return short_title(" ".join([*first[:start], "/".join(ends), *first[len(first) - end :]]), _LETTERS)


def _n_shared(first: list[str], second: list[str]) -> int:
    """With how many words both begin."""
    return next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
