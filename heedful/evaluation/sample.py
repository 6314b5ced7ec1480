"""Which texts a report is made on."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from heedful import family
from heedful.datasets import Dataset, Example, Split
from heedful.errors import BadInput, unknown_name

Texts = Any
"""A data set by its name or itself; or a list of texts, of (text, label), or of examples."""


@final
class Sample(NamedTuple):
    """Some texts of a data set, with their labels and rationales, and notes on the choice for a reader."""

    name: str
    places: tuple[int, ...]
    """The number of every text in its data set."""
    texts: tuple[Any, ...]
    labels: tuple[int | None, ...]
    rationales: tuple[Any, ...]
    """What people marked in each text; None where nobody did."""
    classes: tuple[str, ...]
    notes: tuple[str, ...]


USUAL = 200
"""How many texts a report is made on, if nothing is said."""


def draw(dataset: Texts, n: int | None, split: Split, seed: int) -> Sample:
    """Up to `n` texts, drawn without repetition, in the order of the data set."""
    if n is not None and n < 2:
        raise BadInput(f"A report needs at least 2 texts, for there is no interval over one; n is {n}.")
    name, classes, examples = _examples(dataset, split)
    if len(examples) < 2:
        raise BadInput(f"A report needs at least 2 texts, and there is {len(examples) or 'none'} in {name}.")
    fewer = n is not None and len(examples) < n
    notes = [f"{n} texts were asked for, and there are {len(examples)}."] if fewer else []
    chosen = np.sort(np.random.default_rng(seed).permutation(len(examples))[: n or USUAL]).tolist()
    texts, labels, rationales = zip(*(_parts(examples[place]) for place in chosen), strict=True)
    classes_seen = {label for label in labels if label is not None}
    if not classes_seen:
        notes.append("The texts have no labels, so how often the model is right is not known.")
    elif len(classes_seen) == 1:
        notes.append("All texts have the same label, so nothing is said about texts of another class.")
    return Sample(name, tuple(chosen), texts, labels, rationales, classes, tuple(notes))


def fitting_labels(sample: Sample, classes: Sequence[str]) -> Sample:
    """The sample with labels as numbers of the model's classes; without any where the two do not fit."""
    if not sample.classes or list(sample.classes) == list(classes):
        return sample
    if len(sample.classes) != len(classes):
        both = f"{len(classes):,} classes and the data {len(sample.classes)}"
        note = f"The model has {both}, so how often it is right is not known."
        return sample._replace(labels=(None,) * len(sample.labels), notes=(*sample.notes, note))
    by_name = {name.casefold(): number for number, name in enumerate(classes)}
    if not all(name.casefold() in by_name for name in sample.classes):
        # Other names for as many classes, such as LABEL_0: their order is all there is to go by.
        return sample
    number = {label: by_name[name.casefold()] for label, name in enumerate(sample.classes)}
    return sample._replace(labels=tuple(None if label is None else number.get(label) for label in sample.labels))


def _examples(dataset: Texts, split: Split) -> tuple[str, tuple[str, ...], Sequence[Any]]:
    if isinstance(dataset, str):
        catalogue = family.members("heedful.datasets", Dataset)
        if dataset not in catalogue:
            raise unknown_name("data set", dataset, catalogue)
        member: Any = catalogue[dataset]
        dataset = member()
    if isinstance(dataset, Dataset):
        return f"{dataset.name} ({split})", dataset.classes, dataset.examples(split)
    if not isinstance(dataset, Iterable):
        raise BadInput(f"A data set is its name, a Dataset or a list of texts; {type(dataset).__name__} was given.")
    return "the given texts", (), list(dataset)


def _parts(example: Any) -> tuple[Any, int | None, Any]:
    """The text, the label and what people marked."""
    if isinstance(example, Example):
        return example.text, _label(example.label), example.rationale
    if isinstance(example, tuple) and len(example) == 2 and isinstance(example[1], int | np.integer):
        return example[0], _label(example[1]), None
    return example, None, None


def _label(label: int | np.integer) -> int | None:
    """The label; None if it is negative: data sets write −1 for a label that they do not have."""
    return None if label < 0 else int(label)
