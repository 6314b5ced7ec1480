"""`attribute`: what every part of a generated text came from."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Literal

from heedful.document import Document, Unit
from heedful.errors import BadInput, unknown_name
from heedful.explainers import MaskingExplainer, methods
from heedful.explainers.planning import Announce, check_callback, configure_for
from heedful.family import setting_types
from heedful.generation.attribution import Attribution
from heedful.generation.explained import Quantity, Task, explained, second_text
from heedful.generation.generate import generate
from heedful.generation.generation import Generation
from heedful.generation.prompt import read_prompt
from heedful.generation.written import Of, fixed, groups_of, with_output
from heedful.models import Model, check_offers
from heedful.models.budget import Budget
from heedful.models.language import LanguageModel, check_writes
from heedful.progress import Progress, progress_of, show_progress

FEW = 256
"""The masks of a method that samples, unless the user says otherwise."""
Earlier = Literal["fixed", "source"]


def attribute(
    model: Model,
    prompt: str,
    output: "str | Sequence[int] | Generation | None" = None,
    method: str = "shapley-sampled",
    *,
    of: Of = "tokens",
    against: str | None = None,
    measure: Quantity = "log-probability",
    context: str | Sequence[str] | None = None,
    unit: Unit | None = None,
    earlier: Earlier | None = None,
    chat: bool | None = None,
    max_new: int = 40,
    memory: str | int | float | None = None,
    seconds: int | float | None = None,
    half: bool = False,
    progress: Progress | bool | None = show_progress,
    announce: Announce | None = None,
    **settings: object,
) -> Attribution:
    """What each part of a generated text came from: words of the prompt, passages of its context, or earlier output.

    `output` is the text to explain, its tokens, or a result of `heedful.generate`; None writes at most `max_new` tokens
    greedily. `of` says what is explained: each of its "tokens" or "words", the whole "sequence", or a span
    (start, end). `method` is a name of `heedful.methods()`, or "frozen-cache": Shapley values of the direct effect,
    where only the output does not attend to a source. `measure` is "log-probability", "logit", "entropy", or, with a
    context, "kl" (the divergence from the distribution without the context) or "context-gain" (log p less log p without
    the context). `against` is another output; the difference of both is explained.

    Sources are the passages of the `context` if there is one, else words; `unit` chooses another. `earlier` says
    whether output that was written before is a "source" or "fixed"; methods that remove sources keep it fixed by
    default. `absence` says how a source is removed: by default passages are deleted, and so are words where the model
    has no token to replace them but one that ends a text. Every other keyword is a setting of the method; samples are
    few (256) unless `n_samples` is given.
    `announce` is called with the forecast of time and memory, before a text of many masks is evaluated.
    """
    writer = check_writes(model)
    check_callback(announce)
    chosen = unit or ("word" if context is None else "passage")
    _check_choices(method, earlier, chosen, settings)
    name, given = ("shapley-sampled", {"absence": "cut"}) if method == "frozen-cache" else (method, {})
    if name == "shapley-sampled":
        # With a few hundred masks its error is half that of walks (benchmarks/generation/coverage.py).
        given = {"design": "stratified", **given}
    if "absence" in setting_types(methods()[name]) and _deletes(writer, context, earlier):
        given = {"absence": "delete", **given}
    explainer = configure_for(model, name, {**given, **settings, "unit": chosen}, FEW)
    check_offers(model, explainer.needs, explainer.name)
    read = read_prompt(writer, prompt, context, chat)
    whole = with_output(writer, read, output_of(writer, prompt, read, output, context, chat, max_new))
    masking = isinstance(explainer, MaskingExplainer)
    fixes = masking if earlier is None else earlier == "fixed"
    task = Task(writer, read, fixed(whole) if fixes else whole, of, measure)
    foil = second_text(task, against, None if context is None else read_prompt(writer, prompt, None, chat))
    start = perf_counter()
    with progress_of(progress, "masks" if masking else "parts of the output") as watch:
        explanations, n_masks = explained(task, foil, explainer, Budget.of(memory, seconds, watch, half), announce)
    facts = {"masks": n_masks, "seconds": perf_counter() - start}
    names, positions = groups_of(whole, task.n_written, of)
    notes = tuple(dict.fromkeys(note for explanation in explanations for note in explanation.notes))
    asked_of = of if isinstance(of, str) else f"{of[0]}:{of[1]}"
    asked = {"of": asked_of, "measure": measure, "against": against, "in_context": context is not None}
    return Attribution(whole, names, positions, task.n_written, explanations, facts, notes, asked)


def _deletes(writer: LanguageModel, context: str | Sequence[str] | None, earlier: Earlier | None) -> bool:
    """Whether sources are deleted by default: passages, and where their replacement would end the text.

    A language model reads a passage of end tokens as many texts, and says so in every score.
    """
    return earlier != "source" and (context is not None or writer.replacement_id in writer.end_ids)


def _check_choices(method: str, earlier: Earlier | None, unit: Unit, settings: Mapping[str, object]) -> None:
    """Refuses names that do not exist, and choices that exclude each other."""
    if method not in (*methods(), "frozen-cache"):
        raise unknown_name("method", method, (*methods(), "frozen-cache"))
    if earlier not in (None, "fixed", "source"):
        raise unknown_name("choice of earlier output", earlier, ("fixed", "source"))
    if earlier == "source" and unit == "passage":
        raise BadInput('Earlier output is in no passage; leave `earlier` out, or give unit="word".')
    if method == "frozen-cache" and settings.get("absence", "cut") != "cut":
        raise BadInput('frozen-cache has the absence "cut"; for another one choose method="shapley-sampled".')


def output_of(
    writer: LanguageModel,
    prompt: str,
    document: Document,
    output: "str | Sequence[int] | Generation | None",
    context: str | Sequence[str] | None,
    chat: bool | None,
    max_new: int,
) -> str | Sequence[int]:
    """The output to explain; without one, what the model writes greedily, less the token that ends it."""
    if output is None:
        output = generate(writer, prompt, context=context, chat=chat, max_new=max_new)
    if not isinstance(output, Generation):
        return output
    if output.document.ids.tolist() != document.ids.tolist():
        raise BadInput("The output was generated after another prompt; give the same prompt and context.")
    ids = list(output.ids)
    return ids[:-1] if ids and ids[-1] in writer.end_ids else ids
