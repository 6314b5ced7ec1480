"""Which features are active in which tokens of texts: sparse pairs, in bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, Unsupported, brief
from heedful.family import check_count
from heedful.features.activations import find_site, is_read, text_rows
from heedful.features.clamp import changeable, device_of
from heedful.features.dictionary import Dictionary
from heedful.models import Model
from heedful.models.language import first_tokens
from heedful.models.layered import LayeredModel
from heedful.progress import Progress

PAIRS = 1 << 24
"""At most so many pairs are in memory; a pair takes 12 bytes, and 44 while pairs are sorted: 0.7 GB."""
_TEXTS_AT_ONCE = 32
_NUMBERS_AT_ONCE = 1 << 24


@final
@dataclass(frozen=True, eq=False)
class ReadTexts:
    """The tokens of some texts that have a row: special tokens and texts without any other have none."""

    names: tuple[str, ...]
    """What the user calls each text."""
    documents: tuple[Document, ...]
    tokens: tuple[tuple[str, ...], ...]
    """The tokens of each text as the text spells them, with the white space before them."""
    pieces: tuple[tuple[str, ...], ...]
    """The tokens as the model reads them; one that continues a word begins with an ellipsis."""

    __repr__ = brief

    @cached_property
    def starts(self) -> Int[np.ndarray, "start"]:
        """The first row of each text, and the number of all rows."""
        return np.cumsum([0, *map(len, self.tokens)])

    @cached_property
    def text_of(self) -> Int[np.ndarray, "row"]:
        """The text that each row comes from."""
        return np.repeat(np.arange(len(self.tokens)), np.diff(self.starts))


@final
class ActivePairs(NamedTuple):
    """The rows in which a feature is active, in order, and how active it is."""

    feature: int
    rows: Int[np.ndarray, "pair"]
    values: Float[np.ndarray, "pair"]


@final
class TokenFeatures(NamedTuple):
    """A token of a text, and its strongest features with their activations, the strongest first."""

    token: str
    features: tuple[tuple[int, float], ...]


def active(dictionary: Dictionary, text: Any, n: int = 3, *, model: Model | None = None) -> list[TokenFeatures]:
    """The features that are active at each token of a text, at most n per token; special tokens have none."""
    check_count("n, the number of features per token,", n, 1, dictionary.width)
    own = changeable(dictionary, model)
    read = read_tokens(own, dictionary, [text], [""])
    x = text_rows(own, read.documents, find_site(own, dictionary.card.part, dictionary.card.layer)).x
    with torch.no_grad():
        values, places = dictionary.to(str(x.device)).encode(x).topk(n, dim=1)
    rows = zip(read.tokens[0], places.tolist(), values.tolist(), strict=True)
    return [
        TokenFeatures(token.strip(), tuple(pair for pair in zip(numbers, own, strict=True) if pair[1] > 0))
        for token, numbers, own in rows
    ]


def read_tokens(model: LayeredModel, dictionary: Dictionary, texts: Sequence[Any], names: Sequence[str]) -> ReadTexts:
    """Tokenizes texts; what has no tokens but special ones is left out."""
    site, read = find_site(model, dictionary.card.part, dictionary.card.layer), []
    for name, text in zip(names, texts, strict=True):
        document = model.encode(text)
        if document.picture is not None:
            raise Unsupported("The features of a model of images cannot be described yet; give a model of texts.")
        places = np.flatnonzero(is_read(model, document, site)).tolist()
        if places:
            read.append((name, first_tokens(document, len(document.ids)), *_spelt(document, places)))
    if not read:
        raise BadInput("The texts contain no tokens but special ones; give texts with words.")
    return ReadTexts(*zip(*read, strict=True))  # type: ignore[arg-type]


def _spelt(document: Document, places: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens at some places as parts of the text, and as the model reads them."""
    tokens, pieces, end, word = [], [], document.spans[places[0]][0], SPECIAL
    for place in places:
        stop = max(end, document.spans[place][1])
        tokens.append(document.text[end:stop])
        name = document.pieces[place].strip(" ").replace("\n", "↵") or "␣"
        goes_on = document.words[place] == word and name.isalnum()
        pieces.append(f"…{name}" if goes_on else name)
        end, word = stop, int(document.words[place])
    return tuple(tokens), tuple(pieces)


def active_features(
    dictionary: Dictionary, model: LayeredModel, read: ReadTexts, watch: Progress, most: int = PAIRS
) -> Iterator[ActivePairs]:
    """Every feature that is active somewhere, in order, with its rows.

    The texts are read once if all pairs fit into memory; otherwise once for each range of features whose pairs do.
    """
    first = 0
    while first < dictionary.width:
        last, columns = _collected(dictionary, model, read, first, most, watch)
        feature, rows, values = columns
        order = np.argsort(feature, kind="stable")
        feature, rows, values = feature[order], rows[order], values[order]
        numbers, starts = np.unique(feature, return_index=True)
        bounds = np.append(starts, len(feature))
        for number, start, end in zip(numbers, bounds[:-1], bounds[1:], strict=True):
            yield ActivePairs(int(number), rows[start:end], values[start:end])
        first = last


def _collected(
    dictionary: Dictionary, model: LayeredModel, read: ReadTexts, first: int, most: int, watch: Progress
) -> tuple[int, list[np.ndarray]]:
    """One pass over the texts: the pairs of features `first` to `last`, and `last`, which is lowered for many pairs."""
    site, here = find_site(model, dictionary.card.part, dictionary.card.layer), dictionary.to(str(device_of(model)))
    parts: list[list[np.ndarray]] = []
    last, n_pairs, n = here.width, 0, len(read.documents)
    for start in range(0, n, _TEXTS_AT_ONCE):
        x = text_rows(model, read.documents[start : start + _TEXTS_AT_ONCE], site).x
        row = int(read.starts[start])
        for some in x.split(max(1, _NUMBERS_AT_ONCE // here.width)):
            with torch.no_grad():
                active = here.encode(some)[:, first:last]
            place, feature = active.nonzero(as_tuple=True)
            new = (feature.int(), place.int(), active[place, feature])
            feature, place, values = (column.cpu().numpy() for column in new)
            parts.append([feature + np.int32(first), place + np.int32(row), values])
            n_pairs, row = n_pairs + len(feature), row + len(some)
            while n_pairs > most and last - first > 1:
                last = (first + last) // 2
                parts = [[column[part[0] < last] for column in part] for part in parts]
                n_pairs = sum(len(part[0]) for part in parts)
        watch(min(n, start + _TEXTS_AT_ONCE), n)
    return last, [np.concatenate(columns) for columns in zip(*parts, strict=True)]
