"""Strategies that choose the next token: which tokens are kept, and the law on them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from heedful.errors import BadInput
from heedful.generation.step import largest


@dataclass(frozen=True)
class Strategy(ABC):
    """A rule that turns the logits of the next token into the law that it is drawn from. Its fields are its settings.

    Tokens of equal logits come in the order of their numbers.
    """

    name: ClassVar[str]

    @abstractmethod
    def law(self, logits: Float[np.ndarray, "vocabulary"]) -> Float[np.ndarray, "vocabulary"]:
        """The probability of every token; 0 for those that are not kept."""


@final
@dataclass(frozen=True)
class Greedy(Strategy):
    """The most likely token at every step."""

    name: ClassVar[str] = "greedy"

    def law(self, logits: Float[np.ndarray, "vocabulary"]) -> Float[np.ndarray, "vocabulary"]:
        return (np.arange(len(logits)) == logits.argmax()).astype(np.float64)


@final
@dataclass(frozen=True)
class Sampling(Strategy):
    """Every token with its probability, softmax(logits / temperature)."""

    name: ClassVar[str] = "sampling"

    temperature: float = 1.0

    def __post_init__(self) -> None:
        _check_temperature(self.temperature)

    def law(self, logits: Float[np.ndarray, "vocabulary"]) -> Float[np.ndarray, "vocabulary"]:
        return softmax(logits / self.temperature)


@final
@dataclass(frozen=True)
class TopK(Strategy):
    """The k most likely tokens, in proportion to softmax(logits / temperature) (Fan et al., 2018, arXiv:1805.04833).

    Differs from transformers where the k-th token has equals: exactly k are kept.
    """

    name: ClassVar[str] = "top-k"

    k: int = 50
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _check_temperature(self.temperature)
        if self.k < 1:
            raise BadInput(f"k is the number of tokens that are kept, at least 1; {self.k} was given.")

    def law(self, logits: Float[np.ndarray, "vocabulary"]) -> Float[np.ndarray, "vocabulary"]:
        return _only(softmax(logits / self.temperature), self.k)


@final
@dataclass(frozen=True)
class Nucleus(Strategy):
    """The fewest tokens that hold p of softmax(logits / temperature), in proportion to it.

    Reference: Holtzman et al., ICLR 2020, arXiv:1904.09751, Section 3.1.
    """

    name: ClassVar[str] = "nucleus"

    p: float = 0.9
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _check_temperature(self.temperature)
        if not 0 < self.p <= 1:
            raise BadInput(f"p is the probability that is kept, above 0 and at most 1; {self.p:g} was given.")

    def law(self, logits: Float[np.ndarray, "vocabulary"]) -> Float[np.ndarray, "vocabulary"]:
        probabilities = softmax(logits / self.temperature)
        if self.p == 1:
            return probabilities
        held = np.cumsum(np.sort(probabilities)[::-1])
        return _only(probabilities, int(np.searchsorted(held, self.p)) + 1)


def draw_token(law: Float[np.ndarray, "vocabulary"], rng: np.random.Generator) -> int:
    """A token drawn from the law, by the inverse of its distribution function."""
    edges = np.cumsum(law)
    # Scaled by the last edge, which rounding may leave beside 1; "right" never gives a token of probability 0.
    return int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))


def _only(probabilities: Float[np.ndarray, "vocabulary"], n: int) -> Float[np.ndarray, "vocabulary"]:
    """The n largest probabilities, rescaled to sum to 1."""
    kept = largest(probabilities, n)
    law = np.zeros_like(probabilities)
    law[kept] = probabilities[kept] / probabilities[kept].sum()
    return law


def _check_temperature(temperature: float) -> None:
    if not 0 < temperature < inf:
        raise BadInput(
            f"temperature must be a number above 0; {temperature:g} was given. "
            'The most likely token at every step is strategy="greedy".'
        )
