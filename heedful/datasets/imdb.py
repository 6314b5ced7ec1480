"""IMDB film reviews (Maas et al., 2011), the data of the paper's experiments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.held_out import held_out
from heedful.datasets.source import check_labels, from_hub, in_folder, read_parquet
from heedful.errors import BadInput


@final
@dataclass(frozen=True)
class Imdb(Dataset):
    """Film reviews, negative or positive: 20,000 to train, 5,000 to validate, 25,000 to test (Appendix F).

    The official training half is split with `split_seed`. It contains 96 exact duplicates, the test half 199, and 123
    texts are in both halves; `duplicates="drop"` keeps the first copy of each and removes from the test half what is in
    the training half.
    """

    name: ClassVar[str] = "imdb"
    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")

    split_seed: int = 0
    n_validation: int = 5_000
    duplicates: Literal["keep", "drop"] = "keep"

    def __post_init__(self) -> None:
        if self.n_validation < 1 or self.split_seed < 0:
            raise BadInput("IMDB needs n_validation ≥ 1 and split_seed ≥ 0.")

    def examples(self, split: Split) -> Sequence[Example]:
        if split == "test":
            train = {example.text for example in self._read("train")} if self.duplicates == "drop" else set()
            return self._distinct([example for example in self._read("test") if example.text not in train])
        return held_out(self._distinct(self._read("train")), split, self.split_seed, self.n_validation)

    def _distinct(self, rows: list[Example]) -> list[Example]:
        first: dict[str, Example] = {}
        for row in rows:
            first.setdefault(row.text, row)
        return rows if self.duplicates == "keep" else list(first.values())

    def _read(self, half: Literal["train", "test"]) -> list[Example]:
        local = f"imdb/{half}.parquet"
        path = in_folder(local) or from_hub(
            "IMDB", local, "stanfordnlp/imdb", f"plain_text/{half}-00000-of-00001.parquet"
        )
        rows = read_parquet(path, {"text": str, "label": int})
        check_labels(path, [row["label"] for row in rows], self.classes)
        return [Example(row["text"], row["label"]) for row in rows]
