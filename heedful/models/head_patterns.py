"""How strongly each attention head follows simple patterns, such as attending to the previous token, over a corpus."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.datasets.texts import holds_many, texts_of
from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, unknown_name
from heedful.models import Attending, Model, check_model, check_offers
from heedful.models.attention_maps.special_tokens import SpecialAttention, attention_received, special_attention
from heedful.models.attention_maps.syntax import Parse, RelationScores, over_texts, parser_of, relation_scores
from heedful.progress import Progress, progress_of, show_progress
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL, mean_intervals

PATTERNS = (
    *("previous", "next", "itself", "special", "first", "punctuation"),
    *("sentence-end", "comma", "same-word", "padding", "broad"),
)
"""The patterns that need no parse."""
OTHER = "other"
"""The name of a head that clearly follows none of the patterns."""
CLEAR = 0.1
CLEARLY_BROAD = 0.9


@final
class HeadScores(NamedTuple):
    """One document's scores, and those of uniform attention over the keys that each query can see."""

    scores: Float[np.ndarray, "layer head pattern"]
    uniform: Float[np.ndarray, "pattern"]


@final
@dataclass(frozen=True, eq=False)
class Heads:
    """The score of every head on every pattern, in [0, 1], and the scores of uniform attention.

    A score is a mean over the queries q of a document, then over documents, all of equal weight, of a share of the
    row A[q, ·], which sums to one. The counted keys are

        previous      q − 1, for the queries that have one
        next          q + 1, likewise; 0 in a causal model, which cannot see it
        itself        q
        special       special tokens, such as [cls] and [sep]
        first         token 0
        punctuation   tokens without a letter or digit that are not special
        sentence-end  those of them with one of . ! ? …
        comma         those that are a comma
        same-word     other tokens whose piece is that of q and which are not special
        padding       positions that are not tokens of the document: 1 − Σ_k A[q, k]

    and `broad` is not a share but the row's entropy, padding included, divided by the logarithm of the number of
    visible keys: 1 is uniform, 0 a single key. A key is visible if any head of the layer gives it more than 0. The
    shares overlap ([cls] is special and first), so they do not sum to one.

    With a parse there are two more patterns for every relation, such as det→head and head→det: the share of pairs in
    which the other word gets most of a word's attention among all other words (`attention_maps/syntax.py`). Their
    `uniform` is the share that the best fixed offset finds, such as always the next word; a mean is over the texts that
    have the relation. `special` says how much more attention special tokens get than words.

    `interval` has the ends of the 95 % confidence interval of the mean over texts, within [0, 1]
    (`statistics.intervals.mean_intervals`): NaN where all texts have the same score; None for fewer than 5 texts.
    `error` is its longer arm. `uniform` is a mean over layers. Layers and heads are counted from 0, as in the arrays.

    Reference: Clark, Khandelwal, Levy & Manning, "What Does BERT Look At?", BlackboxNLP 2019, arXiv:1906.04341,
    Section 3.
    Differs from the paper: entropy is divided by its maximum, so that texts of different length can be averaged; first,
    same-word, padding and the uniform scores are added here.
    """

    patterns: tuple[str, ...]
    scores: Float[np.ndarray, "layer head pattern"]
    interval: tuple[Float[np.ndarray, "layer head pattern"], Float[np.ndarray, "layer head pattern"]] | None
    uniform: Float[np.ndarray, "pattern"]
    n_texts: int
    model: str
    special: SpecialAttention | None = None

    @property
    def error(self) -> Float[np.ndarray, "layer head pattern"] | None:
        """The distance of the mean from the farther end of its confidence interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        return np.maximum(self.scores - low, high - self.scores)

    @property
    def excess(self) -> Float[np.ndarray, "layer head pattern"]:
        """(score − uniform) / (1 − uniform): 0 for uniform attention, 1 at most."""
        room = 1 - self.uniform
        return np.where(room > 0, (self.scores - self.uniform) / np.where(room > 0, room, 1), 0)

    @property
    def clear(self) -> Bool[np.ndarray, "layer head pattern"]:
        """Which heads clearly follow which patterns: an excess of 0.1, or 0.9 of the uniform entropy for `broad`."""
        broad = np.array([pattern == "broad" for pattern in self.patterns])
        return np.where(broad, self.scores >= CLEARLY_BROAD * self.uniform, self.excess >= CLEAR)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """For every layer and head its clear pattern of largest excess, else "broad" if that is clear, else "other"."""
        followed = np.where(self.clear, np.where(self.excess > 0, self.excess, 0), -1)
        best = followed.argmax(axis=-1)
        is_clear = followed.max(axis=-1) >= 0
        return tuple(
            tuple(self.patterns[index] if clear else OTHER for index, clear in zip(indices, clears, strict=True))
            for indices, clears in zip(best.tolist(), is_clear.tolist(), strict=True)
        )

    def __repr__(self) -> str:
        n_layers, n_heads, _ = self.scores.shape
        counts = Counter(name for layer in self.names for name in layer)
        patterns = ", ".join(f"{n} {name}" for name, n in counts.most_common())
        return f"<{n_layers} layers of {n_heads} heads on {self.n_texts} texts: {patterns}>"

    def strongest(self, pattern: str, n: int = 5) -> list[tuple[int, int, float]]:
        """The n heads that score highest on a pattern: layer, head and score; ties in their order."""
        if pattern not in self.patterns:
            raise unknown_name("pattern", pattern, self.patterns)
        scores = self.scores[:, :, self.patterns.index(pattern)]
        order = np.argsort(-scores, axis=None, kind="stable")[:n].tolist()
        n_heads = scores.shape[1]
        return [(index // n_heads, index % n_heads, float(scores.flat[index])) for index in order]

    def as_rows(self) -> list[dict[str, str | int | float | None]]:
        """One dictionary per layer, head and pattern, ready for a data frame."""
        low, high, error = (
            _cells(values, self.scores.shape) for values in (*(self.interval or (None, None)), self.error)
        )
        return [
            {
                "layer": layer,
                "head": head,
                "pattern": self.patterns[index],
                "score": float(self.scores[layer, head, index]),
                "low": low[layer][head][index],
                "high": high[layer][head][index],
                "error": error[layer][head][index],
                "uniform": float(self.uniform[index]),
            }
            for layer, head, index in np.ndindex(*self.scores.shape)
        ]

    def as_dict(self) -> dict[str, object]:
        """Everything, ready for JSON."""
        low, high = self.interval or (None, None)
        ends = {"low": low, "high": high, "error": self.error}
        return {
            "patterns": list(self.patterns),
            "scores": self.scores.tolist(),
            **{name: None if end is None else _cells(end, self.scores.shape) for name, end in ends.items()},
            "uniform": self.uniform.tolist(),
            "n_texts": self.n_texts,
            "special": self.special and self.special.plain(),
            "model": self.model,
        }

    def _repr_html_(self) -> str:
        # As on Explanation: the notebook protocol puts the drawing on the value.
        from heedful.render.head_gallery import heads_cell

        return heads_cell(self)


def _cells(
    values: Float[np.ndarray, "layer head pattern"] | None, shape: tuple[int, ...]
) -> list[list[list[float | None]]]:
    """Nested lists with None in the place of NaN, which JSON has not."""
    if values is None:
        values = np.full(shape, np.nan)
    cells = values.astype(object)
    cells[np.isnan(values)] = None
    return cells.tolist()


def heads(
    model: Model,
    texts: Any,
    progress: Progress | bool | None = show_progress,
    *,
    text: str | None = None,
    parse: Parse | str | None = None,
) -> Heads:
    """Scores every head of a model on every pattern over texts; `Heads` defines the scores.

    `texts` is a single input of the model, or many as `explain` reads them; `text` is their column in a table. They are
    encoded one at a time, so that only one document's maps are in memory. `parse` adds syntactic relations: a function
    from a text to its words (start, end, index of the head, relation), the name of a spaCy model, or "rules".
    """
    check_model(model)
    check_offers(model, {"attention"}, "heads")
    assert isinstance(model, Attending)
    inputs = texts_of(texts, text, False).texts if holds_many(texts) else (texts,)
    if not inputs:
        raise BadInput("No text was given to score the heads on; give at least one.")
    measured, received, relations = zip(
        *_measured(model, inputs, None if parse is None else parser_of(parse), progress), strict=True
    )
    of_relations, offsets = over_texts(relations, measured[0].scores.shape[:2])
    each = np.concatenate([np.stack([text.scores for text in measured]), of_relations], axis=-1)
    uniform = np.concatenate([np.mean([text.uniform for text in measured], axis=0), offsets])
    interval = None
    if len(each) >= TEXTS_FOR_INTERVAL:
        low, high = mean_intervals(each.reshape(len(each), -1).T, (0.0, 1.0))
        interval = low.reshape(each.shape[1:]), high.reshape(each.shape[1:])
    names = (*PATTERNS, *sorted(set().union(*relations)))
    mean, special = np.nanmean(each, axis=0), special_attention(np.stack(received))
    return Heads(names, mean, interval, uniform, len(each), model.fingerprint, special)


def _measured(
    model: Attending, inputs: Sequence[Any], parse: Parse | None, progress: Progress | bool | None
) -> Iterator[tuple[HeadScores, Float[np.ndarray, "5"], dict[str, RelationScores]]]:
    with progress_of(progress, "texts") as watch:
        for number, each_text in enumerate(inputs, start=1):
            document = model.encode(each_text)
            maps = model.maps(document)
            scores = score_heads(document, maps)
            relations = relation_scores(document, maps, parse(document.text)) if parse else {}
            yield scores, attention_received(document, maps), relations
            watch(number, len(inputs))


def score_heads(document: Document, maps: Float[np.ndarray, "layer head query key"]) -> HeadScores:
    """The scores of one document's maps, as `Heads` defines them."""
    if (document.words == SPECIAL).all():
        raise BadInput("A text contains no words, so no attention can be scored; leave it out.")
    n = len(document.ids)
    if maps.shape[2] < n:
        raise BadInput(
            "Heads are scored between the tokens of one text, and this model has no such attention. "
            "`heedful compare` draws the attention that it has."
        )
    if not np.isfinite(maps).all():
        raise BadInput("The model's attention for a text is not finite; check its weights.")
    counted = _counted_keys(document, maps.shape[3])
    scores, uniform = [], []
    for layer_maps in maps:
        layer = layer_maps[:, :n].astype(np.float64)
        visible = (layer > 0).any(axis=0)
        n_visible = visible.sum(axis=1)
        uniform_rows = visible / np.maximum(n_visible, 1)[:, None]
        scores.append(_scores(layer, counted, n_visible))
        uniform.append(_scores(uniform_rows[None], counted, n_visible)[0])
    return HeadScores(np.stack(scores), np.mean(uniform, axis=0))


