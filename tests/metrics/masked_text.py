"""Explanations with given scores, and f of masked texts the long way: one text at a time, spelt out."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.explainers import configure
from heedful.explainers.random import Random
from heedful.explainers.run import run_explainer
from heedful.metrics import Evaluation
from heedful.models import Model
from heedful.models.question import MaskValues, ask
from heedful.perturb.document_values import DocumentValues

TEXT = "a very good film , but the plot was not good"


def evaluation_by(model: Model, method: str, text: Any = TEXT, **settings: Any) -> Evaluation:
    """What a method says of a text on evaluation, with the explainer, so that it can be asked again."""
    question, explainer = ask(model, [text]), configure(method, settings)
    explanation = run_explainer(explainer, question)[0]
    return Evaluation(question, explanation, DocumentValues(question, explanation.unit), explainer)


def evaluation_of(
    model: Model, text: str, scores: Sequence[float] | np.ndarray, signed: bool = True, target: Any = 1, **asked: Any
) -> Evaluation:
    """An explanation with these scores on evaluation, one a word; its question stores its mask values."""
    question = replace(ask(model, [text], target, **asked), mask_values=MaskValues())
    given = replace(
        run_explainer(Random(), question)[0], scores=np.array(scores, dtype=float), signed=signed, method="given"
    )
    return Evaluation(question, given, DocumentValues(question, "word"))


def masked_text(text: str, keep: Collection[int], hole: str | None) -> str:
    """The text with some of its words; a hole stands for each of the others, or nothing."""
    words = [word if place in keep else hole for place, word in enumerate(text.split())]
    return " ".join(word for word in words if word is not None)


def value(model: Model, text: str, of: str = "target", target: int = 1) -> float:
    """f of one text: the logit, or the probability."""
    logits = model([text])[0]
    return float(logits[target] if of == "target" else np.exp(logits)[target] / np.exp(logits).sum())


def sets_of(evaluation: Evaluation, absence: str) -> list[set[int]]:
    """The sets that were removed, read from what the question keeps; the whole text is none of them."""
    cache = evaluation.question.mask_values
    assert cache is not None
    (asked,) = [values for key, values in cache.values.items() if key[2] == absence]
    n_units = len(evaluation.scores)
    kept = [np.unpackbits(np.frombuffer(row, dtype=np.uint8), count=n_units).astype(bool) for row in asked]
    return [set(np.flatnonzero(~row).tolist()) for row in kept if not row.all()]
