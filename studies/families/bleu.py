"""Corpus BLEU with n-grams up to 4, one reference, no smoothing: Papineni et al., 2002, Eq. in section 2.3.

BLEU = min(1, e^{1 − r/c}) exp(¼ Σ_n log p_n), p_n the clipped share of the candidates' n-grams that the reference has,
c and r the lengths of all candidates and all references. Words are runs of letters and digits, any other sign stands
alone, case counts: near sacreBLEU's 13a, but not the same to the last digit.
"""

import re
from collections import Counter
from collections.abc import Sequence
from math import exp, log

_WORD = re.compile(r"\w+|[^\w\s]")


def bleu(candidates: Sequence[str], references: Sequence[str]) -> float:
    """From 0 to 100; 0 as soon as no n-gram of some length is right."""
    pairs = [(_WORD.findall(ours), _WORD.findall(wanted)) for ours, wanted in zip(candidates, references, strict=True)]
    logs = 0.0
    for n in range(1, 5):
        n_right = sum((_n_grams(ours, n) & _n_grams(wanted, n)).total() for ours, wanted in pairs)
        if not n_right:
            return 0.0
        logs += log(n_right / sum(max(len(ours) - n + 1, 0) for ours, _ in pairs)) / 4
    c, r = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
    return 100 * exp(min(0.0, 1 - r / c) + logs)


def _n_grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))
