"""Every method that fits a model, side by side."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isnan
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.document import Document
from heedful.errors import BadInput, HeedfulError, TooFewSamples, unknown_name
from heedful.evaluation.agreement import rank_correlations, top_overlap
from heedful.evaluation.disagreement import Disagreement, explain_disagreement
from heedful.explainers import Explainer, configure, settings_of
from heedful.explainers import methods as known_methods
from heedful.explainers.explain import run_explainer, with_default_unit
from heedful.explainers.planning import Announce, mask_forecast
from heedful.explanation import Explanation
from heedful.family import setting_types
from heedful.models import Attending, Model
from heedful.models.budget import Budget, Progress
from heedful.models.question import Input, ask
from heedful.target import Scale, Target


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """Explanations of one text for one target, why the other methods gave none, and the attention behind them.

    `causes` says why the explanations differ; None where there is one alone, or the user stopped the run.
    """

    explanations: tuple[Explanation, ...]
    skipped: Mapping[str, str]
    maps: Float[np.ndarray, "layer head query key"] | None
    causes: Disagreement | None = None

    @property
    def document(self) -> Document:
        return self.explanations[0].document

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of any of the explanations must not miss, each once; of one method's alone, with its name."""
        return notes_of(self.explanations)

    @property
    def reasons(self) -> dict[str, tuple[str, ...]]:
        """Why methods gave no explanation: each reason once, with the methods it holds for."""
        found: dict[str, tuple[str, ...]] = {}
        for method, reason in self.skipped.items():
            said = reason.removeprefix(f"{method} ")
            found[said] = (*found.get(said, ()), method)
        return found

    def __getitem__(self, method: str) -> Explanation:
        found = {explanation.method: explanation for explanation in self.explanations}
        if method not in found:
            raise BadInput(self.skipped[method]) if method in self.skipped else unknown_name("method", method, found)
        return found[method]

    def agreement(self) -> Float[np.ndarray, "method method"]:
        """Spearman's ρ between every two methods. A description: two methods may agree and both be wrong."""
        return rank_correlations(self.explanations)

    def overlap(self) -> Float[np.ndarray, "method method"]:
        """The share of the five strongest units that every two methods have in common; a description too."""
        return np.array([[top_overlap(a, b) for b in self.explanations] for a in self.explanations])

    def as_dict(self) -> dict[str, object]:
        """Everything but the times and the attention maps, ready for JSON."""
        agreement = [[None if isnan(value) else value for value in row] for row in self.agreement().tolist()]
        explanations = [explanation.as_dict() for explanation in self.explanations]
        causes = None if self.causes is None else self.causes.as_dict()
        return {"explanations": explanations, "skipped": dict(self.skipped), "agreement": agreement, "causes": causes}

    def _repr_html_(self) -> str:
        # As on Explanation: the notebook protocol puts the drawing on the value.
        from heedful.render.comparison_page import notebook_fragment

        return notebook_fragment(self.explanations)


def compare(
    model: Model,
    text: Input,
    methods: str | Sequence[str] | None = None,
    *,
    target: int | str | Target | None = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    memory: str | int | float | None = None,
    seconds: int | float | None = None,
    half: bool = False,
    progress: Progress = lambda *_: None,
    announce: Announce | None = None,
    **settings: object,
) -> Comparison:
    """Explains a text by every method, or by those named; attention and gradients are computed once for all.

    A setting such as `unit` or `n_samples` goes to every method that has it. Where every sample costs a forward pass,
    sampling methods take 500 samples, unless `n_samples` or `budget` says otherwise. `memory` ("2GB") bounds every
    pass; `seconds` are shared out among the methods that ask masks; `progress` is told the masks of the method at work,
    and `announce`, before anything is done, what all will cost. A method that cannot answer for this model or this text
    is listed in `skipped` with its reason.
    """
    names = sorted(_usual()) if methods is None else [methods] if isinstance(methods, str) else list(methods)
    if not names:
        raise BadInput("No method was named, so there is nothing to compare.")
    own = settings_of(names, settings)
    asking = sum("masks" in known_methods()[name].needs for name in names)
    budget = Budget.of(memory, None if seconds is None else seconds / max(1, asking), progress, half)
    question = ask(model, [text], target, against, scale, budget)
    if "pooling" not in model.offers:
        for name, chosen in own.items():
            own[name] = {**_few(known_methods()[name]), **chosen}
    explainers = [with_default_unit(configure(name, chosen), question) for name, chosen in own.items()]
    able = [one for one in explainers if one.needs <= model.offers]
    if announce is not None and (cost := mask_forecast(able, question)) is not None:
        announce(cost.limited(inf if seconds is None else seconds))
    explanations: list[Explanation] = []
    skipped: dict[str, str] = {}
    stopped = False
    for explainer in explainers:
        if stopped:
            skipped[explainer.name] = "stopped by the user before its turn."
            continue
        try:
            explanations += run_explainer(explainer, question)
            stopped = explanations[-1].was_stopped
        except KeyboardInterrupt:
            if not explanations:
                raise
            skipped[explainer.name], stopped = "stopped by the user.", True
        except HeedfulError as error:
            lowered = "n_samples" not in settings and "pooling" not in model.offers
            ours = isinstance(error, TooFewSamples) and lowered
            skipped[explainer.name] = f"{error} compare gives that many unless told otherwise." if ours else str(error)
    if not explanations:
        raise BadInput(" ".join(dict.fromkeys(skipped.values())))
    causes = None
    if len(explanations) > 1 and not stopped:
        # What was explained is not lost for want of a reason.
        with suppress(HeedfulError, KeyboardInterrupt):
            causes = explain_disagreement(question, explanations)
    return Comparison(tuple(explanations), skipped, _maps(model, question.documents[0]), causes)


def notes_of(explanations: Sequence[Explanation]) -> tuple[str, ...]:
    """The notes of explanations of one text, each once: what is not everybody's says whose it is."""
    said: dict[str, list[str]] = {}
    for explanation in explanations:
        for note in explanation.notes:
            said.setdefault(note, []).append(explanation.method)
    found = []
    for note, methods in said.items():
        shared = len(methods) == len(explanations)
        found.append(note if shared else f"{', '.join(methods)}: {note}")
    return tuple(found)


_FEW = 500
_MAP_TOKENS = 256


def _few(method: type[Explainer]) -> dict[str, int]:
    """The settings with which a method that samples asks 500 masks, and no more."""
    known = setting_types(method)
    return {name: _FEW for name in ("n_samples", "budget") if "masks" in method.needs and name in known}


def _usual() -> set[str]:
    """All methods but those that must be asked for by name."""
    return {name for name, method in known_methods().items() if not method.opt_in}


def _maps(model: Model, document: Document) -> Float[np.ndarray, "layer head query key"] | None:
    """The attention maps to draw, unless there are none or they would fill the memory."""
    if not isinstance(model, Attending) or "attention" not in model.offers or len(document.ids) > _MAP_TOKENS:
        return None
    try:
        return model.maps(document)
    except HeedfulError:
        return None
