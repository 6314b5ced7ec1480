"""Token rules: labels of features made without a language model, and how well they predict where a feature is active.

A rule is a list of values of one aspect of a token, such as "token: happy, glad". Its score of a token is the mean
activation among tokens with that value, 0 for all others. The values are learnt on some texts, the aspect and the
number of values are chosen on others, and the quality is measured on texts that were used for neither.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array

from heedful.datasets.texts import content_of
from heedful.errors import brief
from heedful.features.reading.active import ActivePairs, ReadTexts
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL, jackknife_interval
from heedful.statistics.quantity import Quantity, ratio_of

LEAST_AUROC = 0.8
LEAST_PRECISION = 0.1
"""A rule of less, or whose interval reaches 0.5, on the texts that it is measured on, is not shown: "no rule"."""
_SIZES = (1, 2, 4, 8, 16, 32)
_TOLERANCE = 0.01
"""A simpler rule is preferred to one whose AUROC is larger by at most that."""
_SHOWN = 6
STRONG = 0.5
"""A token is strongly active above that share of the largest activation in the texts that the rule is made from."""
LEARN, CHOOSE, MEASURE = range(3)


@final
@dataclass(frozen=True)
class TokenRule:
    """A rule with its quality on held-out texts; the intervals are over texts (jackknife)."""

    aspect: str
    values: tuple[str, ...]
    """Those that the rule holds for, the one that says most about the feature first."""
    scores: tuple[float, ...]
    """The mean activation of each value, in the texts that the rule was made from."""
    auroc: Quantity
    """The share of pairs of an active and an inactive token of which the rule scores the active one higher."""
    precision: Quantity
    """The share of active tokens among those that the rule holds for."""
    recall: Quantity
    """The share of the active tokens that the rule holds for."""
    density: float
    """The share of active tokens, which is the precision of a rule that knows nothing."""
    threshold: float
    """The activation above which a token counts as active: 0, or half of the largest."""

    @property
    def is_good(self) -> bool:
        """Whether the rule is shown: its AUROC and precision are large enough, and the AUROC is above chance."""
        return self.auroc.value >= LEAST_AUROC and not self.auroc.low <= 0.5 and self.precision.value >= LEAST_PRECISION

    @property
    def label(self) -> str:
        """The aspect and the first values; "(strong)" if it predicts where the feature is strongly active."""
        more = f" … ({len(self.values)})" if len(self.values) > _SHOWN else ""
        strong = " (strong)" if self.threshold else ""
        return f"{self.aspect}: {' · '.join(self.values[:_SHOWN])}{more}{strong}"


@final
@dataclass(frozen=True, eq=False)
class Aspect:
    """Something about a token that a rule may name: the value of every row, and what values are called."""

    name: str
    values: Int[np.ndarray, "row"]
    names: tuple[str, ...]
    totals: tuple[Int[np.ndarray, "value"], ...]
    """How many rows have each value in the texts for learning, choosing and measuring."""
    per_text: csr_array
    """How many rows have each value in each text that is held out for measuring."""

    __repr__ = brief


def split_texts(texts: Sequence[object], seed: int) -> Int[np.ndarray, "text"]:
    """What each text is for: 30 % to learn, 20 % to choose, 50 % to measure. Copies of a text are for the same."""
    keys = [hashlib.sha256(f"{seed} {content_of(text)}".encode("utf-8", "backslashreplace")).digest() for text in texts]
    place = {key: number for number, key in enumerate(sorted({*keys}))}
    ends = np.ceil(np.array([0.3, 0.5]) * len(place))
    return np.searchsorted(ends, [place[key] for key in keys], side="right")


def aspects_of(read: ReadTexts, part: Int[np.ndarray, "text"]) -> tuple[Aspect, ...]:
    """The aspects that rules may name; of equally good ones an earlier one is preferred."""
    names, piece = np.unique(np.concatenate([np.array(pieces) for pieces in read.pieces]), return_inverse=True)
    place = np.arange(len(piece)) - read.starts[read.text_of]
    lower = [name.lower() for name in names.tolist()]
    before = np.where(place > 0, np.roll(piece, 1), len(names))
    earlier = np.where(place > 1, np.roll(piece, 2), len(names))
    behind = np.where(np.roll(place, -1) > 0, np.roll(piece, -1), len(names))
    known = [*names.tolist(), "(start of the text)"]
    codes, pair = np.unique(before * (len(names) + 1) + piece, return_inverse=True)
    two = [" ".join(known[n] for n in divmod(code, len(names) + 1)) for code in codes.tolist()]
    values = {
        "token": (piece, known),
        "previous token": (before, known),
        "kind": _grouped(piece, [_kind(name) for name in names.tolist()]),
        "last letters": _grouped(piece, [name.lstrip("…")[-3:] for name in lower]),
        "first letters": _grouped(piece, [name[: 3 + name.startswith("…")] for name in lower]),
        "place in the text": (np.minimum(place, _FAR), [*map(str, range(1, _FAR + 1)), f"{_FAR + 1} or later"]),
        "token before the previous": (earlier, known),
        "next token": (behind, [*names.tolist(), "(end of the text)"]),
        "two tokens": (pair, two),
    }
    return tuple(_aspect(name, own, spelt, read, part) for name, (own, spelt) in values.items())


_FAR = 32


def _grouped(piece: Int[np.ndarray, "row"], keys: Sequence[str]) -> tuple[Int[np.ndarray, "row"], list[str]]:
    names, group = np.unique(np.array(keys), return_inverse=True)
    return group[piece], names.tolist()


def _kind(name: str) -> str:
    bare = name.lstrip("…")
    if not bare.isalpha():
        return "number" if bare.isnumeric() else "a mix" if any(map(str.isalnum, bare)) else "punctuation"
    case = "lower case" if bare.islower() else "capitals" if bare.isupper() and len(bare) > 1 else "capitalised"
    return f"{case} rest of a word" if name != bare else case


def _aspect(
    name: str, values: Int[np.ndarray, "row"], names: Sequence[str], read: ReadTexts, part: Int[np.ndarray, "text"]
) -> Aspect:
    part_of = part[read.text_of]
    totals = tuple(np.bincount(values[part_of == own], minlength=len(names)) for own in (LEARN, CHOOSE, MEASURE))
    held = part_of == MEASURE
    cells = (np.ones(held.sum(), dtype=np.int64), (values[held], read.text_of[held]))
    return Aspect(name, values, tuple(names), totals, csr_array(cells, shape=(len(names), len(part))))


def rules_of(
    pairs: ActivePairs, aspects: Sequence[Aspect], read: ReadTexts, part: Int[np.ndarray, "text"]
) -> tuple[TokenRule, ...]:
    """The best rule for where a feature is active, and the best for where it is strongly active, if they are good.

    The first is the one whose AUROC is larger on the texts for choosing.
    """
    made = part[read.text_of[pairs.rows]] != MEASURE
    rules: list[tuple[float, TokenRule]] = []
    for threshold in (0.0, STRONG * float(pairs.values[made].max(initial=0.0))):
        above = pairs.values > threshold
        best = _best(ActivePairs(pairs.feature, pairs.rows[above], pairs.values[above]), aspects, read, part, threshold)
        if best is not None and best[1].is_good:
            rules.append(best)
    return tuple(rule for _, rule in sorted(rules, key=lambda pair: -pair[0]))


def _best(
    pairs: ActivePairs, aspects: Sequence[Aspect], read: ReadTexts, part: Int[np.ndarray, "text"], threshold: float
) -> tuple[float, TokenRule] | None:
    """The AUROC on the texts for choosing, and the rule; None if too few texts have such a token."""
    text = read.text_of[pairs.rows]
    learn, choose, held = (part[text] == own for own in (LEARN, CHOOSE, MEASURE))
    if not learn.any() or not choose.any() or len(np.unique(text[held])) < TEXTS_FOR_INTERVAL:
        return None
    best: tuple[float, Aspect, int] | None = None
    for aspect in aspects:
        own = aspect.values[pairs.rows]
        values, scores = _learnt(own[learn], pairs.values[learn], aspect.totals[LEARN])
        active, inactive = _counts(own[choose], values, aspect.totals[CHOOSE])
        for size in (*(size for size in _SIZES if size < len(values)), len(values)):
            auroc = float(auroc_of_counts(*_ascending(_cut(active, size), _cut(inactive, size), scores[:size])))
            if best is None or auroc > best[0] + _TOLERANCE:
                best = auroc, aspect, size
    assert best is not None
    auroc, aspect, size = best
    own = aspect.values[pairs.rows]
    learnt = _learnt(own[~held], pairs.values[~held], aspect.totals[LEARN] + aspect.totals[CHOOSE])
    values, scores = (column[:size] for column in learnt)
    return auroc, _measured(aspect, values, scores, own[held], text[held], part == MEASURE, threshold)


def _learnt(
    own: Int[np.ndarray, "pair"], activations: Float[np.ndarray, "pair"], totals: Int[np.ndarray, "all"]
) -> tuple[Int[np.ndarray, "value"], Float[np.ndarray, "value"]]:
    """The values that raise the AUROC most, best first, with their mean activations.

    With P active rows and N others, a value adds half of (its active rows / P − its other rows / N).
    """
    values, place, active = np.unique(own, return_inverse=True, return_counts=True)
    n, all_of = len(own), totals[values]
    gains = active / n - (all_of - active) / max(totals.sum() - n, 1)
    order = np.argsort(-gains, kind="stable")[: _SIZES[-1]]
    order = order[(gains[order] > 0) & (active[order] > 1)]
    return values[order], (np.bincount(place, activations.astype(np.float64)) / all_of)[order]


def _counts(
    own: Int[np.ndarray, "pair"], values: Int[np.ndarray, "value"], totals: Int[np.ndarray, "all"]
) -> tuple[Int[np.ndarray, "count"], Int[np.ndarray, "count"]]:
    """The active and the inactive rows of each value; the last number is of all other values."""
    active = np.bincount(_places(own, values), minlength=len(values) + 1)
    whole = np.append(totals[values], totals.sum() - totals[values].sum())
    return active, whole - active


def _cut(counts: Int[np.ndarray, "count"], size: int) -> Int[np.ndarray, "kept"]:
    """The counts of the first values, and of all others."""
    return np.append(counts[:size], counts[size:].sum())


def _places(own: Int[np.ndarray, "pair"], values: Int[np.ndarray, "value"]) -> Int[np.ndarray, "pair"]:
    """The place of each value in a list; the length of the list for others."""
    if not len(values):
        return np.zeros(len(own), dtype=np.int64)
    order = np.argsort(values)
    nearest = order[np.minimum(np.searchsorted(values[order], own), len(values) - 1)]
    return np.where(values[nearest] == own, nearest, len(values))


def _ascending(
    active: Int[np.ndarray, "*text count"], inactive: Int[np.ndarray, "*text count"], scores: Float[np.ndarray, "value"]
) -> tuple[Int[np.ndarray, "*text score"], Int[np.ndarray, "*text score"]]:
    """Counts by score, the least first; the last count is of values whose score is 0. Equal scores are one."""
    _, place = np.unique(np.append(scores, 0.0), return_inverse=True)
    to = np.zeros((len(place), int(place.max()) + 1), dtype=np.int64)
    to[np.arange(len(place)), place] = 1
    return active @ to, inactive @ to


def auroc_of_counts(
    active: Int[np.ndarray, "*text score"], inactive: Int[np.ndarray, "*text score"]
) -> Float[np.ndarray, "*text"]:
    """The AUROC from the counts of each score, the least first: the share of (active, inactive) pairs in the right
    order, equal scores counted half. Exact; NaN where one side is empty.

    Reference: Hanley & McNeil, *The meaning and use of the area under a ROC curve*, Radiology 1982.
    """
    below = np.cumsum(inactive, axis=-1) - inactive / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((active * below).sum(axis=-1) / (active.sum(axis=-1) * inactive.sum(axis=-1)))


def _measured(
    aspect: Aspect,
    values: Int[np.ndarray, "value"],
    scores: Float[np.ndarray, "value"],
    own: Int[np.ndarray, "pair"],
    text: Int[np.ndarray, "pair"],
    held: Bool[np.ndarray, "text"],
    threshold: float,
) -> TokenRule:
    """The rule with its quality on the held-out texts."""
    width, n = len(values) + 1, len(held)
    active = np.bincount(text * width + _places(own, values), minlength=n * width).reshape(n, width)[held]
    n_rows = np.asarray(aspect.per_text.sum(axis=0))[held]
    holds = aspect.per_text[values].toarray().T[held]
    inactive = np.column_stack([holds, n_rows - holds.sum(axis=1)]) - active
    caught, all_active, n_holds = (column.sum(axis=1, dtype=np.float64) for column in (active[:, :-1], active, holds))
    return TokenRule(
        aspect=aspect.name,
        values=tuple(aspect.names[value] for value in values.tolist()),
        scores=tuple(scores.tolist()),
        auroc=_auroc(*_ascending(active, inactive, scores)),
        precision=ratio_of(caught, n_holds, (0.0, 1.0)),
        recall=ratio_of(caught, all_active, (0.0, 1.0)),
        density=float(all_active.sum() / n_rows.sum()),
        threshold=threshold,
    )


def _auroc(active: Int[np.ndarray, "text score"], inactive: Int[np.ndarray, "text score"]) -> Quantity:
    """The AUROC of all texts with its jackknife interval: each text with all its tokens is left out once."""
    both = active.sum(axis=0), inactive.sum(axis=0)
    value, without_each = float(auroc_of_counts(*both)), auroc_of_counts(both[0] - active, both[1] - inactive)
    interval = jackknife_interval(value, without_each, (0.0, 1.0)) if np.isfinite(without_each).all() else ()
    return Quantity(value, *interval)
