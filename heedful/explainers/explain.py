"""`explain`: one text, or each of many texts, by one method."""

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, overload, runtime_checkable

from heedful.datasets.texts import holds_many, texts_of
from heedful.document import Pair
from heedful.errors import BadInput
from heedful.explainers import configure
from heedful.explainers.many_texts import Errors, ManyTexts
from heedful.explainers.planning import ANNOUNCED, Announce, check_callback, mask_forecast
from heedful.explainers.run import run_explainer, with_default_unit, with_probes
from heedful.explanation import Explanation
from heedful.explanations import Explanations
from heedful.models import Model, model_and_target
from heedful.models.budget import Budget
from heedful.models.question import Input, ask
from heedful.progress import Progress, progress_of, say, show_progress
from heedful.target import Scale

P = ParamSpec("P")


@runtime_checkable
class _OneOrMany(Protocol[P]):
    """One text gives one explanation, many give `Explanations`."""

    @overload
    def __call__(self, model: Model, text: str | Pair, /, *args: P.args, **kwargs: P.kwargs) -> Explanation: ...
    @overload
    def __call__(
        self, model: Model, text: list[Any] | tuple[Any, ...], /, *args: P.args, **kwargs: P.kwargs
    ) -> Explanations: ...
    @overload
    def __call__(self, model: Model, text: Input, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


def _one_or_many(function: Callable[Concatenate[Model, Input, P], Any]) -> _OneOrMany[P]:
    # For type checkers alone: the result depends on the text, everything else is written once.
    return function


@_one_or_many
def explain(
    model: Model,
    data: Input = None,
    method: str = "lime",
    *,
    target: Any = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    text: str | None = None,
    label: str | bool | Sequence[object] | None = None,
    id: str | None = None,
    errors: Errors = "keep",
    memory: str | int | float | None = None,
    seconds: int | float | None = None,
    half: bool = False,
    progress: Progress | bool | None = show_progress,
    announce: Announce | None = None,
    **settings: object,
) -> Any:
    """Explains a text, or each of many texts, by one method.

    `data` is a text, a `heedful.Pair` or an image; or a list of them, a data frame or series of pandas or polars, a
    `datasets.Dataset`, or the path of a .csv, .tsv, .jsonl, .parquet or .txt file. `text`, `label` and `id` name
    columns of a table; obvious ones are found by name. Many texts give `Explanations`, in which a text that cannot be
    explained has a `Refusal`; with `errors="raise"`, or if no text can be explained, that is an error. Ctrl-C gives
    the texts that were finished.

    `target` is a class by number or name (of a language model: the next token), None for the predicted class, or a
    list with one for each text; with `against` the target is the difference of two classes. A `heedful.Feature` is a
    target too: how active a feature of a layer is in the text. `scale` is "logit" (the
    model's output as it is), "log-probability" or "probability". `memory` ("2GB") and `seconds` are the memory and time
    limits: passes are split and samples reduced to fit, or the run is refused with its cost. `half` evaluates masks in
    half precision where that is measured to change values little. `progress` is called with the masks done and their
    total, for many texts with the texts done; by default a line shows them after a few seconds, and False shows
    nothing. `announce` is called with the forecast of the cost, before the masks of a text are evaluated. Ctrl-C during
    sampling gives the explanation from the masks evaluated so far. Every other keyword is a setting of the method:
    `unit`, and the fields of `heedful.methods()[method]`.
    """
    explainer = configure(method, settings)
    check_callback(announce)
    model, target = model_and_target(model, target, against, scale)
    if data is None and text is not None:
        # As before there were columns: explain(model, text="a fine film").
        data, text = text, None
    if holds_many(data):
        with progress_of(progress, "texts") as watch:
            budget, texts = Budget.of(memory, seconds, lambda *_: None, half), texts_of(data, text, label, id)
            if progress is show_progress and texts is not data:
                say(texts.about)
            return ManyTexts(model, explainer, texts, target, against, scale, budget, errors).explain_all(watch)
    if text is not None or label is not None or id is not None:
        raise BadInput("text, label and id are names of columns; leave them out for one text.")
    with progress_of(progress, "masks") as watch:
        budget = Budget.of(memory, seconds, watch, half)
        question = ask(model, [data], target, against, scale, budget)
        cost = (
            None if announce is None else mask_forecast([with_default_unit(explainer, question)], question, ANNOUNCED)
        )
        if announce is not None and cost is not None:
            announce(cost.limited(budget.seconds))
        return with_probes(run_explainer(explainer, question)[0], 0 if cost is None else cost.n_probes)
