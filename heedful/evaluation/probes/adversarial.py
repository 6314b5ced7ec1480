"""Is there attention far from the model's own that gives the same output?"""

from dataclasses import dataclass
from math import inf, log
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from heedful.errors import BadInput
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.ascent import Ascent, ascend
from heedful.evaluation.probes.inquiry import Inquiry
from heedful.evaluation.probes.last_attention import LastAttention
from heedful.statistics.divergence import jensen_shannon, total_variation
from heedful.statistics.quantity import difference_of, is_above, is_below, mean_quantity
from heedful.theory.attention_polytope import strongest_adversary

_GRID = 33
"""The number of steps on the way from the model's attention to the candidate where the output is not linear."""
_MOST, _MARGIN = log(2), 0.05
"""The largest divergence, and how far below a shuffle's it may be and still count as as different."""


@final
@dataclass(frozen=True)
class Adversarial(Probe):
    """The attention farthest from the model's own whose output differs by at most `epsilon` in total variation.

    One head at a time, among the words; the value of a text is the mean over heads. With two classes and a linear
    read-out the search is exact (`heedful.theory.attention_polytope`). Elsewhere the exact solution for the slopes at
    the model's attention is moved back until the output is kept: a lower bound. The ascent of the authors, of the head
    with the most attention to words in the first `n_ascent` texts, is run for comparison where the search is exact:
    `n_steps` from each of `n_starts`; ends that do not keep the output do not count.
    """

    name: ClassVar[str] = "adversarial"
    question: ClassVar[str] = "Is there attention far from the model's own that gives the same output?"
    source: ClassVar[str] = "Jain & Wallace, 2019, arXiv:1902.10186, Section 4.2.2; exact by heedful"
    use: ClassVar[AttentionUse] = "the only explanation"
    shows: ClassVar[str] = (
        "How different a set of attention weights could be and still give the same output of the same model. Where it "
        "is as different as shuffled weights are, the weights are not the only possible account of the output."
    )
    does_not_show: ClassVar[str] = (
        "That the model's own weights are wrong: they are what this model computed, and an adversary that is made text "
        "by text is no model (Wiegreffe & Pinter, 2019, arXiv:1908.04626, Section 3.1). In a text where several words "
        "say the same, such an adversary must exist."
    )

    epsilon: float = 0.01
    n_ascent: int = 20
    n_steps: int = 500
    n_starts: int = 5

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < 1 or self.n_ascent < 0 or self.n_steps < 1 or self.n_starts < 1:
            raise BadInput("The probe 'adversarial' needs epsilon between 0 and 1, n_steps and n_starts of at least 1.")

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        columns = inquiry.over_texts(self.name, lambda index: self._of_text(inquiry, index))
        if "strongest" not in columns:
            return ProbeResult((), "unknown", "No text has two words, so attention has no alternative.")
        exact = bool(np.nanmin(columns["exact"]) == 1)
        how = "exact for each head" if exact else "a lower bound"
        shuffled = mean_quantity(columns["shuffled"], (0.0, _MOST))
        strongest = mean_quantity(columns["strongest"], (0.0, _MOST))
        what = f"Divergence of the strongest adversary, {how}, of at most 0.693"
        findings = [
            Finding(what, strongest, shuffled, "attention shuffled", key="adversary"),
            Finding("Change of the output under it, total variation", mean_quantity(columns["change"])),
        ]
        ascent = self._ascent(inquiry)
        if ascent is not None:
            reached, most = (mean_quantity(column, (0.0, _MOST)) for column in ascent)
            findings += [
                Finding("Divergence that the authors' ascent reaches, one head", reached),
                Finding("Divergence of the exact adversary, same head and texts", most),
            ]
        gap = difference_of(columns["strongest"], columns["shuffled"], _MOST)
        numbers = f"its divergence is {strongest.value:.2f}, that of shuffled attention {shuffled.value:.2f}"
        attention = "Last-layer attention"
        nearer = f"{attention} with the same output is nearer to its own than a shuffle: {numbers}."
        return decide(
            findings,
            (is_below(gap) and exact, "yes", nearer),
            (is_below(gap), "unknown", f"Only a lower bound is known, so a stronger adversary may exist: {numbers}."),
            (is_above(gap, -_MARGIN), "no", f"{attention} as different as a shuffle gives the same output: {numbers}."),
            (True, "unknown", f"The texts do not decide how different it may be: {numbers}."),
        )

    def _of_text(self, inquiry: Inquiry, index: int) -> dict[str, float]:
        last = inquiry.attention(index)
        n = int(last.is_word.sum())
        if n < 2:
            return {}
        rng = inquiry.rng(index)
        every = [adversary(last, head, self.epsilon) for head in range(len(last.alpha))]
        shuffled = [jensen_shannon(last.shares[:, rng.permutation(n)], last.shares).mean() for _ in range(10)]
        return {
            "strongest": float(np.mean([one[0] for one in every])),
            "change": float(np.mean([one[1] for one in every])),
            "exact": float(is_exact(last)),
            "shuffled": float(np.mean(shuffled)),
        }

    def _ascent(self, inquiry: Inquiry) -> tuple[Float[np.ndarray, "text"], Float[np.ndarray, "text"]] | None:
        """The divergences of the ascent and of the exact search for one head of the first texts."""
        some = [inquiry.attention(index) for index in range(min(self.n_ascent, len(inquiry.documents)))]
        some = [last for last in some if last.is_word.sum() > 1 and last.is_linear]
        if not some or not all(map(is_exact, some)):
            return None
        rows = inquiry.step("ascent", lambda: self._ascended(some, inquiry.seed))
        return np.array(rows[0]), np.array(rows[1])

    def _ascended(self, some: list[LastAttention], seed: int) -> list[list[float]]:
        heads = [int(last.mass.argmax()) for last in some]
        longest = max(int(last.is_word.sum()) for last in some)
        shares, gains = np.zeros((len(some), longest)), np.zeros((len(some), len(some[0].logits), longest))
        for row, (last, head) in enumerate(zip(some, heads, strict=True)):
            n = int(last.is_word.sum())
            shares[row, :n] = last.shares[head]
            gains[row, last.classes, :n] = last.slopes[:, head, last.is_word] * last.mass[head]
        search = Ascent(self.n_starts, self.n_steps)
        reached = ascend(shares, gains, np.stack([last.logits for last in some]), self.epsilon, search, seed)
        ascended, exact = [], []
        for last, head, ends in zip(some, heads, reached, strict=True):
            ends = ends[:, : int(last.is_word.sum())]
            kept = output_change(last, head, ends) <= self.epsilon
            ascended.append(float(jensen_shannon(ends[kept], last.shares[head]).max(initial=0.0)))
            exact.append(adversary(last, head, self.epsilon)[0])
        return [ascended, exact]


