"""Is attention an explanation of this model? Every published test of it, on texts of a user."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any, final

from heedful.datasets import Dataset, Split
from heedful.datasets.texts import Texts, holds_many, texts_of
from heedful.document import SPECIAL, Document, Unit, check_unit
from heedful.errors import BadInput, HeedfulError, Unsupported, in_short, unknown_name
from heedful.evaluation.probe_report import USES, ProbeOutcome, ProbeReport
from heedful.evaluation.probes import Probe
from heedful.evaluation.probes.inquiry import Inquiry, TrainAndTest
from heedful.evaluation.probes.last_attention import check_readable
from heedful.evaluation.sample import Sample, draw, fitted, fitting_labels, shortened
from heedful.family import build, check_count, members, split_settings
from heedful.models import Model, check_model, check_offers
from heedful.models.fitting.fresh import check_trained_here
from heedful.models.layered import Derived
from heedful.models.recording import Recordable
from heedful.progress import Progress, progress_of, show_progress
from heedful.run_folder import RunFolder, path_of

Tests = Sequence[str] | str | None
N_TRAIN = 1_000
"""The default number of texts that probes which train models train on."""
_PARTS = 100
"""Progress counts hundredths of a probe."""


def probes() -> dict[str, type[Probe]]:
    """Every probe by name, in the order of what it judges."""
    catalogue = members("heedful.evaluation.probes", Probe)
    return dict(sorted(catalogue.items(), key=lambda item: (USES.index(item[1].use), item[0])))


def probe(
    model: Model,
    data: Any,
    tests: Tests = None,
    n: int | None = None,
    *,
    split: Split = "test",
    train: Any = None,
    n_train: int = N_TRAIN,
    unit: Unit = "word",
    seed: int = 0,
    out: str | Path | None = None,
    progress: Progress | bool | None = show_progress,
    text: str | None = None,
    label: str | bool | Sequence[object] | None = None,
    **settings: object,
) -> ProbeReport:
    """Measures what a model's attention can be used for: every published test of it, with its null and its limits.

    `data` is a name of `heedful.datasets()`, a Dataset, texts, pairs of (text, class), or a table or file with
    its columns `text` and `label`; up to `n` texts are drawn, 200 by default, or 10,000 words where a change of
    attention costs a forward pass. `tests` are names of probes, "all", or None for all that this model allows. Probes
    that train models need a model of `heedful train` and labelled texts: up to `n_train` of `train`, or of the
    training split of a data set. Every other keyword is a setting of the probes. With `out`, a folder, finished parts
    are kept, and the same call resumes a stopped run.
    """
    check_model(model)
    check_unit(unit)
    chosen, source = chosen_probes(tests, settings), training_source(data, train, text, label)
    recordable, sample = _recordable(model), _sample(model, data, n, split, seed, text, label)
    documents, labels, notes = _read(recordable, sample)
    check_readable(recordable, documents[0])
    inquiry = Inquiry(recordable, documents, labels, unit, seed, None if out is None else usable_folder(out))
    about: dict[str, Any] = {"n_train": check_count("n_train", n_train, 2)}
    if source is not None:
        # Several probes train on the same texts, which are read once.
        inquiry.training = cache(partial(_training, inquiry, source, n_train, seed))
        about["train"] = _hash(source.texts, source.labels) if isinstance(source, Texts) else source.name
    outcomes = _outcomes(inquiry, chosen, about, progress)
    return ProbeReport(model.fingerprint, model.description, sample.name, len(documents), unit, seed, outcomes, notes)


def _sample(model: Model, data: Any, n: int | None, split: str, seed: int, text: str | None, label: Any) -> Sample:
    """The texts of a probe with the labels that fit the model; by default few where a pass is needed for each edit."""
    if not isinstance(data, Sample) and (text is not None or label is not None or holds_many(data)):
        data = texts_of(data, text, label)
    sample = fitted(draw(data, n, split, seed), model)
    return shortened(sample, seed) if n is None and "pooling" not in model.offers else sample


def training_source(data: Any, train: Any, text: str | None = None, label: Any = None) -> Texts | Dataset | None:
    """Where the texts to train on come from: what `train` names, or the data set that is probed; else None."""
    if train is None and (isinstance(data, Sample) or not isinstance(data, str | Dataset) or holds_many(data)):
        return None
    source = data if train is None else train
    if isinstance(source, str) and not holds_many(source):
        catalogue: Any = members("heedful.datasets", Dataset)
        if source not in catalogue:
            raise unknown_name("data set", source, catalogue)
        return catalogue[source]()
    own_label = label if isinstance(label, str | bool) else None
    return source if isinstance(source, Dataset) else texts_of(source, text, own_label)


def usable_folder(out: str | Path) -> RunFolder:
    """The folder of a run; refused if it cannot be made or written to."""
    folder = RunFolder(path_of(out))
    folder.check_usable()
    return folder


def _outcomes(
    inquiry: Inquiry, chosen: Sequence[Probe], about: dict[str, Any], progress: Progress | bool | None
) -> tuple[ProbeOutcome, ...]:
    """The outcome of every probe; finished parts are read from the folder, if there is one."""
    folder = inquiry.folder
    about |= {"tests": [[one.name, asdict(one)] for one in chosen], "unit": inquiry.unit, "seed": inquiry.seed}
    about |= {"model": inquiry.model.fingerprint, "labels": _hash(inquiry.labels)}
    about["texts"] = _hash([document.text for document in inquiry.documents])
    with progress_of(progress, "steps") as watch, nullcontext() if folder is None else folder.alone():
        if folder is not None:
            folder.claim(about)
        run = _Run(inquiry, len(chosen), watch)
        outcomes = tuple(run.outcome(number, one) for number, one in enumerate(chosen))
    if all(outcome.result is None for outcome in outcomes):
        raise Unsupported(outcomes[0].refusal)
    return outcomes


@final
@dataclass(frozen=True, eq=False)
class _Run:
    """One call: its inquiry, and how far it is."""

    inquiry: Inquiry
    n_probes: int
    watch: Progress

    def outcome(self, number: int, one: Probe) -> ProbeOutcome:
        """What a probe finds, or the sentence with which it refuses the model or the data."""
        total = self.n_probes * _PARTS
        self.inquiry.watch = lambda share: self.watch(number * _PARTS + int(share * _PARTS), total)
        self.watch(number * _PARTS, total)
        start = perf_counter()
        try:
            if one.retrains:
                check_trained_here(self.inquiry.model)
            result, refusal = one.measure(self.inquiry), ""
        except HeedfulError as error:
            result, refusal = None, error.sentence
        self.watch((number + 1) * _PARTS, total)
        return ProbeOutcome(one, asdict(one), result, refusal, perf_counter() - start)


def chosen_probes(tests: Tests, settings: Mapping[str, object]) -> list[Probe]:
    """The probes that were named, with their settings; unknown names and settings are refused."""
    catalogue = probes()
    names: Any = [tests] if isinstance(tests, str) and tests != "all" else tests
    if names is None or isinstance(names, str):
        names = catalogue.keys()
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise BadInput(f"tests must be names of probes; {in_short(tests)} was given.")
    names = [*names]
    if not names:
        raise BadInput(f"No probe was named; leave `tests` out for all of them: {', '.join(catalogue)}.")
    for name in names:
        if not isinstance(name, str) or name not in catalogue:
            raise unknown_name("probe", name, catalogue)
    kinds = [catalogue[name] for name in dict.fromkeys(names)]
    return [build(kind, kind.name, own) for kind, own in zip(kinds, split_settings(settings, kinds), strict=True)]


def _recordable(model: Model) -> Recordable:
    if not isinstance(model, Recordable):
        raise Unsupported(
            "This model has no attention layers that can be changed, so there is nothing to probe; wrap the network "
            "itself."
        )
    check_offers(model, {"layers"}, "probe")
    if isinstance(model, Derived):
        raise Unsupported("The probes test a classifier, and this model is made of another; give that one.")
    return model


def _read(model: Recordable, sample: Sample) -> tuple[tuple[Document, ...], tuple[int | None, ...], tuple[str, ...]]:
    """The texts as the model reads them, with their labels; those without words are left out, with a note."""
    documents, labels, skipped = [], [], []
    for text, label in zip(sample.texts, sample.labels, strict=True):
        try:
            document = model.encode(text)
        except HeedfulError as error:
            skipped.append(error.sentence)
            continue
        if (document.words == SPECIAL).all():
            skipped.append("The text contains no words.")
            continue
        documents.append(document)
        labels.append(label)
    if len(documents) < 2:
        raise BadInput(f"{'Only one' if documents else 'No'} text could be read: {skipped[0]}")
    notes = [str(note) for note in sample.notes]
    if skipped:
        notes.append(f"Texts that could not be read and were left out: {len(skipped)}. The first: {skipped[0]}")
    return tuple(documents), tuple(labels), tuple(notes)


def _training(inquiry: Inquiry, source: Texts | Dataset, n_train: int, seed: int) -> TrainAndTest:
    """Labelled texts to train on, none of them among the probed ones, which test the trained models."""
    model = inquiry.model
    documents, labels, _ = _read(model, fitting_labels(draw(source, n_train, "train", seed), model.classes))
    probed = {document.text for document in inquiry.documents}
    own = [(d, label) for d, label in zip(documents, labels, strict=True) if label is not None and d.text not in probed]
    tested = [(d, label) for d, label in zip(inquiry.documents, inquiry.labels, strict=True) if label is not None]
    if not own and None not in labels:
        raise Unsupported("Every text to train on is also probed; give other texts as `train`.")
    if len({label for _, label in own}) < 2 or not tested:
        raise Unsupported("To train models, give texts with labels of at least two classes, to train on and to test.")
    return TrainAndTest(
        tuple(d for d, _ in own),
        tuple(label for _, label in own),
        tuple(d for d, _ in tested),
        tuple(n for _, n in tested),
    )


def _hash(*content: object) -> str:
    return hashlib.sha256(repr(content).encode("utf-8", "backslashreplace")).hexdigest()
