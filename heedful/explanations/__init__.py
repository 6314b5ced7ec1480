"""Explanations of many texts by one method, with the texts' ids, labels and predicted classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final, overload

from heedful.explanation import Explanation
from heedful.explanations.refusal import Refusal


@final
@dataclass(frozen=True, eq=False)
class Explanations(Sequence[Explanation | Refusal]):
    """One explanation per text, in the order of the texts; a text that could not be explained has a `Refusal`.

    `labels` and `predicted` are classes by number, None where they are unknown.
    """

    items: tuple[Explanation | Refusal, ...]
    ids: tuple[str, ...]
    """What the user calls the texts; "0", "1", … by default."""
    classes: tuple[str, ...]
    labels: tuple[int | None, ...]
    predicted: tuple[int | None, ...]
    n_texts: int
    """The texts that were given; more than there are items if the user stopped the run."""

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Explanation | Refusal]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Explanation | Refusal: ...
    @overload
    def __getitem__(self, index: slice) -> "Explanations": ...
    def __getitem__(self, index: int | slice) -> "Explanation | Refusal | Explanations":
        if isinstance(index, int):
            return self.items[index]
        items = self.items[index]
        return Explanations(items, self.ids[index], self.classes, self.labels[index], self.predicted[index], len(items))

    @property
    def refusals(self) -> dict[str, str]:
        """The reason of every text that could not be explained, by the text's id."""
        return {name: item.reason for name, item in zip(self.ids, self.items, strict=True) if isinstance(item, Refusal)}

    def save(self, folder: str | Path) -> None:
        """Writes a folder of parquet files that `heedful.open` reads back."""
        from heedful.explanations.store import save_folder

        save_folder(self, Path(folder))

    def __repr__(self) -> str:
        n_refused = len(self.refusals)
        refused = f", {n_refused} refused" if n_refused else ""
        missing = f" of {self.n_texts}" if len(self) < self.n_texts else ""
        return f"<explanations of {len(self)}{missing} texts{refused}>"