def _counted_keys(document: Document, n_keys: int) -> Bool[np.ndarray, "pattern query key"]:
    """The keys that each pattern counts for each query; the last two patterns count none."""
    n = len(document.ids)
    special = document.words == SPECIAL
    piece = np.unique(np.array(document.pieces, dtype=object), return_inverse=True)[1]
    itself, marks = np.eye(n, dtype=bool), ~_contain(document)
    rows = np.ones((n, 1), dtype=bool)
    by_pattern = {
        "previous": np.eye(n, k=-1, dtype=bool),
        "next": np.eye(n, k=1, dtype=bool),
        "itself": itself,
        "special": rows & special,
        "first": rows & (np.arange(n) == 0),
        "punctuation": rows & ~special & marks,
        "sentence-end": rows & ~special & marks & _contain(document, ".!?…"),
        "comma": rows & ~special & marks & _contain(document, ","),
        "same-word": (piece[:, None] == piece) & ~itself & ~special,
    }
    counted = np.zeros((len(by_pattern), n, max(n, n_keys)), dtype=bool)
    counted[:, :, :n] = np.stack(list(by_pattern.values()))
    return counted[:, :, :n_keys]


def _contain(document: Document, characters: str | None = None) -> Bool[np.ndarray, "token"]:
    """Which tokens contain one of these characters, or a letter or digit."""
    # A tokenizer may write a space as a letter (Ġ), so the characters are those of the text where it has them.
    read = [document.text[start:end] or p for p, (start, end) in zip(document.pieces, document.spans, strict=True)]
    return np.array([any(c in characters if characters else c.isalnum() for c in text) for text in read])


def _scores(
    layer: Float[np.ndarray, "head query key"],
    counted: Bool[np.ndarray, "share query key"],
    n_visible: Int[np.ndarray, "query"],
) -> Float[np.ndarray, "head pattern"]:
    n_heads, n, n_keys = layer.shape
    n_queries = np.array([n - 1 if name in ("previous", "next") else n for name in PATTERNS[: len(counted)]])
    flat = layer.reshape(n_heads, n * n_keys)
    shares = np.stack([flat[:, keys.ravel()].sum(axis=1) for keys in counted], axis=1) / np.maximum(n_queries, 1)
    padding = np.maximum(0, 1 - layer[:, :, :n].sum(axis=2)).mean(axis=1)
    total = layer.sum(axis=2, keepdims=True)
    p = layer / np.where(total > 0, total, 1)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=2)
    broad = np.where(n_visible > 1, entropy / np.log(np.maximum(n_visible, 2)), 0).mean(axis=1)
    return np.column_stack([shares, padding, broad])
