"""Word vectors from a text file, as GloVe and fastText publish them."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from heedful.errors import BadInput, in_short
from heedful.models.classic.network import ClassicNetwork
from heedful.models.vocabulary import Vocabulary


def begin_with_vectors(network: ClassicNetwork, vocabulary: Vocabulary, path: Path) -> None:
    """Replaces the initial vectors of the words that a file has: a line is a word and d_e numbers.

    The first line of a fastText file, the number of words and the dimension, is skipped. Words are compared in lower
    case, and the first of several counts.
    """
    rows: dict[int, np.ndarray] = {}
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as lines:
            for number, line in enumerate(lines, start=1):
                word, *cells = line.rstrip().split(" ")
                place = vocabulary.index.get(word.lower())
                if place is not None and not (number == 1 and len(cells) == 1):
                    rows.setdefault(place, _vector(cells, network.config.d_e, f"{path}, line {number}"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from None
    if not rows:
        raise BadInput(f"{path} has a vector for none of the {len(vocabulary):,} words; check the file.")
    with torch.no_grad():
        network.W_e[list(rows)] = torch.from_numpy(np.stack([*rows.values()])).to(network.W_e)


def _vector(cells: list[str], d_e: int, where: str) -> Float[np.ndarray, "d_e"]:
    if len(cells) != d_e:
        raise BadInput(f"{where}: {len(cells)} numbers, but d_e is {d_e}; set --d-e {len(cells)}.")
    try:
        vector = np.array(cells, dtype=np.float32)
    except ValueError:
        raise BadInput(f"{where} is not a word and numbers: {in_short(' '.join(cells))}.") from None
    if not np.isfinite(vector).all():
        raise BadInput(f"{where} has a number that is not finite.")
    return vector
