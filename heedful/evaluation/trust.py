"""Which explanation to believe, for this model: every explainer on every metric, over a sample of texts."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from heedful.datasets import Split
from heedful.document import Pair, Unit
from heedful.errors import BadInput, HeedfulError
from heedful.evaluation.choose import Methods, Metrics, chosen_members
from heedful.evaluation.journal import Journal
from heedful.evaluation.one_text import Bench, measured, word_key
from heedful.evaluation.report import Column, Report
from heedful.evaluation.sample import Texts, draw, fitting_labels
from heedful.evaluation.verdict import CONTROL, needed
from heedful.explanation import Explanation
from heedful.metrics import Metric
from heedful.models import Model
from heedful.models.altered import twin as twin_of
from heedful.models.budget import Budget, Progress
from heedful.models.question import Question, Request, ask
from heedful.target import Scale


def trust(
    model: Model,
    dataset: Texts,
    methods: Methods = None,
    metrics: Metrics = None,
    n: int | None = None,
    *,
    split: Split = "test",
    target: Request = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    unit: Unit = "word",
    seed: int = 0,
    gold: Iterable[str] | None = None,
    twin: Model | None = None,
    others: Iterable[Explanation] = (),
    out: str | Path | None = None,
    memory: str | int | float | None = None,
    half: bool = False,
    progress: Progress = lambda *_: None,
    **settings: object,
) -> Report:
    """Measures explainers on a sample of texts, against a random control, and says which to use for what.

    `dataset` is a name of `heedful.datasets()`, a Dataset, or a list of texts, of (text, label) or of
    `heedful.datasets.Example`; `n` texts of it are drawn, or up to 200. `methods` are names, explainers, or a mapping
    from names of your own to either; `metrics` are names or metrics, or "all". `gold` are the words
    that the model is known to use, `twin` an equal model that is written differently, `others` explanations that
    `heedful.read` read in. With `out`, a folder, every document is kept when it is measured, and the same call goes on
    from there. Every other keyword is a setting of methods and metrics alike: `n_samples`, `absence`, `n_steps`.
    `memory` ("2GB") bounds every pass; `half` answers masks in half precision where that moves them little. Ctrl-C
    gives the report of the documents that were measured.
    """
    if not isinstance(model, Model):
        raise BadInput(f"The first argument is a model, as heedful.load gives one; {type(model).__name__} was given.")
    sample = fitting_labels(draw(dataset, n, split, seed), model.classes)
    others = tuple(others)
    chosen, judges = chosen_members(model, methods, metrics, gold is not None, sample, {**settings, "unit": unit})
    bench = Bench(
        model=model,
        explainers=chosen,
        metrics=judges,
        others={(one.method, one.document.text): one for one in others},
        unit=unit,
        gold=None if gold is None else _words(gold),
        twin=twin or _twin(model, judges),
    )
    read_in = tuple(dict.fromkeys(one.method for one in others))
    for name in read_in:
        if name in chosen:
            raise BadInput(f"{name!r} names a method and an explanation that was read in; give the latter a name.")
    columns = tuple(
        Column(one.name, one.question, one.better, one.source, one.not_for, asdict(one), one.bounds)
        for one in bench.metrics
    )
    used = {name: {"method": one.name, **asdict(one)} for name, one in chosen.items()}
    asked = {"target": _said(target), "against": against, "scale": scale, "unit": unit, "seed": seed, "half": half}
    asked["gold"] = sorted(bench.gold or ())
    journal = Journal(
        None if out is None else Path(out),
        {
            "model": model.fingerprint,
            # Of a function there is no other fingerprint than what it says.
            "answers": _hash(np.round(model(list(sample.texts[:3])), 4).tolist()),
            "texts": _hash([sample.places, [_content(text) for text in sample.texts]]),
            "labels and marks": _hash([sample.labels, sample.rationales]),
            "twin": "" if bench.twin is None else bench.twin.fingerprint,
            "methods": used,
            "metrics": [[column.name, dict(column.settings)] for column in columns],
            "others": _hash([one.as_dict() for one in others]) if others else "",
            **asked,
        },
    )
    notes = [*sample.notes, *_notes_of(others)]
    budget = Budget.of(memory, None, lambda *_: None, half)

    def asking(text: Any) -> Question:
        return ask(model, [text], target, against, scale, budget)

    progress(0, len(sample.places))
    try:
        for index, place in enumerate(sample.places):
            if place not in journal.done:
                journal.add(measured(bench, sample, index, asking))
            progress(index + 1, len(sample.places))
    except KeyboardInterrupt:
        if len(journal.done) < 2:
            raise
        notes.append(f"Stopped by the user after {len(journal.done)} of {len(sample.places)} texts.")
    done = tuple(journal.done[place] for place in sample.places if place in journal.done)
    if all(one.skipped is not None for one in done):
        raise BadInput(f"No text could be measured: {done[0].skipped}")
    asked["model"] = model.__class__.__name__
    names = (*(name for name in chosen if name != CONTROL), *read_in, CONTROL)
    report = Report(
        model.fingerprint, sample.name, model.classes, names, used, columns, done, tuple(notes), seed, asked
    )
    fewest = needed(sum(len(one.standings) * (len(one.standings) - 1) // 2 for one in report.verdicts))
    if len(report.documents) >= fewest:
        return report
    note = (
        f"With so many methods nothing can be told apart on fewer than {fewest} texts, however large a difference is."
    )
    return replace(report, notes=(*notes, note))


def _said(target: Request) -> int | str | None:
    """The target as it was asked for, ready for JSON."""
    return target if target is None or isinstance(target, int | str) else repr(target)


def _notes_of(others: Sequence[Explanation]) -> list[str]:
    """What a reader of explanations that were read in must not miss, such as that they explain another number."""
    found = []
    for name in dict.fromkeys(one.method for one in others):
        noted = [one.notes[0] for one in others if one.method == name and one.notes]
        more = f" ({len(noted)} of its explanations have a note; this is the first.)" if len(noted) > 1 else ""
        found += [f"{name}: {noted[0]}{more}"] if noted else []
    return found


def _twin(model: Model, metrics: Sequence[Metric]) -> Model | None:
    """An equal model, if a metric wants one and we know how to write one."""
    try:
        return twin_of(model) if any("twin" in metric.wants for metric in metrics) else None
    except HeedfulError:
        return None


def _words(gold: Iterable[str]) -> frozenset[str]:
    words = frozenset(word_key(word) for word in ([gold] if isinstance(gold, str) else gold))
    if not words:
        raise BadInput("The words that the model is known to use were asked for; none was given.")
    return words


def _content(text: Any) -> str:
    """What tells two inputs apart: a text or a pair itself, a picture by its pixels."""
    return repr(text) if isinstance(text, str | Pair | Path) else np.asarray(text).tobytes().hex()


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, default=str).encode("utf-8", "backslashreplace")).hexdigest()
