"""AG's news in four classes (Zhang, Zhao & LeCun, 2015)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.held_out import held_out
from heedful.datasets.source import check_labels, from_hub, in_folder, read_parquet
from heedful.errors import BadInput

_LOCAL = {"train": "ag_news_partial/train_subset_10k.parquet", "test": "ag_news_partial/test.parquet"}


@final
@dataclass(frozen=True)
class AgNews(Dataset):
    """News in four classes: 120,000 to train and 7,600 to test; no rationales.

    There is no official validation split: `n_validation` training texts are held out, drawn with `split_seed`. A local
    folder may contain part of the training split, and texts without the headline that the hub's copy starts with.
    """

    name: ClassVar[str] = "ag-news"
    classes: ClassVar[tuple[str, ...]] = ("world", "sports", "business", "sci/tech")

    split_seed: int = 0
    n_validation: int = 1_000

    def __post_init__(self) -> None:
        if self.n_validation < 1 or self.split_seed < 0:
            raise BadInput("AG News needs n_validation ≥ 1 and split_seed ≥ 0.")

    def examples(self, split: Split) -> Sequence[Example]:
        if split == "test":
            return self._read("test")
        return held_out(self._read("train"), split, self.split_seed, self.n_validation)

    def _read(self, half: Literal["train", "test"]) -> list[Example]:
        local = _LOCAL[half]
        path = in_folder(local) or from_hub("AG News", local, "fancyzhx/ag_news", f"data/{half}-00000-of-00001.parquet")
        rows = read_parquet(path, {"text": str, "label": int})
        check_labels(path, [row["label"] for row in rows], self.classes)
        return [Example(row["text"], row["label"]) for row in rows]
