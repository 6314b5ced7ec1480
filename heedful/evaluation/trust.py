"""Which explanation to believe, for one model: explainers measured by metrics, over a sample of texts."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from heedful.datasets import Split
from heedful.datasets.texts import content_of, holds_many, texts_of
from heedful.document import Unit, check_unit
from heedful.document.note import Note
from heedful.errors import BadInput, HeedfulError, in_short
from heedful.evaluation.choose import Methods, Metrics, choose_members
from heedful.evaluation.journal import DocumentResult, Journal
from heedful.evaluation.one_text import Measurement, gold_words, measure_text
from heedful.evaluation.report import Column, Report
from heedful.evaluation.sample import Sample, draw, fitted, shortened
from heedful.evaluation.text_scale import ceiling_notes, zero_notes
from heedful.evaluation.verdict import CONTROL
from heedful.explanation import Explanation
from heedful.metrics import Metric
from heedful.models import Model, TargetOfModel, check_model, model_and_target
from heedful.models.budget import Budget
from heedful.models.layered import Derived
from heedful.models.question import Request, Wanted
from heedful.models.twins.twin import twin as twin_of
from heedful.progress import Progress, progress_of, show_progress
from heedful.run_folder import RunFolder
from heedful.target import Scale


@final
@dataclass(frozen=True, eq=False)
class TrustRequest:
    """The arguments of `trust`, with additional facts for the report."""

    model: Model
    dataset: Any
    methods: Methods = None
    metrics: Metrics = None
    n: int | None = None
    split: Split = "test"
    wanted: Wanted = Wanted()  # noqa: RUF009
    unit: Unit = "word"
    seed: int = 0
    gold: Iterable[str] | None = None
    twin: Model | None = None
    others: tuple[Explanation, ...] = ()
    out: str | Path | None = None
    memory: str | int | float | None = None
    half: bool = False
    progress: Progress | bool | None = show_progress
    settings: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    """Additional facts for the report, such as the name of the model."""


def trust(
    model: Model,
    dataset: Any,
    methods: Methods = None,
    metrics: Metrics = None,
    n: int | None = None,
    *,
    split: Split = "test",
    target: Request | TargetOfModel = None,
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
    progress: Progress | bool | None = show_progress,
    text: str | None = None,
    label: str | bool | Sequence[object] | None = None,
    **settings: object,
) -> Report:
    """Measures explainers on a sample of texts, against a random control, and recommends one for each use.

    `dataset` is a name of `heedful.datasets()`, a Dataset, a list of texts, of (text, label) or of
    `heedful.datasets.Example`, or a table or file as `explain` reads them, with its columns `text` and `label`; `n`
    texts of it are drawn, by default up to 200, or 10,000 words where every masked text costs a forward pass. `methods`
    are names, explainers, "all", or a mapping from names of your own; by default one for each idea. `metrics` are
    names, metrics or "all"; by default those that verdicts use. `gold` are the words that the model is known to use, by
    default `model.gold`; `twin` is an equivalent model with another implementation, `others` are explanations that
    `heedful.read` read. With `out`, a folder, the result of every document is kept, and the same call resumes a stopped
    run. Every other keyword is a setting of methods and metrics alike: `n_samples`, `absence`, `n_steps`. `memory`
    ("2GB") limits every pass; `half` evaluates masks in half precision where that changes them little. Ctrl-C gives the
    report of the documents that were measured.
    """
    own = text is not None or label is not None or holds_many(dataset)
    explained, wanted = model_and_target(model, target, against, scale)
    request = TrustRequest(
        model=explained,
        dataset=texts_of(dataset, text, label) if own else dataset,
        methods=methods,
        metrics=metrics,
        n=n,
        split=split,
        wanted=Wanted(wanted, against, scale),
        unit=unit,
        seed=seed,
        gold=gold,
        twin=twin,
        others=tuple(others) if isinstance(others, Iterable) else (others,),
        out=out,
        memory=memory,
        half=half,
        progress=progress,
        settings=settings,
        about={} if explained is model else {"model": type(model).__name__},
    )
    return trust_report(request)


def trust_report(request: TrustRequest) -> Report:
    """The report that a request asks for: draw the texts, choose methods and metrics, measure every text."""
    _check(request)
    sample = fitted(draw(request.dataset, request.n, request.split, request.seed), request.model)
    if request.n is None and "pooling" not in request.model.offers:
        sample = shortened(sample, request.seed)
    measurement = _measurement(request, sample)
    identity = _identity(request, measurement, sample)
    alone = nullcontext() if request.out is None else RunFolder(Path(request.out)).alone()
    with progress_of(request.progress, "texts") as watch, alone:
        journal = Journal(None if request.out is None else Path(request.out), identity)
        notes = [*sample.notes, *_notes_of(request.others), *_measure_all(watch, measurement, sample, journal)]
    results = tuple(journal.done[place] for place in sample.places if place in journal.done)
    if all(result.skipped is not None for result in results):
        raise BadInput(f"No text could be measured: {results[0].skipped and results[0].skipped.sentence}")
    return _report(request, measurement, sample, results, notes)


def _check(request: TrustRequest) -> None:
    """Refuses arguments of the wrong kind before anything is read."""
    check_model(request.model)
    if request.twin is not None:
        check_model(request.twin)
    if not all(isinstance(other, Explanation) for other in request.others):
        raise BadInput("others must be explanations that heedful.read gave.")
    if request.out is not None and not isinstance(request.out, str | Path):
        raise BadInput(f"out must be the path of a folder; {in_short(request.out)} was given.")
    check_unit(request.unit)
    Budget.of(request.memory, None, lambda *_: None, request.half)


def _measurement(request: TrustRequest, sample: Sample) -> Measurement:
    """The chosen explainers and metrics, and everything else that all documents share."""
    settings = {**request.settings, "unit": request.unit, "seed": request.seed}
    gold = request.gold if request.gold is not None else request.model.gold or None
    explainers, metrics = choose_members(
        request.model, request.methods, request.metrics, gold is not None, sample, settings
    )
    for explanation in request.others:
        if explanation.method in explainers:
            raise BadInput(
                f"{explanation.method!r} is the name of a method and of an imported explanation; rename the latter."
            )
    return Measurement(
        model=request.model,
        wanted=request.wanted,
        budget=Budget.of(request.memory, None, lambda *_: None, request.half),
        explainers=explainers,
        metrics=metrics,
        others=_by_method_and_text(request.others),
        unit=request.unit,
        gold=None if gold is None else gold_words(gold),
        twin=request.twin or _twin(request.model, metrics),
    )


def _identity(request: TrustRequest, measurement: Measurement, sample: Sample) -> dict[str, Any]:
    """Everything that identifies a run; a folder of another run is refused."""
    return {
        "model": request.model.fingerprint,
        # A function has no other fingerprint than its outputs.
        "outputs": _hash(_outputs(request.model, list(sample.texts[:3]))),
        "texts": _hash([sample.places, [content_of(text) for text in sample.texts]]),
        "labels and rationales": _hash([sample.labels, sample.rationales]),
        "twin": "" if measurement.twin is None else measurement.twin.fingerprint,
        "methods": _settings_of(measurement),
        "metrics": [[metric.name, asdict(metric)] for metric in measurement.metrics],
        "others": _hash([other.as_dict() for other in request.others]) if request.others else "",
        **_target_and_unit(request, measurement),
    }


def _outputs(model: Model, texts: list[Any]) -> Any:
    try:
        return np.round(model(texts), 4).tolist()
    except HeedfulError as error:
        return error.sentence


def _measure_all(watch: Progress, measurement: Measurement, sample: Sample, journal: Journal) -> list[Note]:
    """Measures every text that the journal does not have; Ctrl-C ends it with a note."""
    n_texts = len(sample.places)
    watch(0, n_texts)
    try:
        for index, place in enumerate(sample.places):
            if place not in journal.done:
                journal.add(measure_text(measurement, sample, index))
            watch(index + 1, n_texts)
    except KeyboardInterrupt:
        if len(journal.done) < 2:
            raise
        return [Note(f"Stopped by the user after {len(journal.done)} of {n_texts} texts.", "stopped")]
    return []


def _report(
    request: TrustRequest,
    measurement: Measurement,
    sample: Sample,
    results: tuple[DocumentResult, ...],
    notes: Sequence[Note],
) -> Report:
    methods = (*(name for name in measurement.explainers if name != CONTROL), *measurement.read_in, CONTROL)
    about = {"model": type(request.model).__name__, **request.about}
    return Report(
        model=request.model.fingerprint,
        dataset=sample.name,
        classes=request.model.classes,
        methods=methods,
        settings=_settings_of(measurement),
        columns=tuple(Column.of(metric) for metric in measurement.metrics),
        measured=results,
        run_notes=(*notes, *ceiling_notes(results), *zero_notes(request.model, results)),
        seed=request.seed,
        asked={**_target_and_unit(request, measurement), **about},
    )


def _settings_of(measurement: Measurement) -> dict[str, dict[str, Any]]:
    """The settings of every method, by its name in the report."""
    return {name: {"method": method.name, **asdict(method)} for name, method in measurement.explainers.items()}


def _target_and_unit(request: TrustRequest, measurement: Measurement) -> dict[str, Any]:
    """Target, scale, unit and the like as the user gave them, ready for JSON."""
    target, against, scale = request.wanted
    named = target if isinstance(target, int | str | None) else repr(target)
    facts: dict[str, Any] = {"target": named, "against": against, "scale": scale, "unit": request.unit}
    if isinstance(request.model, Derived):
        facts = {"explains": request.model.explained(scale), "unit": request.unit}
    return {**facts, "seed": request.seed, "half": request.half, "gold": sorted(measurement.gold or ())}


def _notes_of(others: Sequence[Explanation]) -> list[Note]:
    """The first note of each method whose explanations were imported."""
    notes = []
    for name in dict.fromkeys(other.method for other in others):
        first = [other.notes[0] for other in others if other.method == name and other.notes]
        more = f" ({len(first)} of its explanations have a note; this is the first.)" if len(first) > 1 else ""
        notes += [Note(f"{name}: {first[0]}{more}", first[0].kind)] if first else []
    return notes


def _by_method_and_text(others: Sequence[Explanation]) -> dict[tuple[str, str], tuple[Explanation, ...]]:
    """Imported explanations by method and text; two for the same text, target and unit under one name are refused."""
    grouped: dict[tuple[str, str], tuple[Explanation, ...]] = {}
    for other in others:
        key = other.method, other.document.text
        before = grouped.get(key, ())
        same = [e for e in before if (e.target, e.unit) == (other.target, other.unit)]
        if any(not np.array_equal(e.scores, other.scores) for e in same):
            text = other.document.text
            raise BadInput(
                f"{other.method!r} has two different explanations of {text[:40] + '…' if len(text) > 40 else text!r} "
                f"for {other.target}; give one, or another name to the second."
            )
        grouped[key] = before if same else (*before, other)
    return grouped


def _twin(model: Model, metrics: Sequence[Metric]) -> Model | None:
    """An equivalent model, if a metric needs one and it can be made."""
    try:
        return twin_of(model) if any("twin" in metric.wants for metric in metrics) else None
    except HeedfulError:
        return None


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, default=str).encode("utf-8", "backslashreplace")).hexdigest()
