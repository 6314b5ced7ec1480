"""Which explainers and metrics a report is made with, and their settings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import BadInput, unknown_name
from heedful.evaluation.sample import Sample
from heedful.evaluation.verdict import CONTROL
from heedful.explainers import Explainer, configure
from heedful.explainers import methods as known_methods
from heedful.explainers.random import Random
from heedful.family import build, members, setting_types, split_settings
from heedful.metrics import Metric
from heedful.models import Model

Methods = str | Sequence[str | Explainer] | Mapping[str, str | Explainer] | None
"""A name, "all", names and explainers, or either by a name of one's own; None for the usual ones."""
Metrics = str | Sequence[str | Metric] | None
"""A name, "all", or names and metrics; None for the usual ones."""

FEW_MASKS = 100
"""How many masks methods that sample ask, where each costs a forward pass."""
_ALWAYS = frozenset({"sign", "again"})


def chosen_members(
    model: Model,
    methods: Methods,
    metrics: Metrics,
    gold: bool,
    sample: Sample,
    settings: Mapping[str, Any],
) -> tuple[dict[str, Explainer], list[Metric]]:
    """The explainers, by the names they go by, with the control; and the metrics; both with their settings."""
    known, judges = known_methods(), members("heedful.metrics", Metric)
    if methods is None:
        methods = [
            name for name, one in sorted(known.items()) if not one.opt_in and not one.slow and one.needs <= model.offers
        ]
    elif isinstance(methods, str):
        methods = sorted(known) if methods == "all" else [methods]
    named = dict(methods) if isinstance(methods, Mapping) else _by_name(methods)
    if not (named.setdefault(CONTROL, CONTROL) == CONTROL or isinstance(named[CONTROL], Random)):
        raise BadInput(f"{CONTROL!r} is the control of every report; give another name to your method.")
    if metrics is None:
        there = {"gold"} if gold else set()
        there |= {"rationale"} if any(one is not None for one in sample.rationales) else set()
        metrics = [name for name, one in judges.items() if one.default and not one.wants - {*_ALWAYS, *there}]
    elif isinstance(metrics, str):
        metrics = list(judges) if metrics == "all" else [metrics]
    if not metrics:
        raise BadInput("No metric was named, so there is nothing to measure.")
    kinds = []
    for one in (*named.values(), *metrics):
        if isinstance(one, str):
            family, what = (known, "method") if len(kinds) < len(named) else (judges, "metric")
            if one not in family:
                raise unknown_name(what, one, family)
            one = family[one]
        kinds.append(one)
    by_name: list[Any] = [kind for kind in kinds if isinstance(kind, type)]
    # Every explainer has a unit, those too that come with settings of their own.
    own = iter(split_settings(settings, [*by_name, Explainer]))
    built = [_built(kind, next(own), model) if isinstance(kind, type) else kind for kind in kinds]
    judging = built[len(named) :]
    for name, times in Counter(one.name for one in judging).items():
        if times > 1:
            raise BadInput(f"The metric {name!r} was given {times} times; a report has one column for it.")
    return dict(zip(named, built[: len(named)], strict=True)), judging


def _built(kind: Any, chosen: dict[str, Any], model: Model) -> Any:
    """A method with few masks where each costs a pass, unless the user says how many; a metric as it is."""
    if issubclass(kind, Explainer):
        costly = "masks" in kind.needs and "pooling" not in model.offers
        few = {name: FEW_MASKS for name in ("n_samples", "budget") if costly and name in setting_types(kind)}
        return configure(kind.name, {**few, **chosen})
    return build(kind, kind.name, chosen)


def _by_name(methods: Sequence[str | Explainer]) -> dict[str, str | Explainer]:
    found: dict[str, str | Explainer] = {}
    for one in methods:
        if not isinstance(one, str | Explainer):
            raise BadInput(f"A method is a name or an explainer; {type(one).__name__} was given.")
        name = one if isinstance(one, str) else one.name
        if name in found:
            raise BadInput(
                f'The method {name!r} was given twice; name both, as in {{"few": Lime(…), "many": Lime(…)}}.'
            )
        found[name] = one
    return found
