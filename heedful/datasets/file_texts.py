"""A file of texts as a data set to train on, with splits of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.texts import Texts, places_by_hash, texts_of
from heedful.errors import BadInput


@final
@dataclass(frozen=True)
class FileTexts(Dataset):
    """The texts of a .csv, .tsv, .jsonl, .parquet or .txt file: 8 of 10 to train, 1 to validate, 1 to test.

    The hash of a text decides its split, so that the order of the rows does not matter and copies of a text stay
    together. Columns that are not named are found by their names; the label column "none" reads no labels, as a
    language model needs none.
    """

    file: str
    text_column: str = ""
    label_column: str = ""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the file. It is no member of the catalogue, whose members have a name before they are made."""
        return self._read.name

    @cached_property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The different labels, numbers in their order; empty if there are none."""
        names = {str(label) for label in self._read.labels if label is not None}
        numbers = all(name.isdecimal() for name in names)
        return self._read.classes or tuple(sorted(names, key=int if numbers else None))

    def examples(self, split: Split) -> Sequence[Example]:
        """The examples of one split, in the order of the file."""
        return self._splits[split]

    @cached_property
    def _read(self) -> Texts:
        label = False if self.label_column == "none" else self.label_column or None
        # A file of lines has no columns; one that is named is refused there.
        return texts_of(self.file, self.text_column or None, label)

    @cached_property
    def _splits(self) -> dict[Split, list[Example]]:
        texts, classes = self._read, self.classes
        for row, label in enumerate(texts.labels, start=1):
            if classes and label is None:
                raise BadInput(f"{texts.name}, text {row}: it has no label; add one, or --label-column none.")
        rationales = texts.rationales or (None,) * len(texts)
        labels = [self._number(label) for label in texts.labels]
        rows = [Example(*row) for row in zip(texts.texts, labels, rationales, strict=True)]
        n = len({*map(repr, texts.texts)})
        tested = {*places_by_hash(texts.texts, max(1, n // 10))}
        held_out = {*places_by_hash(texts.texts, max(2, n // 5))} - tested
        return {
            "train": [row for place, row in enumerate(rows) if place not in tested | held_out],
            "validation": [rows[place] for place in sorted(held_out)],
            "test": [rows[place] for place in sorted(tested)],
        }

    def _number(self, label: object) -> int:
        if label is None:
            return 0
        return int(str(label)) if self._read.classes else self.classes.index(str(label))
