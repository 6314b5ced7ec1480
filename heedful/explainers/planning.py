"""What explainers will cost before they run, and how to keep their masks within a time and memory budget."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

from heedful.document.note import Note
from heedful.errors import BadInput, in_short
from heedful.explainers import Explainer, MaskingExplainer, configure, methods
from heedful.family import setting_types
from heedful.models import Model
from heedful.models.question import Question
from heedful.perturb.forecast import Forecast, as_time, forecast, planned
from heedful.perturb.rounds import FEWEST_MASKS

Announce = Callable[[Forecast], None]
"""Called with the forecast before the model is evaluated on masks."""


def check_callback(announce: object) -> None:
    """Refuses an `announce` that cannot be called."""
    if announce is not None and not callable(announce):
        raise BadInput(f"announce must be a function of a forecast; {in_short(announce)} was given.")


def mask_forecast(explainers: Sequence[Explainer], question: Question) -> Forecast | None:
    """What the explainers' masks will cost on the longest document; None if there are no masks, or pooling is exact."""
    masking = [explainer for explainer in explainers if isinstance(explainer, MaskingExplainer)]
    if not masking or "pooling" in question.model.offers:
        return None
    index = max(range(len(question.documents)), key=lambda i: len(question.documents[i].ids))
    n_masks, at_most = 0, False
    for explainer in masking:
        n_units = question.documents[index].n_units(explainer.unit)
        count = explainer.n_masks(n_units)
        n_masks, at_most = n_masks + min(count.n, 2 ** min(n_units, 40)), at_most or count.at_most
    return forecast(question, index, masking[0].unit, masking[0].absence, n_masks, at_most)


def configure_for(model: Model, name: str, settings: Mapping[str, object], few: int) -> Explainer:
    """The explainer with these settings; with `few` masks where each costs a pass, unless the user says how many."""
    kind = methods()[name]
    costly = "masks" in kind.needs and "pooling" not in model.offers
    lowered = {setting: few for setting in ("n_samples", "budget") if costly and setting in setting_types(kind)}
    return configure(name, {**lowered, **settings})


@final
class Limited(NamedTuple):
    """An explainer and a question within a budget, notes of what was lowered, and the masks of the cost forecast."""

    explainer: Explainer
    question: Question
    notes: tuple[Note, ...] = ()
    n_probes: int = 0


def within_budget(explainer: Explainer, question: Question) -> Limited:
    """The explainer and the question with as many masks, in total and per pass, as time and memory allow."""
    cost, seconds = mask_forecast([explainer], question), question.budget.seconds
    if cost is None or not isinstance(explainer, MaskingExplainer):
        return Limited(explainer, question)
    question = planned(question, cost)
    if cost.seconds <= seconds:
        return Limited(explainer, question, (), cost.n_probes)
    count, n_masks = explainer.n_masks(question.documents[0].n_units(explainer.unit)), cost.affordable(seconds)
    if count.setting is None or n_masks < FEWEST_MASKS:
        raise BadInput(
            f"needs {cost}; {as_time(seconds)} is enough for only {n_masks:,} forward passes. Raise seconds.",
            explainer.name,
        )
    lowered = (
        f"{count.setting} was lowered from {count.n:,} to {n_masks:,} to keep the time limit of {as_time(seconds)}."
    )
    setting: dict[str, Any] = {count.setting: n_masks}
    return Limited(replace(explainer, **setting), question, (Note(lowered, "limited"),), cost.n_probes)
