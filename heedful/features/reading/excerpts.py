"""The strongest texts of a feature, and a few from lower quantiles, each as a window around one token."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.features.reading.active import ActivePairs, ReadTexts

N_STRONGEST = 10
QUANTILES = (0.75, 0.5, 0.25)
BEFORE, BEHIND = 20, 10
"""Tokens of a window on either side."""
_ATTEMPTS = 20


@final
@dataclass(frozen=True, eq=False)
class Excerpt:
    """A part of a text, with the activation of a feature at every token of it."""

    name: str
    """What the user calls the text."""
    text: int
    """The number of the text among those that were read."""
    start: int
    """The number of the first token of the window in the text."""
    tokens: tuple[str, ...]
    """The tokens of the window, with the white space before each."""
    activations: Float[np.ndarray, "token"]
    peak: int
    """The token of the window that the excerpt was chosen for."""
    quantile: float | None
    """None for the strongest; else the quantile of the active tokens' activations that it was chosen at."""

    @property
    def activation(self) -> float:
        """The activation at the peak."""
        return float(self.activations[self.peak])

    def __repr__(self) -> str:
        before, own, after = (
            "".join(part) for part in np.split(np.array(self.tokens, dtype=object), [self.peak, self.peak + 1])
        )
        return f"<{self.activation:.3g}: {before[-60:]}[{own}]{after[:30]}>"


def excerpts_of(pairs: ActivePairs, read: ReadTexts) -> tuple[Excerpt, ...]:
    """The excerpts of a feature, the strongest first: one per text, around its strongest token, and none twice.

    Two excerpts are the same if their windows have the same tokens.
    """
    text = read.text_of[pairs.rows]
    first = np.flatnonzero(np.diff(text, prepend=-1))
    largest = np.maximum.reduceat(pairs.values, first)
    order = np.argsort(-largest, kind="stable")
    chosen: dict[tuple[str, ...], Excerpt] = {}
    for place in order.tolist():
        end = first[place + 1] if place + 1 < len(first) else len(text)
        peak = first[place] + int(pairs.values[first[place] : end].argmax())
        excerpt = _window(pairs, read, int(peak), None)
        chosen.setdefault(excerpt.tokens, excerpt)
        if len(chosen) == N_STRONGEST:
            break
    ascending = np.argsort(pairs.values, kind="stable")
    texts = {excerpt.text for excerpt in chosen.values()}
    for quantile in QUANTILES:
        place = int(quantile * (len(ascending) - 1))
        for pair in ascending[max(0, place - _ATTEMPTS) : place + 1][::-1].tolist():
            excerpt = _window(pairs, read, pair, quantile)
            if excerpt.text not in texts and excerpt.tokens not in chosen:
                chosen[excerpt.tokens] = excerpt
                texts.add(excerpt.text)
                break
    return tuple(chosen.values())


def _window(pairs: ActivePairs, read: ReadTexts, pair: int, quantile: float | None) -> Excerpt:
    row = int(pairs.rows[pair])
    text = int(read.text_of[row])
    first, end = int(read.starts[text]), int(read.starts[text + 1])
    start, stop = max(first, row - BEFORE), min(end, row + BEHIND + 1)
    inside = slice(*np.searchsorted(pairs.rows, [start, stop]))
    activations = np.zeros(stop - start, dtype=np.float32)
    activations[pairs.rows[inside] - start] = pairs.values[inside]
    tokens = read.tokens[text][start - first : stop - first]
    return Excerpt(read.names[text], text, start - first, tokens, activations, row - start, quantile)
