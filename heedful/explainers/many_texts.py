"""Many texts explained by one method: what one text's error does to the others, and what is computed at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, final, get_args

import numpy as np
from jaxtyping import Float

from heedful.datasets.labels import class_numbers
from heedful.datasets.texts import Texts
from heedful.document import Document, Pair
from heedful.errors import (
    BadInput,
    CannotWrite,
    HeedfulError,
    MissingPackage,
    Offline,
    Unsupported,
    describe_error,
    unknown_name,
)
from heedful.explainers import Explainer, MaskingExplainer
from heedful.explainers.run import run_explainer
from heedful.explanation import Explanation
from heedful.explanations import Explanations
from heedful.explanations.refusal import Refusal
from heedful.family import setting_types
from heedful.models import Model, check_model, check_offers
from heedful.models.budget import Budget
from heedful.models.question import Question, Request, Wanted, ask
from heedful.models.recording import Recordable, portions
from heedful.progress import Progress
from heedful.target import Returns, Scale, Target, check_request, check_scale, log_probabilities

Errors = Literal["keep", "raise"]
"""What happens to a text that cannot be explained: its place holds a `Refusal`, or the run ends with an error."""
_BATCH = 128
_NOT_OF_A_TEXT = (Unsupported, MissingPackage, Offline, CannotWrite)
"""Errors that all texts would have."""


@final
@dataclass(frozen=True, eq=False)
class Explained:
    """The result of one of many texts: its place, the explanation or refusal, and the prediction."""

    place: int
    item: Explanation | Refusal
    predicted: int | None = None
    confidence: float | None = None
    error: Exception | None = None


@final
@dataclass(frozen=True, eq=False)
class ManyTexts:
    """Many texts and how each is explained; `target` is one for all, or a list with one for each."""

    model: Model
    explainer: Explainer
    texts: Texts
    target: Any = None
    against: int | str | None = None
    scale: Scale = "logit"
    budget: Budget = Budget()  # noqa: RUF009
    errors: Errors = "keep"

    def __post_init__(self) -> None:
        """Refuses what would be wrong for every text."""
        check_model(self.model)
        check_scale(self.scale, self.model.returns, self.model.outputs)
        check_offers(self.model, self.explainer.needs, self.explainer.name)
        if self.errors not in get_args(Errors):
            raise unknown_name("way to handle errors", self.errors, get_args(Errors))
        if len({*map(repr, self.requests)}) == 1:
            check_request(self.requests[0], self.against, self.model.target_names(None))
        assert len(self.labels) == len(self.texts)

    @cached_property
    def requests(self) -> list[Any]:
        """The target of every text, as the user specified it."""
        n, target = len(self.texts), self.target
        if target is None or isinstance(target, int | str | Target | np.integer):
            return [target] * n
        targets = list(target)
        if len(targets) != n:
            raise BadInput(f"target has {len(targets):,} entries for {n:,} texts; give one for each, or one for all.")
        return targets

    @cached_property
    def labels(self) -> tuple[int | None, ...]:
        """The labels of the texts as class numbers of the model; none where its outputs are no classes."""
        if self.model.about_labels:
            return (None,) * len(self.texts)
        return class_numbers(self.texts.labels, self.model.classes, self.texts.classes, self.texts.name)

    @cached_property
    def share(self) -> Budget:
        """The budget of one text: its share of the seconds."""
        return replace(self.budget, seconds=self.budget.seconds / max(1, len(self.texts)))

    @property
    def one_by_one(self) -> bool:
        """Whether the method makes many passes for a text, so that several texts at once gain nothing."""
        sampled = {"n_samples", "n_steps"} & setting_types(type(self.explainer)).keys()
        return isinstance(self.explainer, MaskingExplainer) or bool(sampled)

    def explain_all(self, watch: Progress) -> Explanations:
        """Explains all texts; Ctrl-C gives those that were finished. `watch` is called during a text too."""
        n, results = len(self.texts), list[Explained]()
        run = replace(self, budget=replace(self.budget, watch=lambda *_: watch(len(results), n)))
        try:
            for result in run.explain(range(n), first=True):
                results.append(result)
                watch(len(results), n)
        except KeyboardInterrupt:
            if not results:
                raise
        return self.collect(results)

    def explain(self, places: Sequence[int], first: bool) -> Iterator[Explained]:
        """Explains the texts at these places, each as if it were alone; not always in their order.

        If none of the `first` ones can be explained, that is an error: the commonest of theirs.
        """
        held: list[Explained] | None = [] if first else None
        parts = (places[start : start + _BATCH] for start in range(0, len(places), _BATCH))
        for result in (result for part in parts for result in self._results(part)):
            if held is not None and result.error is not None:
                held.append(result)
                continue
            yield from held or ()
            held = None
            yield result
        if held:
            reasons = [str(result.error) for result in held]
            raise max((result.error for result in held if result.error), key=lambda e: reasons.count(str(e)))

    def _results(self, places: Sequence[int]) -> Iterator[Explained]:
        groups: dict[tuple[Request, int], list[tuple[int, Document]]] = {}
        for place in places:
            request = self.requests[place]
            try:
                question = ask(self.model, [self.texts.texts[place]], request, self.against, self.scale, self.share)
            except _NOT_OF_A_TEXT:
                raise
            except Exception as error:
                yield self._refusal(place, error)
            else:
                key = request, place if self.one_by_one else 0
                groups.setdefault(key, []).append((place, question.documents[0]))
        for (request, _), group in groups.items():
            documents = [document for _, document in group]
            batches = portions(self.model, documents) if isinstance(self.model, Recordable) else [documents]
            rest = iter(group)
            for batch in batches:
                yield from self._explain_part(request, [next(rest) for _ in batch])

    def _explain_part(self, request: Request, part: list[tuple[int, Document]]) -> Iterator[Explained]:
        wanted = Wanted(request, self.against, self.scale)
        question = Question(self.model, tuple(document for _, document in part), wanted, self.share)
        try:
            explanations = run_explainer(self.explainer, question)
            # The passes of the method gave the logits.
            predictions = _predictions(question.logits, self.model.returns)
        except _NOT_OF_A_TEXT:
            raise
        except Exception as error:
            if len(part) == 1:
                yield self._refusal(part[0][0], error)
            else:
                yield from (result for entry in part for result in self._explain_part(request, [entry]))
            return
        if any(explanation.was_stopped for explanation in explanations):
            raise KeyboardInterrupt
        for (place, _), explanation, prediction in zip(part, explanations, predictions, strict=True):
            yield Explained(place, explanation, *prediction)

    def _refusal(self, place: int, error: Exception) -> Explained:
        reason = str(error) if isinstance(error, HeedfulError) else describe_error(error)
        if self.errors == "raise":
            name = self.texts.ids[place]
            number = "" if name == str(place) else f", the one at place {place},"
            raise BadInput(f"Text {name!r}{number} of {len(self.texts):,} cannot be explained: {reason}") from error
        text = self.texts.texts[place]
        shown = text if isinstance(text, str) else f"{text.first} {text.second}" if isinstance(text, Pair) else ""
        return Explained(place, Refusal(shown, reason, self.explainer.name), error=error)

    def collect(self, results: Sequence[Explained]) -> Explanations:
        """The results in the order of the texts."""
        ordered = sorted(results, key=lambda result: result.place)
        return Explanations(
            tuple(result.item for result in ordered),
            tuple(self.texts.ids[result.place] for result in ordered),
            self.model.classes,
            tuple(self.labels[result.place] for result in ordered),
            tuple(result.predicted for result in ordered),
            len(self.texts),
            tuple(result.confidence for result in ordered),
        )


def _predictions(rows: Float[np.ndarray, "batch class"], returns: Returns) -> list[tuple[int | None, float | None]]:
    """The predicted class of every text, and its log-probability or its lead; None of a single output."""
    if rows.shape[1] == 1:
        return [(None, None)] * len(rows)
    rows = rows.astype(np.float64)
    lead = np.diff(np.partition(rows, -2, axis=1)[:, -2:])[:, 0]
    confidence = lead if returns == "scores" else log_probabilities(rows, returns).max(axis=1)
    return [*zip(rows.argmax(axis=1).tolist(), confidence.tolist(), strict=True)]
