"""A self-contained page: nothing is fetched, everything is escaped, light and dark."""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from inspect import getdoc

import numpy as np

from heedful.evaluation.comparison import Comparison, notes_of
from heedful.explainers import methods
from heedful.explanation import Explanation
from heedful.render.causes import section
from heedful.render.patches import data_link, tinted_svg
from heedful.render.text_strip import Piece, apart, axes_of, cost, interval, pieces, visible

_MAP_TOKENS = 64


def fragment(explanations: Sequence[Explanation]) -> str:
    """Strips for a notebook cell: style and words, no script."""
    return f'<style>{_asset("page.css")}</style><div class="heedful">{_head(explanations)}{_strips(explanations)}</div>'


def page(result: Explanation | Comparison) -> str:
    """The whole report of an explanation or a comparison."""
    if isinstance(result, Explanation):
        return page(Comparison((result,), {}, None))
    explanations = result.explanations
    title = escape(visible(result.document.text[:60]))
    picture = result.document.picture
    parts = [
        f'<h1 dir="auto">{escape(visible(result.document.text[:300]))}</h1>',
        ""
        if picture is None
        else f'<img src="{data_link(picture.rgb)}" width="176" alt="the picture that is explained">',
        _head(explanations),
        "<h2>Every method on the same words</h2>" if picture is None else "<h2>Every method on the same picture</h2>",
        _strips(explanations),
        _skipped(result),
        "<h2>Scores</h2>",
        _scores(explanations),
        "<h2>Methods and settings</h2>",
        _settings(explanations),
    ]
    if len(explanations) > 1 and len(explanations[0].scores) > 1:
        parts += ["<h2>Agreement</h2>", _agreement(result)]
    if result.causes is not None:
        parts += ["<h2>Why they differ</h2>", section(result.causes)]
    if result.maps is not None:
        parts += ["<h2>Attention of each head</h2>", _head_maps(result)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>heedful: {title}</title><style>{_asset('page.css')}</style></head>"
        f'<body class="heedful">{"".join(parts)}<script>{_asset("page.js")}</script></body></html>\n'
    )


def _asset(name: str) -> str:
    return (files("heedful.render") / name).read_text(encoding="utf-8")


def _head(explanations: Sequence[Explanation]) -> str:
    first = explanations[0]
    notes = "".join(f'<p class="note">{escape(visible(note))}</p>' for note in notes_of(explanations))
    return (
        f"<p>What is explained: f(x) = <b>{first.output:+.4f}</b>, <b>{escape(visible(str(first.target)))}</b>; "
        f"model <code>{escape(first.model)}</code>.</p>{notes}"
    )


def _strips(explanations: Sequence[Explanation]) -> str:
    rows = []
    for explanation in explanations:
        seconds = explanation.facts.get("seconds")
        rows.append(
            f"<tr><th scope=row>{escape(explanation.method)}</th><td>{'yes' if explanation.signed else 'no'}</td>"
            f"<td>{interval(explanation)}</td><td>{cost(explanation)}</td>"
            f"<td class=number>{'' if seconds is None else f'{1000 * seconds:.1f}'}</td>"
            f'<td class="strip" dir="auto">{_drawn(explanation)}</td></tr>'
        )
    return (
        '<div class="wide"><table><thead><tr><th>method<th>signed<th>95 %<th>spent<th>ms<th>text</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        '<p class="legend"><span class="w pos" style="--s:.8">for</span> and '
        '<span class="w neg" style="--s:.8">against</span> the target; the stronger the colour, the stronger the '
        "word, each method on its own scale. An unsigned method cannot say which side a word is on. "
        "Point at a word for its score.</p>"
        '<p class="legend"><b>signed</b>: can the method say "against"? <b>95 %</b>: the widest half-width of its '
        "intervals; <i>exact</i> means that nothing was sampled, not that it is faithful; — that the method has no "
        "error to give. <b>spent</b>: forward and backward passes, and thinned texts (masks), each a forward pass but "
        "on models that pool by attention. "
        "<b>ms</b>: as if the method ran alone; the first one also pays for warming up.</p>"
    )


def _drawn(explanation: Explanation) -> str:
    if explanation.document.picture is not None:
        return tinted_svg(explanation)
    return "".join(_tinted(piece) for piece in pieces(explanation))


def _tinted(piece: Piece) -> str:
    if piece.strength is None or piece.score is None:
        return escape(piece.text)
    side = "neg" if piece.strength < 0 else "pos"
    error = "" if piece.error is None else f" ± {piece.error:.2g}"
    title = escape(f"{piece.score:+.4g}{error}")
    return f'<bdi class="w {side}" style="--s:{abs(piece.strength):.3f}" title="{title}">{escape(piece.text)}</bdi>'


