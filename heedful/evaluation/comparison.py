"""Several methods on one text, side by side."""

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.document import Document
from heedful.document.note import Note
from heedful.errors import BadInput, HeedfulError, TooFewSamples, in_short, unknown_name
from heedful.evaluation.agreement import rank_correlations, top_overlap
from heedful.evaluation.disagreement import Disagreement, explain_disagreement
from heedful.explainers import Explainer, configure, default_methods, every_method, settings_of
from heedful.explainers import methods as all_methods
from heedful.explainers.planning import ANNOUNCED, Announce, check_callback, configure_for, mask_forecast
from heedful.explainers.run import run_explainer, with_default_unit, with_probes
from heedful.explanation import Explanation
from heedful.models import Attending, Model, TargetOfModel, check_model, model_and_target
from heedful.models.budget import Budget
from heedful.models.question import Input, MaskValues, Question, Request, ask
from heedful.models.recording import Recordable, read_maps
from heedful.progress import Progress, progress_of, show_progress
from heedful.target import Scale


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """Explanations of one text for one target, why other methods have none, and the attention maps.

    `causes` says why the explanations differ; None if there is only one, or if the user stopped the run.
    """

    explanations: tuple[Explanation, ...]
    skipped: Mapping[str, str]
    maps: Float[np.ndarray, "layer head query key"] | None
    causes: Disagreement | None = None
    skip_sentences: Mapping[str, str] = field(default_factory=dict)
    """The reasons in `skipped` without the method's name at the start."""

    @property
    def document(self) -> Document:
        """The document that all explanations share."""
        return self.explanations[0].document

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes of all explanations, each once; a note that not all have names its methods."""
        return notes_of(self.explanations)

    @property
    def reasons(self) -> dict[str, tuple[str, ...]]:
        """Why methods have no explanation: each reason once, with its methods."""
        methods_of: dict[str, tuple[str, ...]] = {}
        for method, reason in self.skipped.items():
            sentence = self.skip_sentences.get(method, reason)
            methods_of[sentence] = (*methods_of.get(sentence, ()), method)
        return methods_of

    def __getitem__(self, method: str) -> Explanation:
        by_method = {explanation.method: explanation for explanation in self.explanations}
        if method in self.skipped:
            raise BadInput(self.skipped[method])
        if method not in by_method:
            raise unknown_name("method", method, by_method)
        return by_method[method]

    def agreement(self) -> Float[np.ndarray, "method method"]:
        """Spearman's ρ between every two methods. A description: two methods may agree and both be wrong."""
        return rank_correlations(self.explanations)

    def overlap(self) -> Float[np.ndarray, "method method"]:
        """The share of the five strongest units that two methods have in common. A description, like `agreement`."""
        return np.array([[top_overlap(a, b) for b in self.explanations] for a in self.explanations])

    def as_dict(self) -> dict[str, object]:
        """Everything but the times and the attention maps, ready for JSON."""
        agreement = [[None if isnan(value) else value for value in row] for row in self.agreement().tolist()]
        explanations = [explanation.as_dict() for explanation in self.explanations]
        causes = None if self.causes is None else self.causes.as_dict()
        return {"explanations": explanations, "skipped": dict(self.skipped), "agreement": agreement, "causes": causes}

    def __repr__(self) -> str:
        methods = ", ".join(explanation.method for explanation in self.explanations[:6])
        more = f" and {len(self.explanations) - 6} more" if len(self.explanations) > 6 else ""
        return f"<comparison of {methods}{more} on {in_short(self.document.text)}>"

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .html, .json, .png, .svg or .pdf."""
        from heedful.render import write

        write(self, Path(path))

    def _repr_html_(self) -> str:
        # As on Explanation: the notebook protocol puts the drawing on the value.
        from heedful.render.comparison_page import notebook_fragment

        return notebook_fragment(self.explanations)


def compare(
    model: Model,
    text: Input,
    methods: str | Sequence[str] | None = None,
    *,
    target: Request | TargetOfModel = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    memory: str | int | float | None = None,
    seconds: int | float | None = None,
    half: bool = False,
    progress: Progress | bool | None = show_progress,
    announce: Announce | None = None,
    **settings: object,
) -> Comparison:
    """Explains a text by several methods; attention, gradients and masks are computed once for all of them.

    The default methods are one for each idea, such as attention or LIME; "all" are those of `heedful.methods()`, except
    those that must be named. A setting such as `unit` or `n_samples` goes to every method that has it. Where every
    sample costs a forward pass, sampling methods draw 500 samples, unless `n_samples` or `budget` is set. `memory`
    ("2GB") limits every pass; `seconds` are divided among the methods that evaluate masks; `progress` is called with
    the masks of the running method, and `announce`, before the start, with the expected cost of all methods. A method
    that cannot explain this model or this text is listed in `skipped` with its reason.
    """
    check_callback(announce)
    model, request = model_and_target(model, target, against, scale)
    check_model(model)
    names = default_methods(model.offers) if methods is None else _listed(methods)
    if not names:
        raise BadInput('No method was named; leave methods out for the default methods, or give "all".')
    own = settings_of(names, settings)
    n_masking = sum("masks" in all_methods()[name].needs for name in names)
    budget = Budget.of(memory, seconds, lambda *_: None, half)
    each = replace(budget, seconds=budget.seconds / max(1, n_masking))
    question = ask(model, [text], request, against, scale, each)
    if "pooling" not in model.offers and not half:
        # Not with half precision: every method measures its error and notes it.
        question = replace(question, mask_values=MaskValues())
    explainers = [
        with_default_unit(configure_for(model, name, chosen, FEW_SAMPLES), question) for name, chosen in own.items()
    ]
    able = [explainer for explainer in explainers if explainer.needs <= model.offers]
    cost = None if announce is None else mask_forecast(able, question, ANNOUNCED)
    if announce is not None and cost is not None:
        announce(cost.limited(budget.seconds))
    plain = {e.name for e, chosen in zip(explainers, own.values(), strict=True) if e == configure(e.name, chosen)}
    lowered = set() if {"n_samples", "budget"} & settings.keys() else own.keys() - plain
    with progress_of(progress, "masks") as watch:
        watched = replace(question, budget=replace(each, watch=watch))
        explanations, errors, stopped = _explain_all(explainers, watched, lowered)
    if cost is not None:
        explanations = _with_forecast(explanations, cost.n_probes)
    return Comparison(
        tuple(explanations),
        {method: str(error) for method, error in errors.items()},
        _maps(question),
        None if stopped else _causes(question, explanations),
        {method: error.sentence for method, error in errors.items()},
    )


def _explain_all(
    explainers: Sequence[Explainer], question: Question, lowered: Set[str]
) -> tuple[list[Explanation], dict[str, HeedfulError], bool]:
    """The explanations, why other methods have none, and whether the user stopped the run.

    `lowered` are the methods whose number of masks `compare` itself lowered, which may be the reason for an error.
    """
    explanations: list[Explanation] = []
    skipped: dict[str, HeedfulError] = {}
    stopped = False
    for explainer in explainers:
        if stopped:
            skipped[explainer.name] = HeedfulError("The user stopped the run before this method started.")
            continue
        try:
            explanation = run_explainer(explainer, question)[0]
            short = explainer.name in lowered and 2 ** len(explanation.scores) > FEW_SAMPLES
            explanations.append(explanation.noted(_FEWER) if short else explanation)
            stopped = explanations[-1].was_stopped
        except KeyboardInterrupt:
            if not explanations:
                raise
            skipped[explainer.name], stopped = HeedfulError("The user stopped this method."), True
        except TooFewSamples as error:
            hint = " compare uses that many unless n_samples is set." if explainer.name in lowered else ""
            skipped[explainer.name] = TooFewSamples(f"{error.sentence}{hint}", error.subject)
        except HeedfulError as error:
            skipped[explainer.name] = error
    if not explanations:
        raise BadInput(" ".join(dict.fromkeys(map(str, skipped.values()))))
    return explanations, skipped, stopped


def _causes(question: Question, explanations: Sequence[Explanation]) -> Disagreement | None:
    """Why the explanations differ; None if there is only one, or if the causes cannot be computed."""
    if len(explanations) > 1:
        with suppress(HeedfulError, KeyboardInterrupt):
            return explain_disagreement(question, explanations)
    return None


def notes_of(explanations: Sequence[Explanation]) -> tuple[Note, ...]:
    """The notes of explanations of one text, each once; a note that not all have begins with its methods.

    Notes of the document belong to no method.
    """
    of_document = {note for explanation in explanations for note in explanation.document.notes}
    methods_of: dict[Note, list[str]] = {}
    for explanation in explanations:
        for note in explanation.notes:
            methods_of.setdefault(note, []).append(explanation.method)
    notes = []
    for note, methods in methods_of.items():
        plain = len(methods) == len(explanations) or note in of_document
        notes.append(note if plain else Note(f"{', '.join(methods)}: {note}", note.kind))
    return tuple(notes)


FEW_SAMPLES = 500
"""The samples of methods that draw them, where each costs a forward pass."""
_FEWER = (
    Note(
        f"compare evaluates at most {FEW_SAMPLES} masks where each costs a forward pass; n_samples sets their number.",
        "limited",
    ),
)
_MAP_TOKENS = 256


def _listed(methods: object) -> list[str]:
    if isinstance(methods, str):
        return every_method() if methods == "all" else [methods]
    try:
        return list(methods)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        raise BadInput(f"methods must be a list of names; {in_short(methods)} was given.") from None


def _maps(question: Question) -> Float[np.ndarray, "layer head query key"] | None:
    """The attention maps to draw; None if the model has none or they would need too much memory."""
    model, document = question.model, question.documents[0]
    if not isinstance(model, Attending) or "attention" not in model.offers or len(document.ids) > _MAP_TOKENS:
        return None
    try:
        if isinstance(model, Recordable):
            return read_maps(model, document, question.recording, 0)
        return model.maps(document)
    except HeedfulError:
        return None


def _with_forecast(explanations: Sequence[Explanation], n_probes: int) -> list[Explanation]:
    """The explanations, with the masks that the forecast evaluated counted by the first method that masks."""
    first = next((place for place, explanation in enumerate(explanations) if "masks" in explanation.facts), None)
    return [with_probes(e, n_probes if place == first else 0) for place, e in enumerate(explanations)]
