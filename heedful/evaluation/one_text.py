"""All explanations of one document, measured by all metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, final

import numpy as np
from jaxtyping import Bool

from heedful.document import Pair, Unit
from heedful.document.rationale import marked_units
from heedful.document.units import plural
from heedful.errors import BadInput, HeedfulError, describe_error, in_short
from heedful.evaluation.agreement import rank_correlations
from heedful.evaluation.disagreement import explain_disagreement
from heedful.evaluation.journal import DocumentResult, SkipReason
from heedful.evaluation.sample import Sample
from heedful.evaluation.text_scale import value_ends
from heedful.evaluation.verdict import CONTROL
from heedful.explainers import Explainer
from heedful.explainers.run import run_explainer
from heedful.explanation import Explanation
from heedful.generation.as_model import written_text
from heedful.generation.continuation import Continuation
from heedful.metrics import Evaluation, Metric, measure, output_level
from heedful.models import Model
from heedful.models.budget import Budget
from heedful.models.layered import Derived
from heedful.models.question import MaskValues, Question, Wanted, ask
from heedful.perturb.document_values import DocumentValues

Reasons = dict[str, dict[str, SkipReason]]
"""Why a method has no value for a metric; under "" why it has no explanation."""


@final
@dataclass(frozen=True, eq=False)
class Measurement:
    """What is the same for all documents of a report: the model, the target, the explainers and the metrics."""

    model: Model
    wanted: Wanted
    budget: Budget
    explainers: Mapping[str, Explainer]
    metrics: Sequence[Metric]
    others: Mapping[tuple[str, str], tuple[Explanation, ...]]
    """Imported explanations, by method and text; several are of different targets or units."""
    unit: Unit
    gold: frozenset[str] | None
    twin: Model | None
    altered_models: dict[str, Any] = field(default_factory=dict)

    @property
    def read_in(self) -> tuple[str, ...]:
        """The names of the methods whose explanations were imported."""
        return tuple(dict.fromkeys(method for method, _ in self.others))


def measure_text(measurement: Measurement, sample: Sample, index: int) -> DocumentResult:
    """All explanations of one document, measured by all metrics; an error is kept as the reason to skip the text."""
    place, label = sample.places[index], sample.labels[index]
    result = DocumentResult(place, str(sample.texts[index])[:_SHOWN], label)
    try:
        return _measure(measurement, sample, index, result)
    except HeedfulError as error:
        return replace(result, skipped=SkipReason.of(error))
    # A foreign model may raise anything; one text must not end a long run.
    except Exception as error:
        return replace(result, skipped=SkipReason(f"{describe_error(error)}.", kind=type(error).__name__))


def _measure(measurement: Measurement, sample: Sample, index: int, result: DocumentResult) -> DocumentResult:
    start, mask_values = perf_counter(), MaskValues()
    question = ask(measurement.model, [sample.texts[index]], *measurement.wanted, measurement.budget)
    question = replace(question, mask_values=mask_values)
    text, predicted = _text_and_prediction(question, sample.texts[index])
    explanations, reasons = _explanations(measurement, question)
    if not explanations:
        return replace(result, predicted=predicted, skipped=SkipReason("No method can explain this text."))
    n_requested, n_evaluated = mask_values.n_requested, mask_values.n_evaluated
    values, ends = _values(measurement, question, explanations, sample.rationales[index], reasons, result.label)
    document, unit, own = question.documents[0], _unit(measurement, explanations), measurement.explainers
    return replace(
        result,
        text=text,
        predicted=predicted,
        units=list(document.units(unit)),
        scores={name: explanation.scores.tolist() for name, explanation in explanations.items()},
        values=values,
        ends=ends,
        level=output_level(question),
        reasons=reasons,
        # The cost of explanations that were read in is not known.
        passes={name: _passes(measurement.model, explanations[name]) for name in own if name in explanations},
        seconds={name: explanations[name].facts["seconds"] for name in explanations if name in own},
        agreement=_agreement(explanations),
        **_causes(question, explanations, reasons),
        masks_explaining=n_evaluated,
        masks_requested=mask_values.n_requested - n_requested,
        masks_evaluated=mask_values.n_evaluated - n_evaluated,
        spent=perf_counter() - start,
    )


def _text_and_prediction(question: Question, given: Any) -> tuple[str, str]:
    """The text and the class that the model predicts; of a derived model its output, as text or as a number.

    A prompt is shown without its chat template.
    """
    document = question.documents[0]
    if isinstance(question.model, Continuation):
        return given.first if isinstance(given, Pair) else given, written_text(document)
    if isinstance(question.model, Derived):
        return document.text, f"{question.logits[0, 0]:.3g}"
    return document.text, question.model.target_names(document).shown(int(question.logits[0].argmax()))


def _values(
    measurement: Measurement,
    question: Question,
    explanations: Mapping[str, Explanation],
    rationale: Any,
    reasons: Reasons,
    label: int | None,
) -> tuple[dict[str, dict[str, float]], dict[str, list[float]]]:
    """The value of every metric for every explanation, and its ends; `reasons` gets those for missing values."""
    unit, document = _unit(measurement, explanations), question.documents[0]
    marks, unreadable = _rationale(question, unit, rationale)
    gold = measurement.gold
    is_gold = None if gold is None else np.array([word_key(word) in gold for word in document.units(unit)])
    document_values = DocumentValues(question, unit)
    values: dict[str, dict[str, float]] = {}
    ends: dict[str, list[float]] = {}
    for name, explanation in explanations.items():
        evaluation = Evaluation(
            question,
            explanation,
            document_values,
            measurement.explainers.get(name),
            marks,
            is_gold,
            measurement.twin,
            measurement.altered_models,
            label,
        )
        for metric in measurement.metrics:
            try:
                if unreadable is not None and "rationale" in metric.wants:
                    raise BadInput(unreadable)
                values.setdefault(name, {})[metric.name] = measure(metric, evaluation)
                if metric.name not in ends and (own := value_ends(metric, evaluation)) is not None:
                    ends[metric.name] = list(own)
            except HeedfulError as error:
                reasons.setdefault(name, {})[metric.name] = SkipReason.of(error)
    return values, ends


def _explanations(measurement: Measurement, question: Question) -> tuple[dict[str, Explanation], Reasons]:
    """The explanation of the document by every method, and why other methods have none."""
    explanations: dict[str, Explanation] = {}
    reasons: Reasons = {}
    for name, explainer in measurement.explainers.items():
        try:
            explanations[name] = run_explainer(explainer, question)[0]
            if explanations[name].was_stopped:
                # An explanation from part of its samples must not be measured as the method's.
                raise KeyboardInterrupt
        except HeedfulError as error:
            reasons[name] = {"": SkipReason.of(error)}
    unit = _unit(measurement, explanations)
    for name in [name for name, explanation in explanations.items() if explanation.unit != unit]:
        sentence = f"Its unit is {explanations.pop(name).unit}; the unit of the report is {unit}."
        reasons[name] = {"": SkipReason(sentence, kind="another unit")}
    for name in measurement.read_in:
        others = measurement.others.get((name, question.documents[0].text), ())
        misfits = [_mismatch(question, unit, other) for other in others]
        if None in misfits:
            explanations[name] = others[misfits.index(None)]
        else:
            missing = "There is no imported explanation of this text."
            reasons[name] = {"": SkipReason(next(filter(None, misfits), missing), kind="imported")}
    return explanations, reasons


def _mismatch(question: Question, unit: Unit, other: Explanation) -> str | None:
    """Why an imported explanation does not fit the question; None if it fits."""
    if other.target != question.targets[0]:
        return f"The imported explanation has the target {other.target}, not {question.targets[0]}."
    if other.unit != unit:
        return f"The imported explanation has the unit {other.unit}; the unit of the report is {unit}."
    n_units = question.documents[0].n_units(unit)
    if len(other.scores) != n_units:
        return f"The imported explanation has {len(other.scores)} scores; the text has {n_units} {plural(unit)}."
    return None


def _unit(measurement: Measurement, explanations: Mapping[str, Explanation]) -> Unit:
    """The unit of the explanations; for images it is the patch, whatever was requested."""
    for explanation in explanations.values():
        return explanation.unit
    return measurement.unit


def _passes(model: Model, explanation: Explanation) -> float:
    """Passes through the model, forward and backward; a pooling model evaluates masks without any."""
    facts = explanation.facts
    masks = 0 if "pooling" in model.offers else facts.get("masks", 0)
    passes = float(facts.get("forwards", 0) + facts.get("backwards", 0) + masks)
    return passes if explanation.method == CONTROL else max(passes, 1.0)


def _agreement(explanations: Mapping[str, Explanation]) -> dict[str, dict[str, float]]:
    """The rank correlation of every two methods where it is defined."""
    rows = zip(explanations, rank_correlations(list(explanations.values())).tolist(), strict=True)
    by_method = {
        name: {other: value for other, value in zip(explanations, row, strict=True) if np.isfinite(value)}
        for name, row in rows
    }
    return {name: values for name, values in by_method.items() if values}


def _causes(question: Question, explanations: Mapping[str, Explanation], reasons: Reasons) -> dict[str, Any]:
    """Why the methods disagree: the number of units for each cause, and how many behaved as it predicts."""
    # Two settings of one method have one account; explanations that were read in have none.
    by_method = {explanation.method: explanation for explanation in explanations.values()}
    if len(by_method) < 2:
        return {}
    try:
        disagreement = explain_disagreement(question, list(by_method.values()))
    except HeedfulError as error:
        reasons[""] = {"why they differ": SkipReason.of(error)}
        return {}
    tested: dict[str, list[int]] = {}
    for test in disagreement.reliability:
        n_behaved, n_diagnosed = tested.get(test.cause, (0, 0))
        tested[test.cause] = [n_behaved + test.behaved, n_diagnosed + test.diagnosed]
    causes = dict(Counter(cause.name for cause in disagreement.causes))
    return {"causes": causes, "tested": tested, "exact": disagreement.exact}


def _rationale(question: Question, unit: Unit, rationale: Any) -> tuple[Bool[np.ndarray, "unit"] | None, str | None]:
    """The units that people marked, or why the rationale cannot be read."""
    if rationale is None:
        return None, None
    try:
        return marked_units(question.documents[0], unit, rationale), None
    except HeedfulError as error:
        return None, error.sentence


def gold_words(gold: Iterable[str]) -> frozenset[str]:
    """The words that the model is known to use, for comparisons; refused if they are none."""
    given = [gold] if isinstance(gold, str) else list(gold) if isinstance(gold, Iterable) else [gold]
    if not all(isinstance(word, str) for word in given):
        raise BadInput(f"gold must be a list of words; {in_short(gold)} was given.")
    words = frozenset(map(word_key, given))
    if not words:
        raise BadInput("gold is empty; give at least one word that the model is known to use.")
    return words


def word_key(word: str) -> str:
    """The word without surrounding spaces and in lower case, for comparisons."""
    return word.strip().casefold()


_SHOWN = 500
