"""Does the decision flip when the largest attention weights are erased?"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Bool, Int

from heedful.errors import BadInput
from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Columns, Inquiry
from heedful.evaluation.probes.last_attention import LastAttention
from heedful.statistics.quantity import difference_of, is_above, is_below, mean_quantity
from heedful.theory.attention_polytope import LEAST_LEFT, TIE, smallest_flip

_ORDERS = {
    "attention": "by attention",
    "gradient": "by the slope of the decision in the weight",
    "product": "by slope × attention",
    "random": "at random",
    "exact": "the exact minimum",
}

_MARGIN = 0.05
"""The largest difference between the shares of flipped decisions that still counts as none."""


@final
@dataclass(frozen=True)
class Erasure(Probe):
    """Whether the decision flips when weights of the last layer are set to zero and the others scaled up to sum to 1.

    A word is erased in all heads at once; of a word of several tokens, each token counts as a word. The largest weight
    (mean over heads) against another word at random; and the share of words to erase, in some order, until the decision
    flips, 1 where it never does. Attention passes if it is better than a random choice in the first, or by more than 5
    points in the second: in long texts hardly any single word flips a decision. That the second counts, and its bounds,
    were decided after planted cases (`benchmarks/planted_probes.py`). With one head and a linear read-out the smallest
    set that flips is exact. Random words: all in turn where no pass is needed, else `n_random`; sets: of every size
    where no pass is needed or up to 32 words, else of 32 sizes.
    """

    name: ClassVar[str] = "erasure"
    question: ClassVar[str] = "Does the decision flip when the largest attention weights are erased?"
    source: ClassVar[str] = "Serrano & Smith, 2019, arXiv:1906.03731, Sections 4 and 5; the exact minimum by heedful"
    use: ClassVar[AttentionUse] = "finding the words that decide"
    shows: ClassVar[str] = (
        "Whether the words with the most attention are those that the decision needs: erasing them should flip more "
        "decisions than erasing other words, and few should be enough."
    )
    does_not_show: ClassVar[str] = (
        "Which words the input needs: a word's content may reach the output through the states of its neighbours, "
        "which are not erased. A decision may have enough evidence elsewhere, so that no single word flips it, however "
        "faithful attention is. Attention without some weights is unlike any that the model computes."
    )

    n_random: int = 5

    def __post_init__(self) -> None:
        if self.n_random < 1:
            raise BadInput("The probe 'erasure' needs n_random of at least 1.")

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        columns = inquiry.over_texts(self.name, lambda index: self._of_text(inquiry, index))
        if "top" not in columns:
            return ProbeResult((), "unknown", "No text has two words, so no weight can be erased.")
        top, other = mean_quantity(columns["top"]), mean_quantity(columns["other"])
        findings = (
            Finding("Share of decisions that flip without the largest weight", top, other, "another word at random"),
            *_sizes(columns),
        )
        numbers = f"{top.value:.1%} of the decisions flip, and {other.value:.1%} without another word"
        gap, fewer = (difference_of(columns[a], columns[b]) for a, b in (("top", "other"), ("random", "attention")))
        shares = {name: np.nanmean(columns[name]) for name in ("attention", "random")}
        numbers += (
            f"; {shares['attention']:.0%} of the words must go in order of attention, {shares['random']:.0%} at random"
        )
        better, who = is_above(gap) or is_above(fewer, _MARGIN), "the words with the most attention"
        no_better = not better and is_below(gap, _MARGIN) and is_below(fewer, 2 * _MARGIN)
        slopes_better = is_above(difference_of(columns["attention"], columns["gradient"]))
        smaller = f"Attention finds words that decide ({numbers}), but the slopes of the decision find smaller sets."
        return decide(
            findings,
            (no_better, "no", f"Erasing {who} flips no more decisions than others: {numbers}."),
            (not better, "unknown", f"The texts do not show whether {who} decide: {numbers}."),
            (slopes_better, "partly", smaller),
            (True, "yes", f"The words with the most attention decide: {numbers}."),
        )

    def _of_text(self, inquiry: Inquiry, index: int) -> dict[str, float]:
        last = inquiry.attention(index)
        words = last.tokens
        if len(words) < 2:
            return {}
        rng, n = inquiry.rng(index), len(words)
        attention = last.alpha[:, words].mean(axis=0)
        slopes, _ = last.margins
        slope = slopes[0].sum(axis=0)[words]
        product = (slopes[0] * last.alpha).sum(axis=0)[words]
        orders = {
            "attention": np.argsort(-attention, kind="stable"),
            "gradient": np.argsort(-slope, kind="stable"),
            "product": np.argsort(-product, kind="stable"),
            "random": rng.permutation(n),
        }
        top, others = orders["attention"][0], orders["attention"][1:]
        if not last.is_linear:
            others = rng.permutation(others)[: self.n_random]
        single = flipped(last, np.eye(n, dtype=bool)[np.append(top, others)])
        row = {"top": float(single[0]), "other": float(single[1:].mean())}
        row |= {name: _share_needed(last, order) for name, order in orders.items()}
        if last.is_linear and len(last.alpha) == 1 and last.model.returns == "logits":
            smallest = exact_minimum(last)
            row["exact"] = 1.0 if smallest is None else len(smallest) / n
        return row


def flipped(last: LastAttention, erased: Bool[np.ndarray, "variant word"]) -> Bool[np.ndarray, "variant"]:
    """Whether the decision changes without attention to these words, the rest scaled up; never if nothing is left."""
    weights = np.broadcast_to(last.alpha, (len(erased), *last.alpha.shape)).copy()
    weights[:, :, last.is_word] *= ~erased[:, None]
    left = weights.sum(axis=-1, keepdims=True)
    possible = (left > LEAST_LEFT).all(axis=(1, 2))
    weights = np.where(possible[:, None, None], weights / np.maximum(left, 1e-300), last.alpha)
    weights *= last.alpha.sum(axis=-1, keepdims=True)
    p, own = last.probabilities(last.under(weights)), last.probabilities(last.logits).argmax()
    return (p.max(axis=1) > p[:, own] * (1 + TIE)) & possible


def exact_minimum(last: LastAttention) -> Int[np.ndarray, "_"] | None:
    """The smallest set of words, by place among them, whose erasure flips the decision of a model with one head."""
    slopes, differences = last.margins
    # Constants of the read-out count for every word alike, since the weights sum to 1.
    constant = differences - np.einsum("rt,t->r", slopes[:, 0], last.alpha[0])
    smallest = smallest_flip(last.alpha[0], slopes[:, 0] + constant[:, None] / last.alpha[0].sum(), last.is_word)
    return None if smallest is None else np.searchsorted(last.tokens, smallest)


def _share_needed(last: LastAttention, order: Int[np.ndarray, "word"]) -> float:
    """The share of words to erase in this order until the decision flips; 1 if it never does."""
    n = len(order)
    sizes = np.unique(np.linspace(1, n, min(n, n if last.is_linear else 32)).round().astype(np.int64))
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    flips = np.flatnonzero(flipped(last, place[None] < sizes[:, None]))
    return 1.0 if not len(flips) else float(sizes[flips[0]] / n)


def _sizes(columns: Columns) -> list[Finding]:
    null = mean_quantity(columns["random"])
    what, own = "Share of words to erase until the decision flips", {n: w for n, w in _ORDERS.items() if n in columns}
    shown = {name: words for name, words in own.items() if name != "random"}
    return [Finding(f"{what}, {w}", mean_quantity(columns[name]), null, "at random") for name, w in shown.items()]
