"""The sample of texts that a report uses."""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from heedful import family
from heedful.datasets.labels import class_numbers
from heedful.datasets.texts import content_of, texts_in
from heedful.document.note import Note
from heedful.errors import BadInput, in_short
from heedful.models import Model


@final
class Sample(NamedTuple):
    """A sample of texts, with labels, rationales, and notes on how it was drawn."""

    name: str
    places: tuple[int, ...]
    """The index of every text in its data set."""
    texts: tuple[Any, ...]
    labels: tuple[Any, ...]
    """Classes by number or, until `fitting_labels`, as the user wrote them; None where there is none."""
    rationales: tuple[Any, ...]
    """The rationale of each text; None where there is none."""
    classes: tuple[str, ...]
    notes: tuple[Note, ...]
    all_labels: tuple[Any, ...] = ()
    """The labels of the whole data set: whether numbers are names of classes does not depend on the sample."""


USUAL = 200
"""The default number of texts in a report."""
FEW_WORDS = 10_000
"""The default number of words in a report of a model for which every masked text costs a forward pass."""


def draw(dataset: Any, n: int | None, split: str, seed: int) -> Sample:
    """Up to `n` texts, drawn without repetition, in the order of the data set; a sample is returned as it is."""
    if isinstance(dataset, Sample):
        return dataset
    if n is not None and (not isinstance(n, int) or n < 2):
        raise BadInput(f"A report needs at least 2 texts; n is {in_short(n)}.")
    family.check_seed(seed)
    data = texts_in(dataset, split)
    if len(data) < 2:
        raise BadInput(f"A report needs at least 2 texts; {data.name} has {len(data)}.")
    for place, text in enumerate(data.texts, start=1):
        if isinstance(text, bool | int | float | dict):
            raise BadInput(f"{data.name}, row {place}: a text must be a string; got {in_short(text)}.")
    chosen, n_repeated = _different(data.texts, np.random.default_rng(seed).permutation(len(data)), n or USUAL)
    if len(chosen) < 2:
        raise BadInput(f"A report needs at least 2 different texts; all {len(data)} of {data.name} are the same.")
    labels = tuple(data.labels[place] for place in chosen)
    notes = []
    if n is None and len(chosen) + n_repeated < len(data):
        notes.append(f"{len(chosen)} of {len(data):,} texts were drawn at random; n sets another number.")
    if n is not None and len(chosen) < n:
        notes.append(f"{n} texts were requested, but only {len(chosen)} are available.")
    if n_repeated:
        notes.append(f"Copies of other texts were left out: {n_repeated}. Each text counts once.")
    texts = tuple(data.texts[place] for place in chosen)
    rationales = tuple(data.rationales[place] if data.rationales else None for place in chosen)
    about = (data.classes, tuple(map(Note, notes)), data.labels)
    return Sample(data.name, tuple(chosen), texts, labels, rationales, *about)


def shortened(sample: Sample, seed: int) -> Sample:
    """A random part of the sample with at most `FEW_WORDS` words; the whole sample if it has no more."""
    order = np.random.default_rng(seed).permutation(len(sample.texts))
    lengths = np.cumsum([len(content_of(sample.texts[place]).split()) for place in order])
    n = max(2, int((lengths <= FEW_WORDS).sum()))
    if n >= len(order):
        return sample
    chosen = sorted(order[:n].tolist())
    note = Note(
        f"{n} of {len(order)} texts were measured, {FEW_WORDS:,} words in all, because every masked text costs a "
        "forward pass; n sets another number."
    )
    places, texts, labels, rationales = (
        tuple(column[place] for place in chosen)
        for column in (sample.places, sample.texts, sample.labels, sample.rationales)
    )
    return sample._replace(
        places=places, texts=texts, labels=labels, rationales=rationales, notes=(*sample.notes, note)
    )


def _different(texts: Sequence[Any], order: np.ndarray, n: int) -> tuple[list[int], int]:
    """The places of the first n different texts in a random order, sorted, and how many repeated texts were passed."""
    chosen: dict[str, int] = {}
    n_repeated = 0
    for place in order.tolist():
        if len(chosen) == n:
            break
        content = content_of(texts[place])
        n_repeated += content in chosen
        chosen.setdefault(content, place)
    return sorted(chosen.values()), n_repeated


def fitting_labels(sample: Sample, classes: Sequence[str]) -> Sample:
    """The sample with labels as class numbers of the model; without labels if the classes do not match."""
    classes_seen = {label for label in sample.labels if label is not None}
    if len(classes_seen) < 2:
        none, one = "The texts have no labels, so the model's accuracy is unknown.", "All texts have the same label; "
        sentence = f"{one}the report does not cover other classes." if classes_seen else none
        sample = sample._replace(notes=(*sample.notes, Note(sentence)))
    if sample.classes and len(sample.classes) != len(classes):
        both = f"{len(classes):,} classes and the data {len(sample.classes)}"
        note = f"The model has {both}, so its accuracy is unknown."
        return sample._replace(labels=(None,) * len(sample.labels), notes=(*sample.notes, Note(note)))
    numbers = class_numbers(sample.all_labels, classes, sample.classes, sample.name)
    return sample._replace(labels=tuple(numbers[place] for place in sample.places))


def fitted(sample: Sample, model: Model) -> Sample:
    """The sample with the labels that fit a model; none for what it writes after each text, or for a feature."""
    if not model.about_labels:
        return fitting_labels(sample, model.classes)
    if all(label is None for label in sample.labels):
        return sample
    note = Note(f"The labels were not used: {model.about_labels}.")
    return sample._replace(labels=(None,) * len(sample.labels), notes=(*sample.notes, note))
