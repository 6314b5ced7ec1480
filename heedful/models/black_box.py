"""Any function from texts to scores as a model; only its outputs are used."""

import re
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document, check_text
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported, describe_error
from heedful.models import Model
from heedful.target import Returns, Target

WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
"""What counts as a word in a text for a function: letters, digits and the marks inside of a word, or one other mark."""
_MASKS = 256
_PROBES = ["a text", "another", "a third one"]
_ROUNDING = 1e-6


@final
class BlackBox(Model):
    """A function `list[str] -> scores (texts, classes)`; masked texts have words deleted or replaced.

    `probe_forwards` counts the texts that the function was evaluated on when it was wrapped.
    """

    fingerprint = "function"
    withheld = MappingProxyType(dict.fromkeys(("attention", "layers", "gradients"), "Only its outputs are used."))

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        classes: Sequence[str] | None,
        replacement: str,
        returns: Returns | None = None,
    ) -> None:
        self.function = function
        self.family = f"function {getattr(function, '__name__', 'of texts')}"
        self.replacement = replacement
        self._labels: tuple[str, ...] | None = None
        self._n_scores = 0
        first = self._evaluate(_PROBES)
        self._n_scores = first.shape[1]
        names = self._labels or [f"score {number}" for number in range(self._n_scores)]
        self.classes = tuple(names if classes is None else classes)
        if len(self.classes) != self._n_scores:
            raise BadInput(
                f"The function returns {self._n_scores} scores per text, but {len(self.classes)} classes were named."
            )
        notes = () if returns is not None else (*_unlike_probabilities(first), *_like_labels(first))
        self.returns = returns or ("probabilities" if are_probabilities(first) else "scores")
        self.notes = (*_changes(first, self._evaluate(_PROBES)), *notes)
        self.probe_forwards = 2 * len(_PROBES)

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        words = list(WORD.finditer(check_text(text)))
        return Document(
            text=check_text(text),
            ids=np.arange(len(words)),
            pieces=tuple(word.group() for word in words),
            spans=tuple(word.span() for word in words),
            words=np.arange(len(words)),
            known=np.ones(len(words), dtype=bool),
            notes=self.notes,
        )

    def predict(self, texts: Sequence[str]) -> Float[np.ndarray, "batch class"]:
        """The logits of every text."""
        return self._evaluate(list(texts)) if texts else np.zeros((0, len(self.classes)))

    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        """The logits of every document."""
        return self.predict([document.text for document in documents])

    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,
    ) -> Float[np.ndarray, "mask"]:
        """The target at every mask."""
        kind, _, word = absence.partition(":")
        if kind not in ("replace", "delete"):
            raise Unsupported(
                f"The absence is {absence!r}; for a function of texts give replace, replace:WORD or delete."
            )
        gone = (word or self.replacement) if kind == "replace" else ""
        scores = []
        n = at_once or _MASKS
        for start in range(0, len(keep), n):
            scores.append(self._evaluate([_masked_text(document, row, gone) for row in keep[start : start + n]]))
        return target.of(np.concatenate(scores))

    def masks_at_once(self, document: Document, memory: int | None) -> int:  # noqa: ARG002
        """How many masks are evaluated together."""
        return _MASKS

    def _evaluate(self, texts: list[str]) -> Float[np.ndarray, "batch class"]:
        """The function's scores, checked."""
        try:
            output = self.function(list(texts))
        # A user's function may raise anything.
        except Exception as error:
            raise BadInput(self._failure(texts, error)) from error
        output = self._unlabelled(output)
        try:
            scores = np.asarray(_numbers(output), dtype=np.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise BadInput(
                f"The function did not return numbers for a list of texts ({describe_error(error)})."
            ) from error
        scores = scores[:, None] if scores.ndim == 1 else scores
        if scores.ndim != 2 or len(scores) != len(texts) or not scores.shape[1]:
            raise BadInput(
                f"The function returned scores of shape {scores.shape} for {len(texts)} texts; the shape must "
                "be (texts, classes)."
            )
        if self._n_scores not in (0, scores.shape[1]):
            raise BadInput(
                f"The function returned {self._n_scores} scores per text, then {scores.shape[1]}; the number "
                "of classes must not change."
            )
        for text, row in zip(texts, scores, strict=True):
            if not np.isfinite(row).all():
                wrong = row[~np.isfinite(row)][0]
                raise BadInput(f"The function returned {wrong} for {_named(text)}; scores must be finite{_hint(text)}.")
            if self.returns == "probabilities" and not (row.min() >= -_ROUNDING and row.max() <= 1 + _ROUNDING):
                wrong = row[np.abs(row - 0.5).argmax()]
                raise BadInput(
                    f"The function returned {wrong:.4g} for {_named(text)}, not a probability; if it returns "
                    'something else, say so: heedful.wrap(…, returns="scores").'
                )
        return scores

    def _unlabelled(self, output: Any) -> Any:
        """Scores in a fixed order of labels, if the function returns labels as transformers' pipelines do."""
        rows = [[row] if isinstance(row, dict) else row for row in output] if isinstance(output, list) else []
        if not rows or not all(isinstance(row, list) and all(_is_label(entry) for entry in row) for row in rows):
            return output
        tables = [{str(entry["label"]): entry["score"] for entry in row} for row in rows]
        self._labels = self._labels or tuple(sorted(tables[0]))
        for table in tables:
            if set(table) != set(self._labels):
                raise BadInput(
                    f"The function returned the labels {', '.join(self._labels)} for one text and "
                    f"{', '.join(sorted(table))} for another; a pipeline returns all of them with top_k=None."
                )
        return [[table[label] for label in self._labels] for table in tables]

    def _failure(self, texts: list[str], error: Exception) -> str:
        """The message that names the text on which the function failed, located by bisection."""
        blank = [text for text in texts if not text.strip()][:1]
        rest = blank if blank and self._fails(blank) else texts
        while len(rest) > 1:
            half = rest[: len(rest) // 2]
            rest = half if self._fails(half) else rest[len(half) :]
        return f"The function failed on {_named(rest[0])} with {describe_error(error)}{_hint(rest[0])}."

    def _fails(self, texts: list[str]) -> bool:
        try:
            self.function(list(texts))
        except Exception:
            return True
        return False


def _is_label(entry: object) -> bool:
    return isinstance(entry, dict) and {"label", "score"} <= set(entry)


def _numbers(output: Any) -> Any:
    if isinstance(output, Tensor):
        return output.detach().double().cpu()
    tensors = isinstance(output, list | tuple) and any(isinstance(row, Tensor) for row in output)
    return [_numbers(row) for row in output] if tensors else output


def _named(text: str) -> str:
    return f"the text {text[:60]!r}{'…' if len(text) > 60 else ''}" if text.strip() else "an empty text"


def _hint(text: str) -> str:
    return "" if text.strip() else '; all words were deleted, so use absence="replace"'


def _changes(first: Float[np.ndarray, "batch class"], again: Float[np.ndarray, "batch class"]) -> tuple[Note, ...]:
    """A note if the function returns two different outputs for the same text."""
    gap = np.abs(first - again)
    if gap.max() <= 1e-6 * np.abs(first).max():
        return ()
    where = np.unravel_index(gap.argmax(), gap.shape)
    changes = (
        f"The function returned {first[where]:.7g} and {again[where]:.7g} for the same text: it is not "
        "deterministic, so explanations differ from run to run."
    )
    return (Note(changes, "not-deterministic"),)


def are_probabilities(scores: Float[np.ndarray, "batch class"]) -> bool:
    """Whether scores lie between 0 and 1 and sum to 1; zeros and ones alone may be counts."""
    return _between(scores) and bool((np.abs(scores.sum(axis=1) - 1) <= 1e-3).all())


def _between(scores: Float[np.ndarray, "batch class"]) -> bool:
    inside = (scores >= 0).all() and (scores <= 1).all() and ((scores > 0) & (scores < 1)).any()
    return scores.shape[1] > 1 and bool(inside)


def _unlike_probabilities(scores: Float[np.ndarray, "batch class"]) -> tuple[Note, ...]:
    """A note if scores between 0 and 1 do not sum to 1."""
    if not _between(scores) or are_probabilities(scores):
        return ()
    sums = scores.sum(axis=1)
    sums_to = (
        f"The function's scores lie between 0 and 1 as probabilities do, but sum to "
        f"{sums[np.abs(sums - 1).argmax()]:.3g}; they are explained as they are. If each is a probability, say so: "
        'heedful.wrap(…, returns="probabilities").'
    )
    return (Note(sums_to, "not-probabilities"),)


def _like_labels(scores: Float[np.ndarray, "batch class"]) -> tuple[Note, ...]:
    """A note if there is one whole number per text, as a classifier's `predict` returns."""
    if scores.shape[1] > 1 or not (scores == scores.round()).all():
        return ()
    labels = (
        "The function returns one whole number per text, as `predict` does. A label hides changes that do not reach "
        "another class, so most scores are 0; wrap `predict_proba` or `decision_function` instead."
    )
    return (Note(labels, "uninformative"),)


def _masked_text(document: Document, keep: Bool[np.ndarray, "token"], gone: str) -> str:
    """The text with removed words replaced; characters between words stay."""
    parts, end = [], 0
    for (start, stop), kept in zip(document.spans, keep, strict=True):
        parts += [document.text[end:start], document.text[start:stop] if kept else gone]
        end = stop
    return "".join([*parts, document.text[end:]])
