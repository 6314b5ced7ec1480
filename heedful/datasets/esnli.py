"""e-SNLI: does the second text follow from the first? (Camburu et al., 2018, arXiv:1812.01193)"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.source import CONVERTED, check_labels, from_hub, in_folder, read_parquet
from heedful.document import Pair
from heedful.errors import BadInput


@final
@dataclass(frozen=True)
class Esnli(Dataset):
    """Premise and hypothesis: 549,367 pairs to train, 9,842 to validate, 9,824 to test.

    The annotators explained every label in a sentence. Such a sentence is not a span of the texts, and the public
    copies omit the words that they highlighted, so there are no rationales.
    """

    name: ClassVar[str] = "esnli"
    classes: ClassVar[tuple[str, ...]] = ("entailment", "neutral", "contradiction")

    def examples(self, split: Split) -> Sequence[Example]:
        local = f"esnli_dev_test/{split}.parquet"
        local_path = in_folder(local)
        path = local_path or from_hub("e-SNLI", local, "esnli/esnli", f"plain_text/{split}/0000.parquet", CONVERTED)
        # In a folder the labels are words; on the hub they are numbers.
        rows = read_parquet(path, {"premise": str, "hypothesis": str, "label": str if local_path else int})
        if local_path:
            strange = {row["label"] for row in rows} - set(self.classes)
            if strange:
                raise BadInput(f"{path.name} has labels that are not classes, such as {min(strange)!r}.")
        labels = [self.classes.index(row["label"]) if local_path else row["label"] for row in rows]
        check_labels(path, labels, self.classes)
        return [
            Example(Pair(row["premise"], row["hypothesis"]), label) for row, label in zip(rows, labels, strict=True)
        ]