def is_exact(last: LastAttention) -> bool:
    """Whether the strongest adversary can be found exactly: one scalar decides the output, linearly."""
    return last.is_linear and last.model.returns == "logits" and len(last.logits) <= 2


def adversary(last: LastAttention, head: int, epsilon: float) -> tuple[float, float, Float[np.ndarray, "word"]]:
    """The strongest adversary in one head: its divergence, the change of the output, and its shares among the words."""
    own = last.shares[head]
    # The margin of the predicted class over the runner-up.
    slopes, differences = last.margins
    margin = float(differences[0])
    g = slopes[0, head, last.is_word] * last.mass[head]
    middle = float(own @ g)
    low, high = (middle + bound - margin for bound in _margins(margin, epsilon))
    divergence, vertex = strongest_adversary(own, g, low, high)
    change = float(output_change(last, head, vertex[None])[0])
    # Rounding may leave the bound by a hair; elsewhere the slopes do not hold so far from the model's attention.
    if change <= epsilon * (1 + 1e-6):
        return divergence, change, vertex
    steps = np.linspace(0, 1, _GRID)[:, None]
    on_the_way = own + steps * (vertex - own)
    changes = output_change(last, head, on_the_way)
    best = int(np.flatnonzero(changes <= epsilon)[-1]) if (changes <= epsilon).any() else 0
    return float(jensen_shannon(on_the_way[best], own)), float(changes[best]), on_the_way[best]


def output_change(
    last: LastAttention, head: int, shares: Float[np.ndarray, "variant word"]
) -> Float[np.ndarray, "variant"]:
    """The total variation distance of the output when one head's attention to words is divided like this."""
    every = np.repeat(last.shares[None], len(shares), axis=0)
    every[:, head] = shares
    p = last.probabilities(last.under(last.moved(every)))
    return total_variation(p, last.probabilities(last.logits))


def _margins(margin: float, epsilon: float) -> tuple[float, float]:
    """The least and the largest margin at which the probability of the class differs by at most ε."""
    p = float(expit(margin))
    low, high = p - epsilon, p + epsilon
    return (
        float(np.log(low) - np.log1p(-low)) if low > 0 else -inf,
        float(np.log(high) - np.log1p(-high)) if high < 1 else inf,
    )
