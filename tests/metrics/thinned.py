"""Explanations with given scores, and f of thinned texts the long way: one text at a time, spelt out."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.explainers import configure
from heedful.explainers.explain import run_explainer
from heedful.explainers.random import Random
from heedful.metrics import Trial
from heedful.models import Model
from heedful.models.question import MaskValues, ask
from heedful.perturb.answers import Answers

TEXT = "a very good film , but the plot was not good"


def trial_of(model: Model, method: str, text: Any = TEXT, **settings: Any) -> Trial:
    """What a method says of a text on trial, with the explainer, so that it can be asked again."""
    question, explainer = ask(model, [text]), configure(method, settings)
    explanation = run_explainer(explainer, question)[0]
    return Trial(question, explanation, Answers(question, explanation.unit), explainer)


def trial(
    model: Model, text: str, scores: Sequence[float] | np.ndarray, signed: bool = True, target: Any = 1, **asked: Any
) -> Trial:
    """An explanation with these scores on trial, one a word; its question keeps the answers it gets."""
    question = replace(ask(model, [text], target, **asked), mask_values=MaskValues())
    given = replace(
        run_explainer(Random(), question)[0], scores=np.array(scores, dtype=float), signed=signed, method="given"
    )
    return Trial(question, given, Answers(question, "word"))


def thinned(text: str, keep: Collection[int], hole: str | None) -> str:
    """The text with some of its words; a hole stands for each of the others, or nothing."""
    words = [word if place in keep else hole for place, word in enumerate(text.split())]
    return " ".join(word for word in words if word is not None)


def value(model: Model, text: str, of: str = "target", target: int = 1) -> float:
    """f of one text: the logit, or the probability."""
    logits = model([text])[0]
    return float(logits[target] if of == "target" else np.exp(logits)[target] / np.exp(logits).sum())


def sets_of(on_trial: Trial, absence: str) -> list[set[int]]:
    """The sets that were removed, read from what the question keeps; the whole text is none of them."""
    cache = on_trial.question.mask_values
    assert cache is not None
    (asked,) = [values for key, values in cache.values.items() if key[2] == absence]
    n_units = len(on_trial.scores)
    kept = [np.unpackbits(np.frombuffer(row, dtype=np.uint8), count=n_units).astype(bool) for row in asked]
    return [set(np.flatnonzero(~row).tolist()) for row in kept if not row.all()]
