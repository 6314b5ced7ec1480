"""What explainers will cost before they run, and how to keep their masks within a time and memory budget."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from time import perf_counter
from typing import Any, NamedTuple, final

from heedful.document.note import Note
from heedful.errors import BadInput, in_short
from heedful.explainers import Explainer, MaskingExplainer, configure, methods
from heedful.family import setting_types
from heedful.models import Model
from heedful.models.question import Question
from heedful.perturb.forecast import Forecast, MaskCount, as_time, forecast, planned
from heedful.perturb.rounds import FEWEST_MASKS

Announce = Callable[[Forecast], None]
"""Called with the forecast before the model is evaluated on masks."""

ANNOUNCED = 100
"""The fewest masks whose cost is forecast only to announce it."""
_FEW_MASKS, _FEW_PASSES = 200, 4
"""Masks, and passes with gradients, of a run that measures the speed of a method."""


def check_callback(announce: object) -> None:
    """Refuses an `announce` that cannot be called."""
    if announce is not None and not callable(announce):
        raise BadInput(f"announce must be a function of a forecast; {in_short(announce)} was given.")


def mask_forecast(explainers: Sequence[Explainer], question: Question, fewest: int = 1) -> Forecast | None:
    """What the explainers' masks will cost on the longest document; None if pooling is exact, or with too few masks.

    A forecast evaluates some masks itself: below `ANNOUNCED` masks it is not worth that for an announcement.
    """
    masking = [explainer for explainer in explainers if isinstance(explainer, MaskingExplainer)]
    if not masking or "pooling" in question.model.offers:
        return None
    index = max(range(len(question.documents)), key=lambda i: len(question.documents[i].ids))
    n_masks, at_most = 0, False
    for explainer in masking:
        n_units = question.documents[index].n_units(explainer.unit)
        count = explainer.n_masks(n_units)
        n_masks, at_most = n_masks + min(count.n, 2 ** min(n_units, 40)), at_most or count.at_most
    if n_masks < fewest:
        return None
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
        return _timed(explainer, question) if seconds < inf else Limited(explainer, question)
    question = planned(question, cost)
    if cost.seconds <= seconds:
        return Limited(explainer, question, (), cost.n_probes)
    count, n_masks = explainer.n_masks(question.documents[0].n_units(explainer.unit)), cost.affordable(seconds)
    if count.setting is None or n_masks < FEWEST_MASKS:
        raise BadInput(
            f"needs {cost}; {as_time(seconds)} is enough for only {n_masks:,} forward passes. Raise seconds.",
            explainer.name,
        )
    return _lowered(explainer, question, count, n_masks, cost.n_probes)


def _timed(explainer: Explainer, question: Question) -> Limited:
    """The explainer with as many samples as a short run of its own says that the time allows.

    Where masks are cheap, or the passes are those of gradients, what the method itself does with them counts too.
    """
    document = max(question.documents, key=lambda document: len(document.ids))
    n_units, masking = document.n_units(explainer.unit), isinstance(explainer, MaskingExplainer)
    count = explainer.n_masks(n_units) if isinstance(explainer, MaskingExplainer) else _gradient_passes(explainer)
    if count is None or count.setting is None:
        return Limited(explainer, question)
    n = max(_FEW_MASKS, 10 * n_units) if masking else _FEW_PASSES
    n_all = min(count.n, 2 ** min(n_units, 40)) if masking else count.n
    if n_all <= n:
        return Limited(explainer, question)
    quiet = replace(question.budget, seconds=inf, watch=lambda *_: None)
    alone = replace(question, documents=(document,), budget=quiet, mask_values=None)
    setting: dict[str, Any] = {count.setting: n}
    start = perf_counter()
    (short,) = replace(explainer, **setting).explain_batch(alone)
    each, seconds = (perf_counter() - start) / n, question.budget.seconds
    n_probes, enough = int(short.facts["masks" if masking else "forwards"]), int(0.9 * seconds / each)
    if n_all * each <= seconds:
        return Limited(explainer, question, (), n_probes)
    if enough < (FEWEST_MASKS if masking else 2):
        raise BadInput(
            f"needs about {as_time(n_all * each)} for {count.setting}={count.n:,}; {as_time(seconds)} is enough "
            f"for only {enough:,}. Raise seconds.",
            explainer.name,
        )
    return _lowered(explainer, question, count, enough, n_probes)


def _gradient_passes(explainer: Explainer) -> MaskCount | None:
    """How many passes a method that averages gradients makes, and the setting that says so."""
    if "gradients" in explainer.needs:
        for setting in ("n_samples", "n_steps"):
            if isinstance(n := getattr(explainer, setting, None), int):
                return MaskCount(n, setting)
    return None


def _lowered(explainer: Explainer, question: Question, count: MaskCount, n: int, n_probes: int) -> Limited:
    limit = as_time(question.budget.seconds)
    lowered = f"{count.setting} was lowered from {count.n:,} to {n:,} to keep the time limit of {limit}."
    setting: dict[str, Any] = {str(count.setting): n}
    return Limited(replace(explainer, **setting), question, (Note(lowered, "limited"),), n_probes)
