"""`context`: which tokens of a generated text depend on its context, and on what in it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Int

from heedful.document import SPECIAL, Document, Unit, check_unit
from heedful.document.note import Note
from heedful.errors import BadInput, in_short, unknown_name
from heedful.explainers import Explainer, methods
from heedful.explainers.planning import configure_for
from heedful.explanation import Setting
from heedful.family import check_count, setting_types
from heedful.generation.attribute import FEW, output_of
from heedful.generation.attribution import Attribution
from heedful.generation.continuation import Continuation, Foil
from heedful.generation.dependence import Dependence, dependence, null_contexts, output_p_values, token_p_values
from heedful.generation.explained import Task, explained
from heedful.generation.generation import Generation
from heedful.generation.prompt import read_prompt, split_passages
from heedful.generation.reliance import Reliance
from heedful.generation.written import fixed, groups_of, with_output
from heedful.models import Model, check_offers
from heedful.models.budget import Budget
from heedful.models.language import LanguageModel, check_writes
from heedful.perturb.masks import generator
from heedful.progress import Progress, progress_of, show_progress

_CHOSEN = Note(
    "The model wrote the output with this context, which makes its tokens likelier whatever the context says. "
    "Therefore a null context counts by the token that it makes most likely itself, if that gains more. The error rate "
    "is not exact: with foreign contexts 1 % of tokens were called reliant, and any token in 12 % of outputs "
    "(60 outputs of stories15m)."
)


def context(
    model: Model,
    context: str | Sequence[str],
    prompt: str,
    output: "str | Sequence[int] | Generation | None" = None,
    *,
    method: str = "shapley-sampled",
    unit: Unit | None = None,
    alpha: float = 0.05,
    null: str = "foreign",
    foreign: Sequence[str] | None = None,
    n_null: int = 39,
    seed: int = 0,
    chat: bool | None = None,
    max_new: int = 40,
    memory: str | int | float | None = None,
    progress: Progress | bool | None = show_progress,
    **settings: object,
) -> Reliance:
    """Which tokens of an output depend on the context, and which units of the context each of them came from.

    `output` None is what the model writes greedily with the context, at most `max_new` tokens. The output is held
    fixed. `Reliance` says what is tested; `n_null` null contexts are sentences about other things (`null="foreign"`, 60
    bundled English ones unless texts are given as `foreign`) or the context's own words in random order ("shuffled").
    `method` finds the sources, and has the other keywords as settings. They are units of the context: its sentences, or
    the words of a single sentence, unless `unit` chooses others.
    """
    start, writer = perf_counter(), check_writes(model)
    asked = _checked(writer, context, prompt, chat, alpha, n_null)
    whole = with_output(writer, asked, output_of(writer, prompt, asked, output, context, chat, max_new))
    document = _only_context(whole)
    explainer = _finder(writer, document, method, unit, settings)
    drawn = null_contexts(split_passages(context), null, foreign, n_null, generator(seed, whole))
    with progress_of(progress, "null contexts") as watch:
        measured = _compared(writer, prompt, chat, whole.ids[len(asked.ids) :].tolist(), [whole], drawn, watch)
    with progress_of(progress, "masks") as watch:
        budget = Budget.of(memory, None, watch)
        task = Task(writer, asked, document, "tokens", "log-probability")
        attribution = _sources(task, whole, measured.instead, explainer, budget)
    chosen = output is None or isinstance(output, Generation)
    asked_for = {"alpha": alpha, "null": null, "n_null": n_null, "seed": seed}
    return _tested(measured, chosen, attribution, asked_for, start)


def _checked(
    writer: LanguageModel, context: str | Sequence[str], prompt: str, chat: bool | None, alpha: float, n_null: int
) -> Document:
    """Context and prompt as the model reads them, once the arguments are known to make sense."""
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise BadInput(f"alpha is an error rate above 0 and below 1; {in_short(alpha)} was given.")
    check_count("n_null", n_null, 1, 100_000)
    if 1 / (1 + n_null) > alpha + 1e-12:
        fewest = int(np.ceil(1 / alpha - 1 - 1e-9))
        raise BadInput(f"With {n_null} null contexts no p-value can be {alpha:g}; give n_null={fewest} or more.")
    asked = read_prompt(writer, prompt, context, chat)
    if asked.passages is None:
        raise BadInput("There is no context; give at least one passage.")
    return asked


def _compared(
    writer: LanguageModel,
    prompt: str,
    chat: bool | None,
    ids: list[int],
    texts: list[Document],
    drawn: list[list[str]],
    watch: Progress,
) -> Dependence:
    """What the context changes, and what the null contexts do; `texts` begins with the output behind the context."""
    for passages in drawn:
        try:
            texts.append(with_output(writer, read_prompt(writer, prompt, passages, chat), ids))
        except BadInput as error:
            raise BadInput(
                f"The model cannot read a null context: {error} "
                "Null contexts have about as many words as the context; shorten it, or give other texts as foreign."
            ) from error
    return dependence(writer, texts, with_output(writer, read_prompt(writer, prompt, None, chat), ids), watch)


def _tested(
    measured: Dependence, chosen: bool, attribution: Attribution, asked_for: Mapping[str, Any], start: float
) -> Reliance:
    """The result; `chosen` says that the model wrote the output with the context."""
    statistic = measured.own_gains if chosen else measured.gains
    return Reliance(
        attribution.outputs,
        measured.kl,
        measured.log_p,
        measured.log_p_without,
        token_p_values(statistic),
        output_p_values(statistic),
        attribution,
        asked_for,
        {"texts": len(statistic) + 1, "masks": attribution.facts["masks"], "seconds": perf_counter() - start},
        (*([_CHOSEN] if chosen else []), *attribution.notes),
    )


def _finder(
    writer: LanguageModel, document: Document, method: str, unit: Unit | None, settings: Mapping[str, object]
) -> Explainer:
    """The method that finds the sources: units of the context, its sentences or the words of a single one."""
    chosen = unit or ("sentence" if document.n_units("sentence") > 1 else "word")
    if method not in methods():
        raise unknown_name("method", method, methods())
    # A sentence of unknown tokens disturbs the model more than one that is not there.
    absence = {"absence": "delete"} if "absence" in setting_types(methods()[method]) else {}
    explainer = configure_for(writer, method, {**absence, **settings, "unit": chosen}, FEW)
    check_offers(writer, explainer.needs, explainer.name)
    check_unit(chosen)
    return explainer


def _sources(
    task: Task, whole: Document, instead: Int[np.ndarray, "token"], explainer: Explainer, budget: Budget
) -> Attribution:
    """The attribution of every token, against another, to units of the context; the rest is never removed."""
    start = perf_counter()
    names, positions = groups_of(whole, len(instead), "tokens")
    others = Continuation(task.writer, names, positions, written=tuple(instead.tolist()))
    foil = Foil(others, task.document, tuple(range(len(task.document.ids))))
    explanations, n_masks = explained(task, foil, explainer, budget)
    notes = tuple(dict.fromkeys(note for explanation in explanations for note in explanation.notes))
    facts = {"masks": n_masks, "seconds": perf_counter() - start}
    asked_for: dict[str, Setting] = {"of": "tokens", "measure": "contrast", "against": None, "in_context": True}
    return Attribution(whole, names, positions, len(instead), explanations, facts, notes, asked_for)


def _only_context(whole: Document) -> Document:
    """The document with units in its context alone."""
    assert whole.passages is not None
    inside = (whole.passages != SPECIAL) & (fixed(whole).words != SPECIAL)
    words = np.full(len(whole.ids), SPECIAL, dtype=np.int64)
    words[inside] = np.unique(whole.words[inside], return_inverse=True)[1]
    return replace(whole, words=words)
