"""SST-2 of GLUE (Socher et al., 2013; Wang et al., 2019): phrases and sentences of film reviews."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.source import check_labels, from_hub, in_folder, read_parquet
from heedful.errors import BadInput


@final
@dataclass(frozen=True)
class Sst2(Dataset):
    """Film phrases, negative or positive: 67,349 to train, 872 to validate, 1,821 to test.

    There are no rationales. The training split consists of phrases without their sentences; `sst` has the sentences.
    GLUE publishes the test sentences without labels, so the hub's copy has no usable test split.
    """

    name: ClassVar[str] = "sst2"
    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")

    def examples(self, split: Split) -> Sequence[Example]:
        local = f"sst/glue_sst2_{split}.parquet"
        local_path = in_folder(local)
        path = local_path or from_hub("SST-2", local, "stanfordnlp/sst2", f"data/{split}-00000-of-00001.parquet")
        column = "text" if local_path else "sentence"
        rows = read_parquet(path, {column: str, "label": int})
        labels = [row["label"] for row in rows]
        if rows and set(labels) == {-1}:
            raise BadInput(
                f"The {split} split of sst2 has no labels: GLUE does not publish them. Use the validation "
                "split, or sst, whose test split has the same sentences with labels."
            )
        check_labels(path, labels, self.classes)
        return [Example(row[column].strip(), row["label"]) for row in rows]
