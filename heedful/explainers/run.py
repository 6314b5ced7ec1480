"""Runs one explainer on a question, and measures what it spends."""

from dataclasses import replace
from math import inf
from time import perf_counter

from heedful.errors import BadInput
from heedful.explainers import Explainer
from heedful.explainers.planning import within_budget
from heedful.explanation import Explanation
from heedful.models import check_offers
from heedful.models.question import MaskValues, Question


def run_explainer(explainer: Explainer, question: Question) -> list[Explanation]:
    """Runs one explainer; `seconds` include passes shared with other explainers, as if it had run alone."""
    check_offers(question.model, explainer.needs, explainer.name)
    explainer = with_default_unit(explainer, question)
    notes, n_probes = (), 0
    if question.budget.memory is not None or question.budget.seconds < inf:
        explainer, question, notes, n_probes = within_budget(explainer, question)
    cache = question.mask_values or MaskValues()
    shared, saved = sum(question.seconds.values()), cache.seconds_saved
    start = perf_counter()
    try:
        explanations = explainer.explain_batch(question)
    except BadInput as error:
        if not notes:
            raise
        # The setting that was lowered to keep the time limit may be why it fails.
        raise BadInput(" ".join([error.sentence, *notes]), error.subject) from None
    own = perf_counter() - start - (sum(question.seconds.values()) - shared) + cache.seconds_saved - saved
    used = {*explainer.needs, "layers"} if "attention" in explainer.needs else explainer.needs
    seconds = own + sum(question.seconds.get(need, 0.0) for need in used)
    each = seconds / len(explanations)
    explanations[0] = with_probes(explanations[0], n_probes)
    return [
        replace(explanation, facts={**explanation.facts, "seconds": each}).noted(notes) for explanation in explanations
    ]


def with_probes(explanation: Explanation, n_probes: int) -> Explanation:
    """The explanation with the masks, or the passes, of the cost forecast counted."""
    if not n_probes:
        return explanation
    counted = ("masks",) if "masks" in explanation.facts else ("forwards", "backwards")
    return replace(
        explanation, facts={**explanation.facts, **{name: explanation.facts[name] + n_probes for name in counted}}
    )


def with_default_unit(explainer: Explainer, question: Question) -> Explainer:
    """The explainer with patches instead of words as units, if images are explained."""
    pictures = any(document.picture is not None for document in question.documents)
    return replace(explainer, unit="patch") if pictures and explainer.unit == "word" else explainer
