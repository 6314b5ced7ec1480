"""The sample of texts that a report uses."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final, get_args

import numpy as np

from heedful import family
from heedful.datasets import Dataset, Example, Split
from heedful.document import Pair
from heedful.document.note import Note
from heedful.errors import BadInput, in_short, unknown_name

Texts = Any
"""A data set or its name; or a list of texts, of (text, label), or of examples."""


@final
class Sample(NamedTuple):
    """A sample of texts, with labels, rationales, and notes on how it was drawn."""

    name: str
    places: tuple[int, ...]
    """The index of every text in its data set."""
    texts: tuple[Any, ...]
    labels: tuple[int | None, ...]
    rationales: tuple[Any, ...]
    """The rationale of each text; None where there is none."""
    classes: tuple[str, ...]
    notes: tuple[Note, ...]


USUAL = 200
"""The default number of texts in a report."""
FEW_WORDS = 10_000
"""The default number of words in a report of a model for which every masked text costs a forward pass."""


def draw(dataset: Texts, n: int | None, split: Split, seed: int) -> Sample:
    """Up to `n` texts, drawn without repetition, in the order of the data set; a sample is returned as it is."""
    if isinstance(dataset, Sample):
        return dataset
    if n is not None and (not isinstance(n, int) or n < 2):
        raise BadInput(f"A report needs at least 2 texts; n is {in_short(n)}.")
    if split not in get_args(Split):
        raise unknown_name("split", split, get_args(Split))
    family.check_seed(seed)
    name, classes, examples = _examples(dataset, split)
    if len(examples) < 2:
        raise BadInput(f"A report needs at least 2 texts; {name} has {len(examples)}.")
    chosen, n_repeated = _different(examples, np.random.default_rng(seed).permutation(len(examples)), n or USUAL)
    if len(chosen) < 2:
        raise BadInput(f"A report needs at least 2 different texts; all {len(examples)} of {name} are the same.")
    texts, labels, rationales = zip(*(_parts(examples[place]) for place in chosen), strict=True)
    notes = []
    if n is not None and len(chosen) < n:
        notes.append(f"{n} texts were requested, but only {len(chosen)} are available.")
    if n_repeated:
        notes.append(f"Copies of other texts were left out: {n_repeated}. Each text counts once.")
    classes_seen = {label for label in labels if label is not None}
    if not classes_seen:
        notes.append("The texts have no labels, so the model's accuracy is unknown.")
    elif len(classes_seen) == 1:
        notes.append("All texts have the same label; the report does not cover other classes.")
    return Sample(name, tuple(chosen), texts, labels, rationales, classes, tuple(map(Note, notes)))


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


def _different(examples: Sequence[Any], order: np.ndarray, n: int) -> tuple[list[int], int]:
    """The places of the first n different texts in a random order, sorted, and how many repeated texts were passed."""
    chosen: dict[str, int] = {}
    n_repeated = 0
    for place in order.tolist():
        if len(chosen) == n:
            break
        content = content_of(_parts(examples[place])[0])
        n_repeated += content in chosen
        chosen.setdefault(content, place)
    return sorted(chosen.values()), n_repeated


def content_of(text: Any) -> str:
    """What identifies an input: a text or a pair itself, an image by its pixels."""
    return repr(text) if isinstance(text, str | Pair | Path) else np.asarray(text).tobytes().hex()


def fitting_labels(sample: Sample, classes: Sequence[str]) -> Sample:
    """The sample with labels as class numbers of the model; without labels if the classes do not match."""
    if not sample.classes or list(sample.classes) == list(classes):
        return sample
    if len(sample.classes) != len(classes):
        both = f"{len(classes):,} classes and the data {len(sample.classes)}"
        note = f"The model has {both}, so its accuracy is unknown."
        return sample._replace(labels=(None,) * len(sample.labels), notes=(*sample.notes, Note(note)))
    by_name = {name.casefold(): number for number, name in enumerate(classes)}
    if not all(name.casefold() in by_name for name in sample.classes):
        # The same number of classes under other names, such as LABEL_0: they are matched by their order.
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
        raise BadInput(f"dataset must be a name, a Dataset or a list of texts; {type(dataset).__name__} was given.")
    return "the given texts", (), list(dataset)


def _parts(example: Any) -> tuple[Any, int | None, Any]:
    """The text, the label and the rationale."""
    if isinstance(example, Example):
        return example.text, _label(example.label), example.rationale
    if isinstance(example, tuple) and len(example) == 2 and isinstance(example[1], int | np.integer):
        return example[0], _label(example[1]), None
    return example, None, None


def _label(label: int | np.integer) -> int | None:
    """The label; None if it is negative: data sets use −1 for a missing label."""
    return None if label < 0 else int(label)
