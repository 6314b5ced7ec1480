"""IMDB's 75,000 reviews as token ids: what is trained on, what is set apart, and the test reviews."""

import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int

from heedful.run_folder import write_atomically
from studies.families.training import read_columns

PART = 18_000_000
"""The largest size of a packed file in bytes: two of them travel with the repository."""


@final
@dataclass(frozen=True)
class Reviews:
    """The texts: to train on, set apart to choose among epochs and settings, and to test on."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]
    test: tuple[str, ...]
    n_tested: int
    """How many training texts were left out since they are test reviews too."""


def read_reviews(data: Path, n_held: int, seed: int) -> Reviews:
    """Training and unlabelled reviews without those that are test reviews too, and the distinct test reviews."""
    train, unsup, test = (
        [as_written(text) for text in read_columns(data / f"imdb/{part}.parquet", "text")[0]]
        for part in ("train", "unsup", "test")
    )
    tested = set(test)
    own = [text for text in (*train, *unsup) if text not in tested]
    order = np.random.default_rng(seed).permutation(len(own))
    held = {own[n] for n in order[:n_held]}
    return Reviews(
        tuple(text for text in own if text not in held),
        tuple(dict.fromkeys(own[n] for n in order[:n_held])),
        tuple(dict.fromkeys(test)),
        len(train) + len(unsup) - len(own),
    )


def as_written(text: str) -> str:
    """A review as its author typed it, with line breaks for their HTML."""
    return text.replace("<br />", "\n").strip()


def pack(texts: Iterable[Int[np.ndarray, "_"]], path: Path) -> list[Path]:
    """Writes token ids in 16 bits, each text after its length, compressed, in files of at most `PART` bytes."""
    flat = np.concatenate([part for text in texts for part in ([len(text)], text)]).astype("<u2")
    # The two bytes of an id are alike among themselves, not to each other.
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 1, "pb": 1}]
    content = lzma.compress(flat.tobytes(), filters=filters)
    paths = [path.with_name(f"{path.name}.{n}") for n in range(-(-len(content) // PART))]
    for n, part in enumerate(paths):
        write_atomically(part, content[n * PART : (n + 1) * PART])
    return paths


def unpack(path: Path) -> list[Int[np.ndarray, "_"]]:
    """The token ids of every text."""
    parts = sorted(path.parent.glob(f"{path.name}.[0-9]"))
    flat = np.frombuffer(lzma.decompress(b"".join(part.read_bytes() for part in parts)), dtype="<u2")
    texts, start = [], 0
    while start < len(flat):
        end = start + 1 + int(flat[start])
        texts.append(flat[start + 1 : end].astype(np.int64))
        start = end
    return texts
