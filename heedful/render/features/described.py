"""The page of described features: a table to search and sort, and a card for each, in one file that fetches nothing."""

import json
from math import isnan
from typing import Any

from jinja2.utils import htmlsafe_json_dumps

from heedful.features.reading.description import Description, Descriptions
from heedful.features.reading.excerpts import Excerpt
from heedful.features.reading.raised import Output
from heedful.features.reading.token_rules import TokenRule
from heedful.render.templating import fill_template
from heedful.render.text_strip import visible
from heedful.statistics.quantity import Quantity

BUDGET = 16_000_000
"""Characters of data on the page, if possible: features get fewer excerpts until they fit."""
_EXCERPTS = (100, 8, 5, 3, 2, 1)


def features_page(descriptions: Descriptions) -> str:
    """The whole page."""
    data, n_excerpts = "", 0
    for n_excerpts in _EXCERPTS:
        data = htmlsafe_json_dumps(_data(descriptions, n_excerpts), json.dumps, separators=(",", ":"))
        if len(data) <= BUDGET:
            break
    n_dropped = sum(max(0, len(item.excerpts) - n_excerpts) for item in descriptions)
    context = {
        "of": descriptions,
        "n_rules": sum(item.rule is not None for item in descriptions),
        "n_excerpts": n_excerpts if n_dropped else None,
        "megabytes": len(data) / 1e6,
        "data": data,
    }
    return fill_template("features.html", context)


def _data(descriptions: Descriptions, n_excerpts: int) -> dict[str, Any]:
    """What features.js reads. Windows of one text share its tokens."""
    texts: dict[int, dict[str, Any]] = {}
    features = [_feature(item, n_excerpts, texts) for item in descriptions]
    for text in texts.values():
        tokens = text["tokens"]
        text["tokens"] = [tokens.get(place, "") for place in range(max(tokens) + 1)]
    return {"features": features, "texts": texts}


def _feature(item: Description, n_excerpts: int, texts: dict[int, dict[str, Any]]) -> dict[str, Any]:
    rule = item.rule
    return {
        "feature": item.feature,
        "label": visible(item.label),
        "auroc": None if rule is None else _number(rule.auroc.value),
        "precision": None if rule is None else _number(rule.precision.value),
        "recall": None if rule is None else _number(rule.recall.value),
        **{name: _number(getattr(item, name)) for name in ("density", "mean", "largest")},
        "n_texts": item.n_texts,
        "n_tokens": item.n_tokens,
        "words": visible(item.words),
        "histogram": item.histogram.tolist(),
        "raised": [_output(output) for output in item.raised],
        "lowered": [_output(output) for output in item.lowered],
        "near": [[number, _number(cosine)] for number, cosine in item.neighbours],
        "rules": [_rule(own) for own in item.rules],
        "excerpts": [_excerpt(own, item.largest, texts) for own in item.excerpts[:n_excerpts]],
    }


def _number(value: float) -> float | None:
    return None if isnan(value) else float(f"{value:.4g}")


def _output(output: Output) -> list[Any]:
    return [visible(output.name), *(_number(number) for number in output[1:] if not isnan(number))]


def _rule(rule: TokenRule) -> list[Any]:
    ratios: tuple[Quantity, ...] = (rule.auroc, rule.precision, rule.recall)
    parts = [[_number(number) for number in ratio] for ratio in ratios]
    return [
        _number(rule.threshold),
        rule.aspect,
        [visible(value) for value in rule.values],
        *parts,
        _number(rule.density),
    ]


def _excerpt(excerpt: Excerpt, largest: float, texts: dict[int, dict[str, Any]]) -> list[Any]:
    """The text, the first token, the number of tokens, the peak, the quantile, and (token, per cent) where active."""
    own = texts.setdefault(excerpt.text, {"name": visible(excerpt.name), "tokens": {}})
    own["tokens"] |= {excerpt.start + n: visible(token) for n, token in enumerate(excerpt.tokens)}
    active = [
        number
        for place, value in enumerate(excerpt.activations.tolist())
        if value > 0
        for number in (place, max(1, round(100 * value / largest)))
    ]
    return [excerpt.text, excerpt.start, len(excerpt.tokens), excerpt.peak, excerpt.quantile, active]
