"""IMDB film reviews (Maas et al., 2011), the data of the paper's experiments."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np

from heedful.datasets import Dataset, Example, Split
from heedful.errors import BadInput, MissingPackage, Offline


@final
@dataclass(frozen=True)
class Imdb(Dataset):
    """Film reviews, negative or positive: 20,000 to train, 5,000 to validate, 25,000 to test (Appendix F).

    The official training half is split by `split_seed`. It holds 96 exact repeats, the test half 199, and 123 texts
    stand in both; `duplicates="drop"` keeps the first of each and drops from the test half what the training half has.
    """

    name: ClassVar[str] = "imdb"
    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")

    split_seed: int = 0
    n_validation: int = 5_000
    duplicates: Literal["keep", "drop"] = "keep"

    def __post_init__(self) -> None:
        if self.n_validation < 1 or self.split_seed < 0:
            raise BadInput("IMDB needs n_validation of at least 1 and a split_seed from 0.")

    def examples(self, split: Split) -> Sequence[Example]:
        if split == "test":
            train = {example.text for example in _read("train")} if self.duplicates == "drop" else set()
            return self._distinct([example for example in _read("test") if example.text not in train])
        rows = self._distinct(_read("train"))
        order = np.random.default_rng(self.split_seed).permutation(len(rows))
        chosen = order[: self.n_validation] if split == "validation" else order[self.n_validation :]
        return [rows[index] for index in chosen]

    def _distinct(self, rows: list[Example]) -> list[Example]:
        first: dict[str, Example] = {}
        for row in rows:
            first.setdefault(row.text, row)
        return rows if self.duplicates == "keep" else list(first.values())


def _read(half: Literal["train", "test"]) -> list[Example]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingPackage(
            "Reading IMDB needs pyarrow, part of the extra [data]; `make install` brings it."
        ) from error
    path = _local(half) if os.environ.get("HEEDFUL_DATA") else _from_hub(half)
    try:
        table = parquet.read_table(path, columns=["text", "label"])
        if table.num_columns < 2 or table["text"].null_count or table["label"].null_count:
            raise BadInput(f"{path.name} must have the columns text and label, with no gaps.")
    except (ArrowException, OSError) as error:
        raise BadInput(f"{path.name} cannot be read as parquet; fetch it again.") from error
    return [
        Example(text, int(label))
        for text, label in zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True)
    ]


def _local(half: str) -> Path:
    path = Path(os.environ["HEEDFUL_DATA"]) / "imdb" / f"{half}.parquet"
    if not path.exists():
        raise BadInput(f"HEEDFUL_DATA names a folder without imdb/{half}.parquet; unset it to use the hub's copy.")
    return path


def _from_hub(half: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise MissingPackage(
            "Fetching IMDB needs huggingface-hub, part of the extra [data]; `make install` brings it."
        ) from error
    # The hub's client reports each of its retries; the one sentence below is enough.
    log = logging.getLogger("huggingface_hub")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        file = f"plain_text/{half}-00000-of-00001.parquet"
        return Path(hf_hub_download("stanfordnlp/imdb", file, repo_type="dataset"))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise Offline(
            "IMDB is not on this machine and the hub cannot be reached: connect once, "
            "or name a folder that holds imdb/train.parquet and imdb/test.parquet in HEEDFUL_DATA."
        ) from error
    finally:
        log.setLevel(level)