def _skipped(comparison: Comparison) -> str:
    items = "".join(
        f"<li>{escape(', '.join(names))}: {escape(reason)}</li>" for reason, names in comparison.reasons.items()
    )
    return f"<p>Not shown:</p><ul>{items}</ul>" if items else ""


def _scores(explanations: Sequence[Explanation]) -> str:
    first = explanations[0]
    head = "".join(f'<th><button type="button">{escape(e.method)}</button>' for e in explanations)
    rows = []
    for index, unit in enumerate(first.units):
        cells = "".join(
            f'<td class=number data-v="{float(e.scores[index])!r}">{_score(e, index)}' for e in explanations
        )
        rows.append(
            f'<tr><td data-v="{index}">{index + 1}<td dir="auto"><bdi>{escape(visible(unit))}</bdi>{cells}</tr>'
        )
    below = []
    for name in dict.fromkeys(name for e in explanations for name in apart(e)):
        cells = "".join(f"<td class=number>{f'{e.facts[name]:+.4g}' if name in e.facts else ''}" for e in explanations)
        below.append(f"<tr><td><td><i>{escape(visible(name))}</i>{cells}</tr>")
    return (
        "<p>Click a heading to sort. Special tokens and padding are no words; what they received, summed, is below.</p>"
        '<div class="wide"><table class="sortable"><thead><tr><th><button type="button">#</button>'
        f"<th>{escape(first.unit)}{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        f"<tfoot>{''.join(below)}</tfoot></table></div>"
    )


def _score(explanation: Explanation, index: int) -> str:
    error = None if explanation.error is None else float(explanation.error[index])
    width = f" <small>± {error:.2g}</small>" if error else ""
    return f"{explanation.scores[index]:+.4g}{width}"


def _settings(explanations: Sequence[Explanation]) -> str:
    rows = []
    for explanation in explanations:
        settings = ", ".join(f"{name}={value}" for name, value in explanation.settings.items())
        facts = ", ".join(f"{name} {value:.4g}" for name, value in explanation.facts.items() if name != "seconds")
        known = methods().get(explanation.method)
        about = (getdoc(known) or "").splitlines()[0] if known else ""
        cells = "".join(f"<td>{escape(text)}" for text in (about, settings, facts))
        rows.append(f"<tr><th scope=row>{escape(explanation.method)}{cells}</tr>")
    return (
        '<div class="wide"><table class="loose"><thead><tr><th>method<th>what it is<th>settings<th>facts</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _agreement(comparison: Comparison) -> str:
    names = [escape(explanation.method) for explanation in comparison.explanations]
    rows = []
    for name, row, shares in zip(names, comparison.agreement(), comparison.overlap(), strict=True):
        cells = "".join(
            "<td class=number>—"
            if np.isnan(value)
            else f'<td class="number w {"neg" if value < 0 else "pos"}" style="--s:{abs(value):.3f}" '
            f'title="{share:.0%} of the five strongest in common">{value:+.2f}'
            for value, share in zip(row, shares, strict=True)
        )
        rows.append(f"<tr><th scope=row>{name}{cells}</tr>")
    head = "".join(f"<th><span>{name}</span>" for name in names)
    return (
        "<p>Spearman's rank correlation of the scores, of their absolute values where either method is unsigned. "
        "It describes; it does not judge: two methods can agree and both be wrong (Neely et al., 2021).</p>"
        f'<div class="wide"><table class="matrix"><thead><tr><th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></div>"
    )


def _head_maps(comparison: Comparison) -> str:
    """Figure 3: A^(i) of the last layer over the first tokens; the page's script paints them from the numbers."""
    assert comparison.maps is not None
    maps = comparison.maps
    sides = axes_of(comparison.document, maps)
    looking, seen = ([visible(piece) for piece in side[:_MAP_TOKENS]] for side in sides)
    values = np.round(maps[-1, :, : len(looking), : len(seen)], 4).tolist()
    data = json.dumps({"looking": looking, "seen": seen, "heads": values})
    data = data.replace("<", "\\u003c").replace("&", "\\u0026")
    n_layers = len(maps)
    more = "" if len(seen) == len(sides[1]) else f" The first {len(seen)} tokens are shown."
    what = (
        "The first row, [cls], is the only one the prediction uses (Figure 3 of the paper). Rows sum to one together "
        "with the padding, which the model attends to and which is not drawn."
        if n_layers == 1
        else f"This is the last of {n_layers} layers; `heedful heads` draws all."
    )
    return (
        "<p>One head a matrix: row = the token that looks, column = the token looked at, strong = much attention. "
        f"{what}{more}</p>"
        f'<div id="maps"></div><p id="cell" class="legend">&nbsp;</p>'
        f'<script type="application/json" id="attention">{data}</script>'
    )
