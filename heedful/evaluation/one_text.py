"""Every explanation of one document, on every metric."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, final

import numpy as np

from heedful.document import Document, Unit
from heedful.document.rationale import marked_units
from heedful.errors import BadInput, HeedfulError, describe_error
from heedful.evaluation.agreement import rank_correlations
from heedful.evaluation.disagreement import explain_disagreement
from heedful.evaluation.journal import Measured
from heedful.evaluation.sample import Sample
from heedful.evaluation.verdict import CONTROL
from heedful.explainers import Explainer
from heedful.explainers.explain import run_explainer
from heedful.explanation import Explanation
from heedful.metrics import Evaluation, Metric, measure
from heedful.models import Model
from heedful.models.question import MaskValues, Question
from heedful.perturb.answers import Answers

Ask = Callable[[Any], Question]
"""The question about one text."""


@final
@dataclass(frozen=True, eq=False)
class Bench:
    """What all documents of a report are measured with."""

    model: Model
    explainers: Mapping[str, Explainer]
    metrics: Sequence[Metric]
    others: Mapping[tuple[str, str], Explanation]
    unit: Unit
    gold: frozenset[str] | None
    twin: Model | None
    altered_models: dict[str, Any] = field(default_factory=dict)


def measured(bench: Bench, sample: Sample, index: int, asking: Ask) -> Measured:
    """All explanations of one document, on all metrics; what goes wrong with it is said and ends no long run."""
    try:
        return _measured(bench, sample, index, asking)
    # What a model that is not ours raises on a text is not foreseeable.
    except Exception as error:
        return Measured(
            sample.places[index],
            str(sample.texts[index])[:_SHOWN],
            sample.labels[index],
            skipped=f"{describe_error(error)}.",
        )


def _measured(bench: Bench, sample: Sample, index: int, asking: Ask) -> Measured:
    start, mask_values = perf_counter(), MaskValues()
    text, place, label = sample.texts[index], sample.places[index], sample.labels[index]
    try:
        question = replace(asking(text), mask_values=mask_values)
        document, predicted = question.documents[0], bench.model.classes[int(question.logits[0].argmax())]
    except HeedfulError as error:
        return Measured(place, str(text)[:_SHOWN], label, skipped=str(error))
    explanations, reasons = _explanations(bench, question)
    if not explanations:
        return Measured(place, str(text)[:_SHOWN], label, predicted, skipped="No method explains this text.")
    wanted_before, explaining = mask_values.n_requested, mask_values.n_evaluated
    unit = _unit(bench, explanations)
    rationale, misread = _rationale(document, unit, sample.rationales[index])
    shared: dict[str, Any] = {
        "question": question,
        "answers": Answers(question, unit),
        "rationale": rationale,
        "gold": None if bench.gold is None else np.array([word_key(one) in bench.gold for one in document.units(unit)]),
        "twin": bench.twin,
        "altered_models": bench.altered_models,
    }
    values: dict[str, dict[str, float]] = {}
    for name, explanation in explanations.items():
        evaluation = Evaluation(explanation=explanation, explainer=bench.explainers.get(name), **shared)
        for metric in bench.metrics:
            try:
                if misread is not None and "rationale" in metric.wants:
                    raise BadInput(misread)
                values.setdefault(name, {})[metric.name] = measure(metric, evaluation)
            except HeedfulError as error:
                reasons.setdefault(name, {})[metric.name] = str(error)
    return Measured(
        place,
        document.text,
        label,
        predicted,
        units=list(document.units(unit)),
        scores={name: one.scores.tolist() for name, one in explanations.items()},
        values=values,
        reasons=reasons,
        # What an explanation that was read in has cost is not known.
        passes={name: _passes(bench, explanations[name]) for name in bench.explainers if name in explanations},
        seconds={name: one.facts["seconds"] for name, one in explanations.items() if name in bench.explainers},
        agreement=_agreement(explanations),
        **_causes(question, explanations, reasons),
        explaining=explaining,
        wanted=mask_values.n_requested - wanted_before,
        asked=mask_values.n_evaluated - explaining,
        spent=perf_counter() - start,
    )


def _explanations(bench: Bench, question: Question) -> tuple[dict[str, Explanation], dict[str, dict[str, str]]]:
    """What every method says of the document, and why others say nothing."""
    found: dict[str, Explanation] = {}
    reasons: dict[str, dict[str, str]] = {}
    for name, explainer in bench.explainers.items():
        try:
            found[name] = run_explainer(explainer, question)[0]
            if found[name].was_stopped:
                # What was cut short is not what the method says.
                raise KeyboardInterrupt
        except HeedfulError as error:
            reasons[name] = {"": str(error)}
    unit = _unit(bench, found)
    for name in [name for name, one in found.items() if one.unit != unit]:
        reasons[name] = {"": f"It explains by {found.pop(name).unit}, and the report is by {unit}."}
    for name in dict.fromkeys(method for method, _ in bench.others):
        other = bench.others.get((name, question.documents[0].text))
        if other is None:
            reasons[name] = {"": "No explanation of this text was read in."}
        elif other.target != question.targets[0]:
            reasons[name] = {"": f"What was read in explains {other.target}, and not {question.targets[0]}."}
        elif other.unit != unit or len(other.scores) != question.documents[0].n_units(unit):
            reasons[name] = {"": f"What was read in is by {other.unit}, and the report by {unit}."}
        else:
            found[name] = other
    return found, reasons


def _unit(bench: Bench, found: Mapping[str, Explanation]) -> Unit:
    """The unit of the explanations; of pictures it is patches, whatever was asked for."""
    for one in found.values():
        return one.unit
    return bench.unit


def _passes(bench: Bench, explanation: Explanation) -> float:
    """Passes through the model, forward and backward; a model that pools answers masks without one."""
    facts = explanation.facts
    masks = 0 if "pooling" in bench.model.offers else facts.get("masks", 0)
    spent = float(facts.get("forwards", 0) + facts.get("backwards", 0) + masks)
    return spent if explanation.method == CONTROL else max(spent, 1.0)


def _agreement(explanations: Mapping[str, Explanation]) -> dict[str, dict[str, float]]:
    """The rank correlation of every two methods where it is defined."""
    rows = zip(explanations, rank_correlations(list(explanations.values())).tolist(), strict=True)
    by_method = {
        name: {other: value for other, value in zip(explanations, row, strict=True) if np.isfinite(value)}
        for name, row in rows
    }
    return {name: values for name, values in by_method.items() if values}


def _causes(
    question: Question, explanations: Mapping[str, Explanation], reasons: dict[str, dict[str, str]]
) -> dict[str, Any]:
    """Why the methods differ: how many units each cause was found for, and how many behaved as it says."""
    # Two settings of one method are one method's account; what was read in has none.
    by_method = {one.method: one for one in explanations.values()}
    if len(by_method) < 2:
        return {}
    try:
        why = explain_disagreement(question, list(by_method.values()))
    except HeedfulError as error:
        reasons[""] = {"why they differ": str(error)}
        return {}
    tested: dict[str, list[int]] = {}
    for one in why.reliability:
        behaved, found = tested.get(one.cause, (0, 0))
        tested[one.cause] = [behaved + one.behaved, found + one.found]
    return {"causes": dict(Counter(cause.name for cause in why.causes)), "tested": tested, "exact": why.exact}


def _rationale(document: Document, unit: Unit, given: Any) -> tuple[np.ndarray | None, str | None]:
    """What people marked, by unit; or why it cannot be told."""
    if given is None:
        return None, None
    try:
        return marked_units(document, unit, given), None
    except HeedfulError as error:
        return None, str(error)


def word_key(word: str) -> str:
    return word.strip().casefold()


_SHOWN = 500
