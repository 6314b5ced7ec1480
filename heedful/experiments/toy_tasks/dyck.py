"""The bounded Dyck language: balanced brackets of several types, with a limit on how many are open at a time.

Strings are rows of token ids of equal length. With k types, 0 to k−1 are opening brackets, k to 2k−1 the closing
brackets of the same types, and 2k ends the string and pads its row; 2k+1 is the start token of a network and not part
of a string.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Int

from heedful.errors import BadInput

_OPENING, _CLOSING = "([{<", ")]}>"


@final
@dataclass(frozen=True)
class Dyck:
    """Dyck_{k, m}: `n_types` types of brackets, at most `depth` of them open at a time."""

    n_types: int = 2
    depth: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.n_types <= len(_OPENING) or self.depth < 1:
            raise BadInput(
                f"n_types must be 1 to {len(_OPENING)} and depth at least 1; {self.n_types} and {self.depth} "
                "were given."
            )

    @property
    def end(self) -> int:
        """The token after the last bracket."""
        return 2 * self.n_types

    @property
    def begin(self) -> int:
        """The token before the first bracket."""
        return 2 * self.n_types + 1

    @property
    def n_tokens(self) -> int:
        """The number of distinct tokens of a string."""
        return 2 * self.n_types + 2

    def strings(self, n: int, shortest: int, longest: int, seed: int) -> Int[np.ndarray, "string place"]:
        """n independent samples from the language; repetitions are possible.

        Wen et al., 2023: with no open bracket, ending and opening are equally likely, and an end before `shortest`
        tokens is redrawn; at full depth a bracket is closed; otherwise opening and closing are equally likely. All
        types are equally likely. A string longer than `longest` is redrawn.
        """
        if n < 0 or not 0 <= shortest <= longest or (shortest == longest and longest % 2):
            raise BadInput(f"There is no string of {shortest} to {longest} tokens, or n is negative.")
        rng = np.random.default_rng(seed)
        kept = [np.empty((0, longest), dtype=np.int64)]
        while sum(map(len, kept)) < n:
            kept.append(self._drawn(max(64, n), shortest, longest, rng))
        return np.concatenate(kept)[:n]

    def _drawn(self, n: int, shortest: int, longest: int, rng: np.random.Generator) -> Int[np.ndarray, "string place"]:
        """The strings among n draws that are not too long."""
        tokens = np.full((n, longest), self.end, dtype=np.int64)
        types = np.zeros((n, self.depth), dtype=np.int64)
        depth, running, rows = np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool), np.arange(n)
        for place in range(longest):
            first, kind = rng.random(n) < 0.5, rng.integers(self.n_types, size=n)
            if place >= shortest:
                running &= ~(first & (depth == 0))
            opens = running & ((depth == 0) | (first & (depth < self.depth)))
            closes = running & ~opens
            types[rows[opens], depth[opens]] = kind[opens]
            top = types[rows, np.maximum(depth - 1, 0)]
            tokens[:, place] = np.select([opens, closes], [kind, top + self.n_types], self.end)
            depth += opens.astype(np.int64) - closes
        # A string that fills its row must still choose to end, or the longest would be too likely.
        ends = rng.random(n) < 0.5
        return tokens[~running | (ends & (depth == 0))]

    def is_valid(self, tokens: Int[np.ndarray, "string place"]) -> Bool[np.ndarray, "string"]:
        """Whether each row is a string of the language: a push-down automaton ends it with an empty stack."""
        n, k, rows = len(tokens), self.n_types, np.arange(len(tokens))
        types = np.zeros((n, self.depth), dtype=np.int64)
        depth, sound, ended = np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        for token in tokens.T:
            opens, closes = (token >= 0) & (token < k), (token >= k) & (token < 2 * k)
            ended |= token == self.end
            top = types[rows, np.maximum(depth - 1, 0)]
            opens &= ~ended & (depth < self.depth)
            closes &= ~ended & (depth > 0) & (top == token - k)
            sound &= opens | closes | (ended & (token == self.end))
            types[rows[opens], depth[opens]] = token[opens]
            depth += opens.astype(np.int64) - closes
        return sound & (depth == 0)

    def last_open(self, tokens: Int[np.ndarray, "string place"]) -> Int[np.ndarray, "string place"]:
        """For every token of valid strings, the position of the last open bracket after it, or −1 if none is open."""
        rows, depth = np.arange(len(tokens)), np.zeros(len(tokens), dtype=np.int64)
        # Below the stack lies the answer for an empty one.
        places = np.full((len(tokens), self.depth + 1), -1)
        last = np.empty_like(tokens)
        for place, token in enumerate(tokens.T):
            opens = token < self.n_types
            depth += opens.astype(np.int64) - ((token >= self.n_types) & (token < self.end))
            places[rows[opens], depth[opens]] = place
            last[:, place] = places[rows, depth]
        return last

    def lengths(self, tokens: Int[np.ndarray, "string place"]) -> Int[np.ndarray, "string"]:
        """The number of brackets in each string."""
        return (tokens != self.end).sum(axis=1)

    def spell(self, row: Int[np.ndarray, "place"]) -> str:
        """The string written as brackets."""
        letters = _OPENING[: self.n_types] + _CLOSING[: self.n_types]
        return "".join(letters[token] for token in row if token != self.end)

    def read(self, text: str, longest: int) -> Int[np.ndarray, "place"]:
        """The token ids of a string of brackets."""
        letters = _OPENING[: self.n_types] + _CLOSING[: self.n_types]
        if len(text) > longest or not set(text) <= set(letters):
            raise BadInput(f"{text!r} must be at most {longest} of the characters {letters}.")
        filled = [letters.index(letter) for letter in text] + [self.end] * (longest - len(text))
        return np.array(filled, dtype=np.int64)
