"""The masked texts on which a method evaluated the model, and the rule of an anchor, for a page."""

from dataclasses import replace
from typing import Any

import numpy as np

from heedful.explanation import Explanation
from heedful.perturb.surrogate import kernel
from heedful.render.text_strip import pieces, visible


def copies_view(explanation: Explanation) -> dict[str, Any] | None:
    """The samples as rows: the text with its removed units, the weight of LIME's kernel, the value; None without."""
    if not explanation.samples or explanation.document.picture is not None:
        return None
    keep = np.array([[kept == "1" for kept in sample.kept] for sample in explanation.samples])
    width = explanation.settings.get("kernel_width")
    weights = kernel(keep, float(width)).tolist() if isinstance(width, float | int) else [None] * len(keep)
    rows = []
    for sample, kept, weight in zip(explanation.samples, keep, weights, strict=True):
        shown = pieces(replace(explanation, scores=kept.astype(np.float64), error=None))
        rows.append({"pieces": shown, "n_removed": int((~kept).sum()), "weight": weight, "value": sample.value})
    return {"rows": rows, "weighted": width is not None, "rule": rule_view(explanation)}


def rule_view(explanation: Explanation) -> dict[str, Any] | None:
    """An anchor as a rule: the units that stay, its precision and its coverage; None for other methods."""
    facts = explanation.facts
    if not {"precision", "precision_lower", "coverage"} <= facts.keys():
        return None
    held = [visible(unit) for unit, score in zip(explanation.units, explanation.scores, strict=True) if score > 0]
    return {"held": held} | {name: facts[name] for name in ("precision", "precision_lower", "coverage")}
