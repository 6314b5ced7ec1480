"""Which texts a report is made on."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

import heedful.datasets as family
from heedful import catalog
from heedful.datasets import Dataset, Example, Split
from heedful.errors import BadInput, unknown_name

Texts = Any
"""A data set by its name or itself; or a list of texts, of (text, label), or of examples."""


@final
class Sample(NamedTuple):
    """Some texts of a data set, with what is known of them, and what a reader must know of the choice."""

    name: str
    places: tuple[int, ...]
    """The number of every text in its data set."""
    texts: tuple[Any, ...]
    labels: tuple[int | None, ...]
    rationales: tuple[Any, ...]
    """What people marked in each text; None where nobody did."""
    classes: tuple[str, ...]
    notes: tuple[str, ...]


def draw(given: Texts, n: int, split: Split, seed: int) -> Sample:
    """Up to `n` texts, drawn without repetition, in the order of the data set."""
    if n < 2:
        raise BadInput(f"A report needs at least 2 texts, for there is no interval over one; n is {n}.")
    name, classes, examples = _examples(given, split)
    if len(examples) < 2:
        raise BadInput(f"A report needs at least 2 texts; {name} gives {len(examples)}.")
    notes = [] if len(examples) >= n else [f"{name} gives {len(examples)} texts; {n} were asked for."]
    chosen = np.sort(np.random.default_rng(seed).permutation(len(examples))[:n]).tolist()
    texts, labels, rationales = zip(*(_parts(examples[place]) for place in chosen), strict=True)
    known = {label for label in labels if label is not None}
    if not known:
        notes.append("The texts have no labels, so how often the model is right is not known.")
    elif len(known) == 1:
        notes.append("All texts have the same label, so nothing is said about texts of another class.")
    return Sample(name, tuple(chosen), texts, labels, rationales, classes, tuple(notes))


def _examples(given: Texts, split: Split) -> tuple[str, tuple[str, ...], Sequence[Any]]:
    if isinstance(given, str):
        known = catalog.members(family, Dataset)
        if given not in known:
            raise unknown_name("data set", given, known)
        member: Any = known[given]
        given = member()
    if isinstance(given, Dataset):
        return f"{given.name} ({split})", given.classes, given.examples(split)
    if not isinstance(given, Iterable):
        raise BadInput(f"A data set is its name, a Dataset or a list of texts; {type(given).__name__} was given.")
    return "the given texts", (), list(given)


def _parts(example: Any) -> tuple[Any, int | None, Any]:
    """The text, the label and what people marked."""
    if isinstance(example, Example):
        return example.text, example.label, example.rationale
    if isinstance(example, tuple) and len(example) == 2 and isinstance(example[1], int | np.integer):
        return example[0], int(example[1]), None
    return example, None, None
