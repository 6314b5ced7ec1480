"""The trust report: every explainer on every metric, with intervals, comparisons, costs and a verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import inf
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.evaluation.journal import DocumentResult
from heedful.evaluation.significance import holm, means, sign_flips
from heedful.evaluation.verdict import CONTROL, LEVEL, Verdict, fewest_texts, verdicts
from heedful.metrics import Metric
from heedful.statistics.intervals import FEWEST_TEXTS, mean_intervals


@final
@dataclass(frozen=True)
class Column:
    """A metric of the report, as a reader must know it."""

    name: str
    question: str
    better: str
    source: str
    not_for: str
    settings: Mapping[str, Any]
    bounds: tuple[float, float] = (-inf, inf)
    """The least and the largest possible value."""

    @classmethod
    def of(cls, metric: Metric) -> "Column":
        """The column of a metric."""
        told = metric.name, metric.question, metric.better, metric.source, metric.not_for
        return cls(*told, asdict(metric), metric.bounds)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the bounds, which JSON cannot hold where they are infinite."""
        return {name: value for name, value in asdict(self).items() if name != "bounds"}


@final
@dataclass(frozen=True, eq=False)
class Report:
    """Which explanation to believe, for this model: what was measured, and what follows.

    Arrays are over methods × metrics × documents, NaN where there is no number; `skipped` says why.
    """

    model: str
    dataset: str
    classes: tuple[str, ...]
    methods: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]]
    """Of every method; none of explanations that were read in."""
    columns: tuple[Column, ...]
    measured: tuple[DocumentResult, ...]
    run_notes: tuple[str, ...]
    """Notes on the sample and the run; `notes` has all."""
    seed: int = 0
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Target, scale, unit and the like, as they were asked for."""

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Everything a reader must know: on the sample, on the run, and on a number of texts that is too small."""
        n_texts, notes = len(self.documents), list(self.run_notes)
        fewest = fewest_texts(sum(len(one.standings) * (len(one.standings) - 1) // 2 for one in self.verdicts))
        if n_texts < fewest:
            notes.append(f"With this many methods, no difference can be significant on fewer than {fewest} texts.")
        if n_texts < FEWEST_TEXTS:
            notes.append(f"There are no confidence intervals: they need at least {FEWEST_TEXTS} texts, not {n_texts}.")
        return tuple(notes)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def documents(self) -> tuple[DocumentResult, ...]:
        """Those that could be measured."""
        return tuple(one for one in self.measured if one.skipped is None)

    @cached_property
    def values(self) -> Float[np.ndarray, "method metric document"]:
        found = np.full((len(self.methods), len(self.metrics), len(self.documents)), np.nan)
        for d, one in enumerate(self.documents):
            for m, method in enumerate(self.methods):
                known = one.values.get(method, {})
                found[m, :, d] = [known.get(metric, np.nan) for metric in self.metrics]
        return found

    @cached_property
    def means(self) -> Float[np.ndarray, "method metric"]:
        return means(self._flat).reshape(self._shape)

    @cached_property
    def intervals(self) -> tuple[Float[np.ndarray, "method metric"], Float[np.ndarray, "method metric"]]:
        """95 % confidence intervals of the means over documents; NaN where there are too few documents."""
        sides = [mean_intervals(self.values[:, k], column.bounds) for k, column in enumerate(self.columns)]
        return np.stack([low for low, _ in sides], axis=1), np.stack([high for _, high in sides], axis=1)

    @cached_property
    def counts(self) -> np.ndarray:
        """On how many documents each mean stands."""
        return (~np.isnan(self.values)).sum(axis=2)

    @cached_property
    def against_control(self) -> Float[np.ndarray, "method metric"]:
        """P-values of the paired differences from the control, corrected for all of them; signed: − is worse.

        1 where nothing can be said.
        """
        control = self.methods.index(CONTROL)
        up = np.array([1.0 if column.better == "higher" else -1.0 for column in self.columns])
        gains = (self.values - self.values[control]) * up[:, None]
        flat = gains.reshape(-1, gains.shape[2])
        rows = np.flatnonzero((~np.isnan(flat)).any(axis=1) & (np.arange(len(flat)) // len(up) != control))
        p = np.ones(len(flat))
        if len(rows):
            p[rows] = holm(sign_flips(flat[rows], self.seed))
        sign = np.where(np.nan_to_num(means(flat)) < 0, -1.0, 1.0)
        return (p * sign).reshape(self._shape)

    @cached_property
    def passes(self) -> Float[np.ndarray, "method"]:
        """Passes through the model, forward and backward, that an explanation takes: the mean over documents."""
        return means(self._by_method("passes"))

    @cached_property
    def seconds(self) -> Float[np.ndarray, "method"]:
        return means(self._by_method("seconds"))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        higher = [column.better == "higher" for column in self.columns]
        return verdicts(self.methods, self.metrics, higher, self.values, self.passes, self.seed)

    def verdict(self, use: str) -> Verdict:
        return next(verdict for verdict in self.verdicts if verdict.use == use)

    @cached_property
    def agreement(self) -> Float[np.ndarray, "method method"]:
        """Spearman's ρ between every two methods, the mean over documents: a description, never a score."""
        found = np.full((len(self.methods), len(self.methods)), np.nan)
        for a, one in enumerate(self.methods):
            for b, other in enumerate(self.methods):
                known = [d.agreement[one][other] for d in self.documents if other in d.agreement.get(one, {})]
                found[a, b] = np.mean(known) if known else np.nan
        return found

    @property
    def skipped(self) -> list[tuple[str, str, str, int]]:
        """What could not be measured: the method, the metric ("" for all), why, and on how many documents."""
        found: Counter[tuple[str, str, str]] = Counter()
        for one in self.measured:
            if one.skipped is not None:
                found["", "", one.skipped] += 1
            for method, reasons in one.reasons.items():
                for metric, reason in reasons.items():
                    found[method, metric, reason] += 1
        return [(*key, n) for key, n in sorted(found.items())]

    @property
    def causes(self) -> dict[str, int]:
        """On how many units of all documents each reason to differ was found."""
        found: Counter[str] = Counter()
        for one in self.documents:
            found.update(one.causes)
        return dict(found.most_common())

    @property
    def tested(self) -> dict[str, tuple[int, int]]:
        """For a diagnosis: how many units behaved as a reason says when they were taken out, of how many."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.documents:
            for name, (behaved, n) in one.tested.items():
                before = found.get(name, (0, 0))
                found[name] = before[0] + behaved, before[1] + n
        return found

    @property
    def exact(self) -> bool:
        """Whether the reasons to differ are exact, on every document."""
        return all(one.exact for one in self.documents if one.causes)

    @property
    def masks(self) -> dict[str, int]:
        """Thinned texts: those asked for the explanations, those that metrics wanted, and those of them asked anew."""
        return {what: sum(getattr(one, what) for one in self.documents) for what in ("explaining", "wanted", "asked")}

    @property
    def accuracy(self) -> float | None:
        """How often the model is right, where labels are known."""
        labelled = [one for one in self.documents if one.label is not None and one.label < len(self.classes)]
        right = [one.predicted == self.classes[one.label or 0] for one in labelled]
        return float(np.mean(right)) if right else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every number, a dictionary each: document, method, metric, value, and why there is none."""
        for one in self.measured:
            for method in self.methods:
                for metric in self.metrics:
                    value = one.values.get(method, {}).get(metric)
                    why = one.reasons.get(method, {})
                    reason = None if value is not None else one.skipped or why.get(metric) or why.get("")
                    yield {"document": one.place, "method": method, "metric": metric, "value": value, "reason": reason}

    def as_dict(self) -> dict[str, Any]:
        """What the report says, without the times, ready for JSON."""
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
                "better_than_control": bool(0 < self.against_control[m, k] < LEVEL),
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
            "methods": {method: dict(self.settings.get(method, {})) for method in self.methods},
            "metrics": [column.as_dict() for column in self.columns],
            "cells": cells,
            "passes": {method: number(cost) for method, cost in zip(self.methods, self.passes, strict=True)},
            "masks": self.masks,
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            "agreement": [[number(value) for value in row] for row in self.agreement],
            "causes": {"exact": self.exact, "units": self.causes, "behaved": self.tested},
            "skipped": [list(one) for one in self.skipped],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        # As on Explanation: the notebook protocol puts the drawing on the value.
        from heedful.render.trust_page import trust_page

        return trust_page(self)

    @property
    def _flat(self) -> Float[np.ndarray, "row document"]:
        return self.values.reshape(-1, len(self.documents))

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.methods), len(self.metrics)

    def _by_method(self, what: str) -> Float[np.ndarray, "method document"]:
        kept: Sequence[dict[str, float]] = [getattr(one, what) for one in self.documents]
        return np.array([[one.get(method, np.nan) for one in kept] for method in self.methods])


def number(value: float) -> float | None:
    """A number as JSON has it, which knows no NaN."""
    return None if np.isnan(value) else float(value)
