"""The page of an explanation or a comparison: one file that fetches nothing."""

from collections.abc import Mapping, Sequence
from inspect import getdoc
from typing import Any

import numpy as np

from heedful.evaluation.comparison import Comparison, notes_of
from heedful.explainers import methods
from heedful.explanation import Explanation
from heedful.render.causes import causes_view
from heedful.render.patches import patches_view, png_data_url
from heedful.render.templating import fill_template
from heedful.render.text_strip import map_axes, model_passes, pieces, special_token_scores, visible, widest_interval
from heedful.render.views.bars import bars_view
from heedful.render.views.masked_copies import copies_view

_MAP_TOKENS = 64
_LONG = 400
"""A text of more characters is shown for one method at a time."""


def notebook_fragment(explanations: Sequence[Explanation]) -> str:
    """The text as each method sees it, for a notebook cell: style and words, no script."""
    return fill_template("fragment.html", {"view": _strips(explanations), "level": 3})


def comparison_page(result: Explanation | Comparison) -> str:
    """The whole report of an explanation or a comparison."""
    return comparisons_page({"": result})


def comparisons_page(results: Mapping[str, Explanation | Comparison], title: str = "") -> str:
    """Several results on one page, each under its heading; without a title, the title is the first text."""
    views = [_view(heading, result) for heading, result in results.items()]
    return fill_template("comparison.html", {"title": title or views[0]["text"], "views": views})


def _view(heading: str, result: Explanation | Comparison) -> dict[str, Any]:
    comparison = Comparison((result,), {}, None) if isinstance(result, Explanation) else result
    explanations, picture = comparison.explanations, comparison.document.picture
    alone = result if isinstance(result, Explanation) and picture is None else None
    several = len(explanations) > 1 and len(explanations[0].scores) > 1
    return {
        **_strips(explanations),
        "heading": heading,
        "text": comparison.document.text,
        "picture": None if picture is None else png_data_url(picture.rgb),
        "explanations": explanations,
        "skipped": comparison.reasons,
        "special_tokens": list(dict.fromkeys(name for e in explanations for name in special_token_scores(e))),
        "summaries": {e.method: method_summary(e.method) for e in explanations},
        "agreement": _agreement(comparison) if several else None,
        "causes": None if comparison.causes is None else causes_view(comparison.causes),
        "bars": None if alone is None or len(alone.scores) < 2 else bars_view(alone),
        "copies": None if alone is None else copies_view(alone),
        "maps": None if comparison.maps is None else _head_maps(comparison, comparison.maps),
    }


def method_summary(name: str) -> str:
    """The first line of a method's docstring; empty for a name that is not in the catalogue."""
    explainer = methods().get(name)
    return (getdoc(explainer) or "").partition("\n")[0] if explainer else ""


def _strips(explanations: Sequence[Explanation]) -> dict[str, Any]:
    return {
        "first": explanations[0],
        "long": explanations[0].document.picture is None and len(explanations[0].document.text) > _LONG,
        "note_sentences": notes_of(explanations),
        "strips": [_strip(explanation) for explanation in explanations],
    }


def _strip(explanation: Explanation) -> dict[str, Any]:
    seconds = explanation.facts.get("seconds")
    drawn = explanation.document.picture is not None
    return {
        "method": explanation.method,
        "signed": explanation.signed,
        "interval": widest_interval(explanation),
        "passes": model_passes(explanation),
        "milliseconds": "" if seconds is None else f"{1000 * seconds:.1f}",
        "drawing": patches_view(explanation) if drawn else None,
        "pieces": [] if drawn else pieces(explanation),
    }


def _agreement(comparison: Comparison) -> list[tuple[str, list[tuple[float | None, str]]]]:
    """A row per method: its rank correlation with every method, and the share of strongest units in common."""
    tables = zip(comparison.agreement().tolist(), comparison.overlap().tolist(), strict=True)
    return [
        (
            explanation.method,
            [
                (
                    None if np.isnan(value) else value,
                    "" if np.isnan(share) else f"{share:.0%} of the strongest in common",
                )
                for value, share in zip(values, shares, strict=True)
            ],
        )
        for explanation, (values, shares) in zip(comparison.explanations, tables, strict=True)
    ]


def _head_maps(comparison: Comparison, maps: np.ndarray) -> dict[str, Any]:
    """Figure 3: A^(i) of the last layer over the first tokens; the page's script paints the numbers."""
    axes = map_axes(comparison.document, maps)
    queries, keys = ([visible(token) for token in axis[:_MAP_TOKENS]] for axis in axes)
    values = np.round(maps[-1, :, : len(queries), : len(keys)], 4).tolist()
    return {
        "n_layers": len(maps),
        "shortened": len(keys) < len(axes[1]),
        "data": {"queries": queries, "keys": keys, "heads": values},
    }
