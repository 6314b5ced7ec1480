"""Syntactic relations of a text, and how often a head attends from a word to the word that it depends on."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.document import Document
from heedful.errors import BadInput, Unsupported, in_short
from heedful.models.attention_maps.dependency_rules import ParsedWord, parse_by_rules

Parse = Callable[[str], Sequence[Any]]
"""Takes a text; returns (start, end, index of the head, relation) for each of its words, as a parser knows them."""
_LEFT_OUT = ("root", "punct", "")


@final
class RelationScores(NamedTuple):
    """One relation in one text: the share of pairs that each head finds, and that each fixed offset finds."""

    accuracy: Float[np.ndarray, "layer head"]
    offsets: Mapping[int, float]


def parser_of(parse: Parse | str) -> Parse:
    """The parser: a function, "rules" (a few rules for English), or the name of a spaCy model."""
    if callable(parse):
        return parse
    if parse == "rules":
        return parse_by_rules
    try:
        read = import_module("spacy").load(parse)
    except ImportError:
        raise Unsupported(
            f'parse={parse!r} needs spaCy (pip install "heedful[syntax]"); "rules" and a function need nothing.'
        ) from None
    except OSError:
        raise BadInput(f"spaCy has no model {parse!r}; python -m spacy download {parse} may fetch it.") from None
    return lambda text: [ParsedWord(t.idx, t.idx + len(t), t.head.i, t.dep_) for t in read(text)]


def relation_scores(
    document: Document, maps: Float[np.ndarray, "layer head query key"], words: Sequence[Any]
) -> dict[str, RelationScores]:
    """Every relation of a parsed text in both directions: "det→head", and "head→det" from the head to its dependent.

    A head finds a pair if the other word gets most of the first word's attention among all other words. Attention is
    averaged over the tokens of the first word and summed over those of the other; special tokens do not count.
    """
    spans = _checked_spans(document, words)
    if not words:
        return {}
    starts, ends = np.array(document.spans).T
    member = (starts[:, None] < spans[None, :, 1]) & (ends[:, None] > spans[None, :, 0])
    present = member.any(axis=0)
    weights = member / np.maximum(member.sum(axis=0), 1)
    n = len(document.ids)
    between = np.einsum("qi,lhqk,kj->lhij", weights, maps[:, :, :n, :n], member.astype(float), optimize=True)
    between[:, :, range(len(words)), range(len(words))] = -1
    between[..., ~present] = -1
    most = between.argmax(axis=-1)
    pairs: dict[str, list[tuple[int, int]]] = {}
    for index, (_, _, head, relation) in enumerate(words):
        if relation.lower() not in _LEFT_OUT and head != index and present[[index, head]].all():
            pairs.setdefault(f"{relation}→head", []).append((index, head))
            pairs.setdefault(f"head→{relation}", []).append((head, index))
    scores = {}
    for name, own in pairs.items():
        accuracy = np.mean([most[:, :, start] == end for start, end in own], axis=0)
        offsets = Counter(end - start for start, end in own)
        scores[name] = RelationScores(accuracy, {offset: n / len(own) for offset, n in offsets.items()})
    return scores


def _checked_spans(document: Document, words: Sequence[Any]) -> Float[np.ndarray, "word 2"]:
    """The start and the end of every word; a parse of another form, or of another text, is refused."""
    spans, wrong = np.zeros((0, 2)), True
    try:
        spans = np.array([(int(start), int(end)) for start, end, _, _ in words], dtype=float).reshape(-1, 2)
        wrong = any(not 0 <= head < len(words) or not isinstance(relation, str) for _, _, head, relation in words)
    except (TypeError, ValueError):
        pass
    if wrong:
        raise BadInput(
            "A parse must give (start, end, index of the head, relation) for every word; the head is one of its words."
        )
    if not words and document.word_texts:
        raise BadInput(f"The parse of {in_short(document.text)} has no words; a parse must give all of them.")
    before = np.concatenate([[0], spans[:-1, 1]])
    misplaced = (spans[:, 0] < before) | (spans[:, 1] <= spans[:, 0]) | (spans[:, 1] > len(document.text))
    if misplaced.any():
        start, end = spans[misplaced][0].astype(int)
        raise BadInput(
            f"A word of the parse covers characters {start} to {end} of a text of {len(document.text)}; words must "
            "lie in the text, in its order, and not overlap."
        )
    return spans


def over_texts(
    texts: Sequence[Mapping[str, RelationScores]], shape: tuple[int, ...]
) -> tuple[Float[np.ndarray, "text layer head relation"], Float[np.ndarray, "relation"]]:
    """The scores of every text, NaN where it has no such relation, and the share that the best fixed offset finds."""
    names = sorted(set().union(*texts))
    accuracy, best = np.full((len(texts), *shape, len(names)), np.nan), np.zeros(len(names))
    for place, name in enumerate(names):
        shares: Counter[int] = Counter()
        own = [(number, text[name]) for number, text in enumerate(texts) if name in text]
        for number, relation in own:
            accuracy[number, :, :, place] = relation.accuracy
            shares.update(relation.offsets)
        best[place] = max(shares.values()) / len(own)
    return accuracy, best
