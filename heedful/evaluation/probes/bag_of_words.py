"""A classifier that reads every word alone, under attention that is given or learned."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MIN_COUNT = 2
"""Tokens with fewer occurrences in the training texts are unknown, and share one row of the table."""
_PENALTIES = 10.0 ** np.arange(-1, -6.1, -0.5)
"""As a share of the mean of ‖x‖², so that even and uneven attention are penalised alike."""
_WORSE = 1.02
"""Smaller penalties are not tried once the held-out loss is this multiple of the best."""
_SCORES = 100.0
"""The penalty of a score of the learned attention, as a multiple of that of the table."""
_STEPS = 100
_FITTED = 0.8
"""The share of the training texts that is fitted; the others choose the penalty."""

Vector = Float[np.ndarray, "parameter"]
Objective = Callable[[Vector], tuple[float, Vector]]


@final
@dataclass(frozen=True, eq=False)
class BagOfWords:
    """softmax(Σ_t α_t g(x_t) + b): the mean of a table's rows, weighted by attention.

    The table g holds the logits of each token, which is all that an encoder of single words and a linear map can give.
    α is what is given, times e^{s(x_t)}, divided by its sum.
    """

    g: Float[np.ndarray, "token class"]
    b: Float[np.ndarray, "class"]
    s: Float[np.ndarray, "token"]

    def probabilities(self, x: "csr_array") -> Float[np.ndarray, "text class"]:
        """The distribution over classes of every text."""
        return np.exp(_log_softmax(_weighted(x, self.s) @ self.g + self.b))


Fit = Callable[["csr_array", Int[np.ndarray, "text"], float, BagOfWords], BagOfWords]
"""The best bag of words for texts, labels and a penalty, beginning at another."""


def token_numbers(documents: Sequence[Document]) -> dict[int, int]:
    """A number from 1 on for each token that is not rare in the words of the texts; 0 is that of all others."""
    counts = Counter(token for d in documents for token in d.ids[d.words != SPECIAL].tolist())
    kept = sorted(token for token, count in counts.items() if count >= _MIN_COUNT)
    return {token: number for number, token in enumerate(kept, start=1)}


def bags(
    documents: Sequence[Document], weights: Sequence[Float[np.ndarray, "_"]], numbers: Mapping[int, int]
) -> "csr_array":
    """One row per text: the attention to each token, summed over its occurrences."""
    # Imported here: scipy.sparse would slow every start of the package.
    from scipy.sparse import csr_array

    tokens = [[numbers.get(token, 0) for token in d.ids[d.words != SPECIAL].tolist()] for d in documents]
    rows = np.repeat(np.arange(len(documents)), [len(row) for row in tokens])
    shape = (len(documents), len(numbers) + 1)
    return csr_array((np.concatenate(weights), (rows, np.concatenate(tokens).astype(np.int64))), shape=shape)


def fitted_bag(x: "csr_array", y: Int[np.ndarray, "text"], size: tuple[int, int], seed: int, fit: Fit) -> BagOfWords:
    """Fitted to four fifths of the texts, drawn with the seed, with the penalty that is best on the others.

    `size` are the numbers of tokens and of classes.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    n = max(1, round(_FITTED * len(y)))
    own, others = order[:n], order[n:]
    scale = float(x.multiply(x).sum()) / len(y)
    bag = BagOfWords(np.zeros(size), np.zeros(size[1]), np.zeros(size[0]))
    best, least = bag, np.inf
    for penalty in _PENALTIES:
        bag = fit(x[own], y[own], penalty * scale, bag)
        loss = -np.log(bag.probabilities(x[others])[np.arange(len(others)), y[others]]).mean() if len(others) else 0.0
        if loss < least:
            best, least = bag, loss
        elif loss > _WORSE * least:
            break
    return best


def fit_given(x: "csr_array", y: Int[np.ndarray, "text"], penalty: float, start: BagOfWords) -> BagOfWords:
    """The table under the given attention: a convex problem."""
    n_classes, size = len(start.b), start.g.size

    def objective(theta: Vector) -> tuple[float, Vector]:
        g, b = theta[:size].reshape(-1, n_classes), theta[size:]
        loss, residual = _cross_entropy(x @ g + b, y)
        slope = x.T @ residual + penalty * g
        return loss + penalty / 2 * float((g * g).sum()), np.concatenate([slope.ravel(), residual.sum(axis=0)])

    theta = _least(objective, np.concatenate([start.g.ravel(), start.b]))
    return BagOfWords(theta[:size].reshape(-1, n_classes), theta[size:], start.s)


def fit_learned(x: "csr_array", y: Int[np.ndarray, "text"], penalty: float, start: BagOfWords) -> BagOfWords:
    """The table and the scores of the attention; begins with the given attention."""
    n_classes, size = len(start.b), start.g.size
    ends = (size, size + n_classes)

    def objective(theta: Vector) -> tuple[float, Vector]:
        g, b, s = np.split(theta, ends)
        g = g.reshape(-1, n_classes)
        alpha = _weighted(x, s)
        f = alpha @ g
        loss, residual = _cross_entropy(f + b, y)
        pulled = alpha.T @ residual
        # ∂f/∂s_w = α_w (g_w − f).
        turned = (pulled * g).sum(axis=1) - alpha.T @ (residual * f).sum(axis=1)
        slopes = ((pulled + penalty * g).ravel(), residual.sum(axis=0), turned + _SCORES * penalty * s)
        loss += penalty / 2 * float((g * g).sum() + _SCORES * (s * s).sum())
        return loss, np.concatenate(slopes)

    g, b, s = np.split(_least(objective, np.concatenate([start.g.ravel(), start.b, start.s])), ends)
    return BagOfWords(g.reshape(-1, n_classes), b, s)


def _least(objective: Objective, start: Vector) -> Vector:
    from scipy.optimize import minimize

    return minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x


def _weighted(x: "csr_array", s: Float[np.ndarray, "token"]) -> "csr_array":
    """The rows times e^s, divided by their sums; x itself where all scores are equal."""
    if not np.ptp(s):
        return x
    from scipy.sparse import diags_array

    raised = x.multiply(np.exp(s - s.max())[None]).tocsr()
    return diags_array(1 / np.maximum(raised.sum(axis=1), 1e-300)) @ raised


def _cross_entropy(
    f: Float[np.ndarray, "text class"], y: Int[np.ndarray, "text"]
) -> tuple[float, Float[np.ndarray, "text class"]]:
    """The mean cross-entropy, and its gradient by the logits."""
    logs, rows = _log_softmax(f), np.arange(len(y))
    gradient = np.exp(logs)
    gradient[rows, y] -= 1
    return -float(logs[rows, y].mean()), gradient / len(y)


def _log_softmax(f: Float[np.ndarray, "text class"]) -> Float[np.ndarray, "text class"]:
    f = f - f.max(axis=1, keepdims=True)
    return f - np.log(np.exp(f).sum(axis=1, keepdims=True))
