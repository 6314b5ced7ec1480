"""`explain`: one text, or each of a list of texts, by one method."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from time import perf_counter
from typing import Any, Concatenate, ParamSpec, Protocol, overload, runtime_checkable

from heedful.document import Pair
from heedful.errors import BadInput
from heedful.explainers import Explainer, configure
from heedful.explainers.planning import Announce, check_callback, mask_forecast, within_budget
from heedful.explanation import Explanation
from heedful.models import Model, check_offers
from heedful.models.budget import Budget, Progress
from heedful.models.question import Input, MaskValues, Question, Request, ask
from heedful.models.recording import Recordable, portions
from heedful.target import Scale

_BATCH = 128
P = ParamSpec("P")


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


@runtime_checkable
class _OneOrMany(Protocol[P]):
    """One text gives one explanation, a list gives a list."""

    @overload
    def __call__(self, model: Model, text: str | Pair, /, *args: P.args, **kwargs: P.kwargs) -> Explanation: ...
    @overload
    def __call__(
        self, model: Model, text: list[Any] | tuple[Any, ...], /, *args: P.args, **kwargs: P.kwargs
    ) -> list[Explanation]: ...
    @overload
    def __call__(self, model: Model, text: Input, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


def _one_or_many(function: Callable[Concatenate[Model, Input, P], Any]) -> _OneOrMany[P]:
    # For type checkers alone: the result depends on the text, everything else is written once.
    return function


@_one_or_many
def explain(
    model: Model,
    text: Input,
    method: str = "lime",
    *,
    target: Request = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    memory: str | int | float | None = None,
    seconds: int | float | None = None,
    half: bool = False,
    progress: Progress = lambda *_: None,
    announce: Announce | None = None,
    **settings: object,
) -> Any:
    """Explains a text, or each of a list of texts, by one method.

    `target` is a class by number or name (of a language model: the next token), or None for the predicted class; with
    `against` the target is the difference of two classes. `scale` is "logit" (the model's output as it is),
    "log-probability" or "probability". A pair of texts is a `heedful.Pair`. `memory` ("2GB") and `seconds` are the
    memory and time limits: passes are split and samples reduced to fit, or the run is refused with its cost. `half`
    evaluates masks in half precision where that is measured to change values little. `progress` is called with the
    masks done and their total, for a list with the texts done; `announce` with the forecast of the cost, before the
    masks of a text are evaluated. Ctrl-C during sampling gives the explanation from the masks evaluated so far. Every
    other keyword is a setting of the method: `unit`, and the fields of `heedful.methods()[method]`.
    """
    explainer = configure(method, settings)
    check_callback(announce)
    budget = Budget.of(memory, seconds, progress, half)
    if not isinstance(text, list | tuple):
        question = ask(model, [text], target, against, scale, budget)
        cost = None if announce is None else mask_forecast([with_default_unit(explainer, question)], question)
        if announce is not None and cost is not None:
            announce(cost.limited(budget.seconds))
        return with_probes(run_explainer(explainer, question)[0], 0 if cost is None else cost.n_probes)
    explanations: list[Explanation] = []
    budget = replace(budget, seconds=budget.seconds / max(1, len(text)), watch=lambda *_: None)
    for start in range(0, len(text), _BATCH):
        question = ask(model, text[start : start + _BATCH], target, against, scale, budget)
        batches = portions(model, question.documents) if isinstance(model, Recordable) else [question.documents]
        for documents in batches:
            explanations += run_explainer(explainer, replace(question, documents=tuple(documents)))
            progress(len(explanations), len(text))
            if any(explanation.was_stopped for explanation in explanations[-len(documents) :]):
                raise KeyboardInterrupt
    return explanations
