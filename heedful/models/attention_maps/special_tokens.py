"""Whether special tokens get more attention than words only because words are split into pieces and they are not."""

from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL, Document
from heedful.statistics.intervals import jackknife_interval
from heedful.statistics.quantity import Quantity


@final
class SpecialAttention(NamedTuple):
    """How many times the attention of others a special token gets, in the mean over heads, layers and texts.

    Attention is that of all tokens of a text, divided by what uniform attention over the visible keys would give. A
    word gets the sum over its pieces; a whole word has one piece. `split` is the share of words that are split.

    The conjecture, that special tokens seem inflated because they are never split, predicts that `per_word` and
    `per_whole_word` are 1. Intervals are jackknife intervals over texts of the logarithm of the ratio, so their ends
    are above 0; fewer than 5 texts have none.
    """

    per_token: Quantity
    per_word: Quantity
    per_whole_word: Quantity
    split: float

    @property
    def verdict(self) -> str:
        """What the intervals say about the conjecture, in a sentence."""
        if not self.split:
            return "No word is split into pieces, so splitting explains nothing."
        if not self.per_token.low > 1:
            return "That special tokens get more attention than others is not certain on these texts."
        if self.per_word.low > 1 and self.per_whole_word.low > 1:
            return "That words are split into pieces does not explain it: whole words get less, too."
        return "It may be because words are split into pieces: compared with whole words, nothing is certain."

    def plain(self) -> dict[str, object]:
        """Everything, ready for JSON."""
        numbers = {n: v.plain() if isinstance(v, Quantity) else v for n, v in self._asdict().items()}
        return {**numbers, "verdict": self.verdict}


def attention_received(document: Document, maps: Float[np.ndarray, "layer head query key"]) -> Float[np.ndarray, "5"]:
    """Means over special tokens, other tokens, words and whole words (NaN of none), and the share of split words."""
    n = len(document.ids)
    own = maps[:, :, :n].astype(np.float64)
    visible = (own > 0).any(axis=1)
    uniform = (visible / np.maximum(visible.sum(axis=2, keepdims=True), 1)).sum(axis=1).mean(axis=0)[:n]
    received = own.sum(axis=2).mean(axis=(0, 1))[:n]
    special = document.words == SPECIAL
    ratio = received / np.where(uniform > 0, uniform, np.nan)
    words = [np.flatnonzero(document.words == word) for word in np.unique(document.words[~special])]
    by_word = [received[tokens].sum() / uniform[tokens].mean() for tokens in words]
    whole = [value for value, tokens in zip(by_word, words, strict=True) if len(tokens) == 1]
    groups = ratio[special], ratio[~special], by_word, whole, [len(tokens) > 1 for tokens in words]
    return np.array([np.mean(group) if len(group) else np.nan for group in groups])


def special_attention(received: Float[np.ndarray, "text 5"]) -> SpecialAttention | None:
    """The ratios over the texts that have special tokens; None if there are none."""
    per = []
    for kind in (1, 2, 3):
        both = received[np.isfinite(received[:, [0, kind]]).all(axis=1)]
        if kind == 1 and not len(both):
            return None
        per.append(_ratio(both[:, 0], both[:, kind]))
    return SpecialAttention(*per, split=float(np.nanmean(received[:, 4])))


def _ratio(special: Float[np.ndarray, "text"], others: Float[np.ndarray, "text"]) -> Quantity:
    """Σ special / Σ others over texts, with the interval of its logarithm, which is nearer to normal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(special.sum() / others.sum())
        logs = np.log((special.sum() - special) / (others.sum() - others))
        interval = jackknife_interval(float(np.log(ratio)), logs) if np.isfinite(logs).all() else ()
    return Quantity(ratio, *np.exp(interval).tolist())
