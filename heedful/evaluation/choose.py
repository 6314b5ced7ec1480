"""Which explainers and metrics a report has, and their settings."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heedful.errors import BadInput, in_short, unknown_name
from heedful.evaluation.sample import Sample
from heedful.evaluation.verdict import CONTROL
from heedful.explainers import Explainer, default_methods, every_method
from heedful.explainers import methods as all_methods
from heedful.explainers.planning import configure_for
from heedful.explainers.random import Random
from heedful.family import build, members, split_settings
from heedful.generation.continuation import Continuation
from heedful.metrics import Metric
from heedful.models import Model

Methods = str | Sequence[str | Explainer] | Mapping[str, str | Explainer] | None
"""A name, "all", a list of names and explainers, or a mapping from other names to either; None for the defaults."""
Metrics = str | Sequence[str | Metric] | None
"""A name, "all", or a list of names and metrics; None for the default metrics."""

FEW_MASKS = 100
"""The number of masks of sampling methods where each mask costs a forward pass."""
_ALWAYS = frozenset({"sign", "again"})


def choose_members(
    model: Model, methods: Methods, metrics: Metrics, gold: bool, sample: Sample, settings: Mapping[str, Any]
) -> tuple[dict[str, Explainer], list[Metric]]:
    """The explainers by the names they have in the report, with the control, and the metrics; with their settings."""
    named = _named_methods(model, methods)
    explainers = [_find(member, all_methods(), "method") for member in named.values()]
    catalogue = members("heedful.metrics", Metric)
    chosen = [_find(member, catalogue, "metric") for member in _named_metrics(model, metrics, gold, sample)]
    if not chosen:
        raise BadInput("No metric was named; leave metrics out for the default metrics.")
    classes = [member for member in (*explainers, *chosen) if isinstance(member, type)]
    # Every explainer has a unit, also those that come with settings of their own.
    own = iter(split_settings(settings, [*classes, Explainer]))
    built = [
        configure_for(model, kind.name, next(own), FEW_MASKS) if isinstance(kind, type) else kind for kind in explainers
    ]
    judges = [build(kind, kind.name, next(own)) if isinstance(kind, type) else kind for kind in chosen]
    for name, times in Counter(metric.name for metric in judges).items():
        if times > 1:
            raise BadInput(f"The metric {name!r} was given {times} times; name it once.")
    return dict(zip(named, built, strict=True)), judges


def _named_methods(model: Model, methods: Methods) -> dict[str, str | Explainer]:
    """The requested methods, by their names in the report; the control is always included."""
    catalogue = all_methods()
    if methods is None:
        methods = [name for name in default_methods(model.offers) if catalogue[name].needs <= model.offers]
    elif isinstance(methods, str):
        methods = every_method() if methods == "all" else [methods]
    if not isinstance(methods, Iterable):
        raise BadInput(f"methods must be a list of names; {in_short(methods)} was given.")
    named = dict(methods) if isinstance(methods, Mapping) else _by_name(methods)
    control = named.setdefault(CONTROL, CONTROL)
    if control != CONTROL and not isinstance(control, Random):
        raise BadInput(f"{CONTROL!r} is the control of every report; choose another name for your method.")
    return named


def _by_name(methods: Iterable[str | Explainer]) -> dict[str, str | Explainer]:
    named: dict[str, str | Explainer] = {}
    for method in methods:
        if not isinstance(method, str | Explainer):
            raise BadInput(f"A method is a name or an explainer; {type(method).__name__} was given.")
        name = method if isinstance(method, str) else method.name
        if name in named:
            raise BadInput(
                f'The method {name!r} was given twice; name both, as in {{"few": Lime(…), "many": Lime(…)}}.'
            )
        named[name] = method
    return named


def _named_metrics(model: Model, metrics: Metrics, gold: bool, sample: Sample) -> Sequence[str | Metric]:
    """The requested metrics; by default those that a verdict uses, and those of rationales if the texts have some."""
    catalogue = members("heedful.metrics", Metric)
    if isinstance(metrics, str):
        return list(catalogue) if metrics == "all" else [metrics]
    if metrics is not None and not isinstance(metrics, Iterable):
        raise BadInput(f"metrics must be a list of names; {in_short(metrics)} was given.")
    if metrics is not None:
        return metrics
    available = {*_ALWAYS, *(["gold"] if gold else [])}
    available |= {"rationale"} if any(rationale is not None for rationale in sample.rationales) else set()
    writes = isinstance(model, Continuation)
    usual = {name: metric for name, metric in catalogue.items() if metric.uses or "rationale" in metric.wants}
    return [name for name, metric in usual.items() if metric.wants <= available and metric.for_written <= writes]


def _find(member: Any, catalogue: Mapping[str, type], kind: str) -> Any:
    """The class of a name; an object that a user built is used as it is."""
    if isinstance(member, Explainer if kind == "method" else Metric):
        return member
    if not isinstance(member, str):
        raise BadInput(f"A {kind} is given by its name or as an object; {in_short(member)} was given.")
    if member not in catalogue:
        raise unknown_name(kind, member, catalogue)
    return catalogue[member]
