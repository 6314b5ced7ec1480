"""The trust report: explainers measured by metrics, with intervals, comparisons, costs and a verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from math import inf
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.document.note import Note
from heedful.errors import brief, in_short
from heedful.evaluation.journal import DocumentResult
from heedful.evaluation.text_scale import TextScale
from heedful.evaluation.verdict import CONTROL, SIGNIFICANCE, Verdict, too_few_texts, verdicts
from heedful.metrics import Metric
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL, mean_intervals
from heedful.statistics.significance import holm, mean_p_values, means


@final
@dataclass(frozen=True)
class Column:
    """A metric of the report, with everything that a reader needs to interpret it."""

    name: str
    question: str
    better: str
    source: str
    not_for: str
    settings: Mapping[str, Any]
    bounds: tuple[float, float] = (-inf, inf)
    """The smallest and the largest possible value."""

    @classmethod
    def of(cls, metric: Metric) -> "Column":
        """The column of a metric."""
        texts = metric.name, metric.question, metric.better, metric.source, metric.not_for
        return cls(*texts, asdict(metric), metric.bounds)

    __repr__ = brief

    def as_dict(self) -> dict[str, Any]:
        """Everything but the bounds, which JSON cannot hold where they are infinite."""
        return {name: value for name, value in asdict(self).items() if name != "bounds"}


@final
@dataclass(frozen=True, eq=False)
class Report:
    """Which explanation to believe, for this model: measurements, tests and verdicts.

    Arrays are over methods × metrics × documents, NaN where there is no number; `skipped` says why.
    """

    model: str
    dataset: str
    classes: tuple[str, ...]
    methods: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]]
    """The settings of every method; empty for imported explanations."""
    columns: tuple[Column, ...]
    measured: tuple[DocumentResult, ...]
    run_notes: tuple[Note, ...]
    """Notes on the sample and the run; `notes` has all."""
    seed: int = 0
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Target, scale, unit and the like, as requested."""

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Everything a reader must know: on the sample, on the run, and on a number of texts that is too small."""
        n_texts, notes = len(self.documents), list(self.run_notes)
        if (few := too_few_texts(n_texts, self.verdicts)) is not None:
            notes.append(Note(few, "few-samples"))
        if n_texts < TEXTS_FOR_INTERVAL:
            none = f"There are no confidence intervals: they need at least {TEXTS_FOR_INTERVAL} texts, not {n_texts}."
            notes.append(Note(none, "few-samples"))
        n_flat = int(self.scale.is_flat.any(axis=0).sum())
        if n_flat:
            flat = f"On {n_flat} of {n_texts} texts removing words does not change the output; there all methods tie."
            notes.append(Note(flat, "uninformative"))
        return tuple(notes)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def documents(self) -> tuple[DocumentResult, ...]:
        """The documents that could be measured."""
        return tuple(result for result in self.measured if result.skipped is None)

    @cached_property
    def values(self) -> Float[np.ndarray, "method metric document"]:
        """The value of every metric for every method on every document."""
        values = np.full((len(self.methods), len(self.metrics), len(self.documents)), np.nan)
        for d, document in enumerate(self.documents):
            for m, method in enumerate(self.methods):
                by_metric = document.values.get(method, {})
                values[m, :, d] = [by_metric.get(metric, np.nan) for metric in self.metrics]
        return values

    @cached_property
    def means(self) -> Float[np.ndarray, "method metric"]:
        """The mean of every metric over the documents that have a value."""
        return means(self._flat).reshape(self._shape)

    @cached_property
    def intervals(self) -> tuple[Float[np.ndarray, "method metric"], Float[np.ndarray, "method metric"]]:
        """95 % confidence intervals of the means; NaN where there are too few documents or all values are equal."""
        sides = [mean_intervals(self.values[:, k], column.bounds) for k, column in enumerate(self.columns)]
        return np.stack([low for low, _ in sides], axis=1), np.stack([high for _, high in sides], axis=1)

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of documents behind each mean."""
        return (~np.isnan(self.values)).sum(axis=2)

    @cached_property
    def against_control(self) -> Float[np.ndarray, "method metric"]:
        """P-values of the paired differences from the control, corrected for all of them; signed: − is worse.

        1 where no test is possible.
        """
        control = self.methods.index(CONTROL)
        up = np.array([1.0 if column.better == "higher" else -1.0 for column in self.columns])
        gains = (self.values - self.values[control]) * up[:, None]
        flat = np.where(np.abs(gains) <= self.scale.tie, 0.0, gains).reshape(-1, gains.shape[2])
        rows = np.flatnonzero((~np.isnan(flat)).any(axis=1) & (np.arange(len(flat)) // len(up) != control))
        p = np.ones(len(flat))
        if len(rows):
            # The most that a method can lose on one text is not known: a guess is what the control varies by.
            varies = np.ptp(np.nan_to_num(self.values[control]), axis=1)
            worst = np.maximum(np.nanmax(np.abs(flat[rows]), axis=1), varies[rows % len(up)])
            p[rows] = holm(mean_p_values(flat[rows], worst, self.seed))
        sign = np.where(np.nan_to_num(means(flat)) < 0, -1.0, 1.0)
        return (p * sign).reshape(self._shape)

    @cached_property
    def scale(self) -> TextScale:
        """The values of every metric that score 0 and 1 on every document, and the differences that are ties."""
        higher = [column.better == "higher" for column in self.columns]
        ends = [[document.ends.get(name) for document in self.documents] for name in self.metrics]
        return TextScale.of(higher, ends, [d.level for d in self.documents], [column.bounds for column in self.columns])

    @cached_property
    def passes(self) -> Float[np.ndarray, "method"]:
        """Passes through the model, forward and backward, that an explanation takes: the mean over documents."""
        return means(self._by_method([document.passes for document in self.documents]))

    @cached_property
    def seconds(self) -> Float[np.ndarray, "method"]:
        """The time that an explanation takes: the mean over documents."""
        return means(self._by_method([document.seconds for document in self.documents]))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict for every use whose metrics were measured."""
        higher = [column.better == "higher" for column in self.columns]
        return verdicts(self.methods, self.metrics, higher, self.values, self.passes, self.seed, self.scale)

    def verdict(self, use: str) -> Verdict:
        """The verdict for one use."""
        return next(verdict for verdict in self.verdicts if verdict.use == use)

    @cached_property
    def agreement(self) -> Float[np.ndarray, "method method"]:
        """Spearman's ρ between every two methods, the mean over documents: a description, never a score."""
        matrix = np.full((len(self.methods), len(self.methods)), np.nan)
        for a, method in enumerate(self.methods):
            rows = [document.agreement.get(method, {}) for document in self.documents]
            for b, other in enumerate(self.methods):
                correlations = [row[other] for row in rows if other in row]
                matrix[a, b] = np.mean(correlations) if correlations else np.nan
        return matrix

    @property
    def skipped(self) -> list[tuple[str, str, str, int]]:
        """What could not be measured: the method, the metric ("" for all), why, and on how many documents."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for result in self.measured:
            if result.skipped is not None:
                counts["", "", result.skipped.sentence] += 1
            for method, reasons in result.reasons.items():
                for metric, reason in reasons.items():
                    counts[method, metric, reason.sentence] += 1
        return [(*key, n) for key, n in sorted(counts.items())]

    @property
    def causes(self) -> dict[str, int]:
        """For each cause of disagreement the number of units, over all documents."""
        return dict(sum((Counter(document.causes) for document in self.documents), Counter()).most_common())

    @property
    def tested(self) -> dict[str, tuple[int, int]]:
        """For each cause: how many of the removed units behaved as it predicts, and how many were removed."""
        counts: dict[str, tuple[int, int]] = {}
        for document in self.documents:
            for cause, (n_behaved, n) in document.tested.items():
                before = counts.get(cause, (0, 0))
                counts[cause] = before[0] + n_behaved, before[1] + n
        return counts

    @property
    def exact(self) -> bool:
        """Whether the causes of disagreement are exact, on every document."""
        return all(document.exact for document in self.documents if document.causes)

    @property
    def masks(self) -> dict[str, int]:
        """Masked texts: evaluated for the explanations, requested by metrics, and those of them newly evaluated."""
        return {
            "explaining": sum(document.masks_explaining for document in self.documents),
            "wanted": sum(document.masks_requested for document in self.documents),
            "asked": sum(document.masks_evaluated for document in self.documents),
        }

    @property
    def accuracy(self) -> float | None:
        """The accuracy of the model on the texts that have a label."""
        n_classes = len(self.classes)
        labelled = [(d.predicted, d.label) for d in self.documents if d.label is not None and d.label < n_classes]
        right = [predicted == self.classes[label] for predicted, label in labelled]
        return float(np.mean(right)) if right else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary per measurement: document, method, metric, value, and the reason if there is none."""
        for result in self.measured:
            for method, metric in product(self.methods, self.metrics):
                value = result.values.get(method, {}).get(metric)
                why = result.reasons.get(method, {})
                reason = None if value is not None else result.skipped or why.get(metric) or why.get("")
                sentence = None if reason is None else reason.sentence
                yield {"document": result.place, "method": method, "metric": metric, "value": value, "reason": sentence}

    def as_dict(self) -> dict[str, Any]:
        """The content of the report without the times, ready for JSON."""
        low, high = self.intervals
        cells = [
            {
                "method": method,
                "metric": metric,
                "mean": number(self.means[m, k]),
                "low": number(low[m, k]),
                "high": number(high[m, k]),
                "documents": int(self.counts[m, k]),
                "p": abs(number(self.against_control[m, k]) or 0.0),
                "better_than_control": bool(0 < self.against_control[m, k] < SIGNIFICANCE),
            }
            for m, method in enumerate(self.methods)
            for k, metric in enumerate(self.metrics)
        ]
        return {
            "model": self.model,
            "dataset": self.dataset,
            "asked": dict(self.asked),
            "documents": len(self.documents),
            "accuracy": self.accuracy,
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            "methods": {method: dict(self.settings.get(method, {})) for method in self.methods},
            "metrics": [column.as_dict() for column in self.columns],
            "cells": cells,
            "passes": {method: number(cost) for method, cost in zip(self.methods, self.passes, strict=True)},
            "masks": self.masks,
            "agreement": [[number(value) for value in row] for row in self.agreement],
            "causes": {"exact": self.exact, "units": self.causes, "behaved": self.tested},
            "skipped": [list(row) for row in self.skipped],
            "notes": [note.as_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        verdict = repr(self.verdicts[0]) if self.verdicts else "no verdict"
        return f"<{in_short(self.dataset)}, {len(self.documents)} texts, {len(self.methods)} methods: {verdict[:200]}>"

    def _repr_html_(self) -> str:
        # As on Explanation: the notebook protocol puts the drawing on the value.
        from heedful.render.trust_page import trust_page

        return trust_page(self, "cell.html")

    @property
    def _flat(self) -> Float[np.ndarray, "row document"]:
        return self.values.reshape(-1, len(self.documents))

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.methods), len(self.metrics)

    def _by_method(self, costs: Sequence[Mapping[str, float]]) -> Float[np.ndarray, "method document"]:
        return np.array([[cost.get(method, np.nan) for cost in costs] for method in self.methods])


def number(value: float) -> float | None:
    """The number, or None for NaN, which JSON does not have."""
    return None if np.isnan(value) else float(value)
