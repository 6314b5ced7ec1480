"""Words that are drawn from data."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from heedful.datasets import Dataset
from heedful.datasets.table import TABLES
from heedful.datasets.texts import texts_of
from heedful.errors import BadInput, unknown_name
from heedful.family import members


@cache
def drawn_words(data: str, n_words: int, seed: int) -> tuple[str, ...]:
    """Words of a data set's training texts, or of a table or text file: a random text, then a random word."""
    texts, rng = _texts(data), np.random.default_rng(seed)
    words: list[str] = []
    for _ in range(n_words):
        choices = re.findall(r"\w+(?:'\w+)?|[^\w\s]", texts[int(rng.integers(len(texts)))])
        if choices:
            words.append(choices[int(rng.integers(len(choices)))])
    return tuple(words)


@cache
def _texts(data: str) -> Sequence[str]:
    catalogue = members("heedful.datasets", Dataset)
    if data in catalogue:
        texts = [example.text for example in catalogue[data]().examples("train")]
    elif Path(data).suffix.lower() in TABLES and Path(data).is_file():
        # As lines, a table would give the words of its labels and of its heading.
        texts = texts_of(data).texts
    elif Path(data).is_file():
        texts = [line for line in Path(data).read_text(encoding="utf-8").splitlines() if line.strip()]
    else:
        raise unknown_name("data set or file", data, catalogue)
    if not texts:
        raise BadInput(f"{data!r} contains no texts; give a data set, or a file with one text a line.")
    if not all(isinstance(text, str) for text in texts):
        raise BadInput(f"{data!r} does not consist of single texts; give a data set or a file of texts.")
    return texts
