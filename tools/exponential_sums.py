"""Finds the short sums Σ w_k e^{−λ_k D} ≈ 1/D that `heedful/theory/laplace.py` reads: python -m tools.exponential_sums

For every spread R = 2, 4, …, 2^30 the fewest nodes we can find whose relative error on all of D ∈ [1/R, 1] is below
1e-9. It starts from the double-exponential rule and takes out one node after another; after each, Gauss–Newton steps
move the others until the sum is right again on the functions that matter, the leading singular vectors of e^{−λD}
(generalised Gaussian quadrature: Bremer, Gimbutas & Rokhlin, 2010). Braess & Hackbusch (2005) study the best possible.
"""

from math import log, pi
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save_file

from heedful.theory.laplace import double_exponential, largest_error

TOLERANCE = 1e-9
OCTAVES = range(1, 31)
Nodes = Float[np.ndarray, "node"]


class Equations:
    """Σ_k w_k φ_l(λ_k) = ∫ φ_l dλ for the functions φ_l that e^{−λD}, D ∈ [1/R, 1], are made of to the tolerance."""

    def __init__(self, spread: float) -> None:
        nodes, weights = double_exponential(spread, 0.2)
        self.D = np.exp(-log(spread) * (1 + np.cos(pi * (np.arange(160) + 0.5) / 160)) / 2)
        samples = self.D[:, None] * np.exp(-self.D[:, None] * nodes) * np.sqrt(weights)
        left, size, _ = np.linalg.svd(samples, full_matrices=False)
        count = int((size > size[0] * TOLERANCE / 10).sum())
        self.mix = (left[:, :count] / size[:count]).T * self.D
        self.integrals = self.values(np.log(nodes))[0] @ weights

    def values(self, log_nodes: Nodes) -> tuple[Float[np.ndarray, "function node"], Float[np.ndarray, "function node"]]:
        """φ_l(λ_k) and its derivative in log λ_k."""
        rate = self.D[:, None] * np.exp(log_nodes)
        return self.mix @ np.exp(-rate), self.mix @ (-rate * np.exp(-rate))

    def solve(self, x: Nodes, y: Nodes) -> tuple[Nodes, Nodes]:
        """Gauss–Newton in x = log λ and y = log w, the shortest step where there is a choice, at most 0.3 at a time."""
        for _ in range(100):
            value, slope = self.values(x)
            w = np.exp(y)
            left, size, right = np.linalg.svd(np.concatenate([slope * w, value * w], axis=1), full_matrices=False)
            damped = size / (size**2 + (1e-11 * size[0]) ** 2)
            step = -right.T @ (damped * (left.T @ (value @ w - self.integrals)))
            longest = np.abs(step).max()
            step *= min(1.0, 0.3 / longest)
            x, y = x + step[: len(x)], y + step[len(x) :]
            if longest < 1e-8:
                break
        return x, y


def fewest(spread: float) -> tuple[Nodes, Nodes]:
    """Nodes and weights from which no further node could be taken."""
    step = next(
        h for h in np.arange(0.5, 0.2, -0.01) if largest_error(*double_exponential(spread, h), spread) < TOLERANCE / 3
    )
    x, y = (np.log(part) for part in double_exponential(spread, step))
    equations = Equations(spread)
    while True:
        for fewer in _with_one_less(x, y, equations):
            found = equations.solve(*fewer)
            if largest_error(np.exp(found[0]), np.exp(found[1]), spread) < TOLERANCE:
                order = np.argsort(found[0])
                x, y = found[0][order], found[1][order]
                break
        else:
            return np.exp(x), np.exp(y)


def _with_one_less(x: Nodes, y: Nodes, equations: Equations) -> list[tuple[Nodes, Nodes]]:
    """The likeliest first: the closest pair made one, the lightest left out; then each pair and each node."""
    lightest = int(np.argmin(np.linalg.norm(equations.values(x)[0] * np.exp(y), axis=0)))
    pairs = [int(np.argmin(np.diff(x))), *range(0, len(x) - 1, 2)]
    merged = []
    for i in pairs:
        x_2, y_2 = np.delete(x, i), np.delete(y, i)
        x_2[i], y_2[i] = (x[i] + x[i + 1]) / 2, np.logaddexp(y[i], y[i + 1])
        merged.append((x_2, y_2))
    dropped = [(np.delete(x, i), np.delete(y, i)) for i in (lightest, *range(0, len(x), 2))]
    return [merged[0], dropped[0], *merged[1:], *dropped[1:]]


def main() -> None:
    sums = {}
    for octave in OCTAVES:
        nodes, weights = fewest(2.0**octave)
        sums[str(octave)] = torch.from_numpy(np.stack([nodes, weights]))
        error = largest_error(nodes, weights, 2.0**octave)
        print(f"spread 2^{octave}: {len(nodes)} nodes, largest relative error {error:.1e}", flush=True)
    path = Path(__file__).parent.parent / "heedful" / "theory" / "exponential_sums.safetensors"
    save_file(sums, path)
    path.chmod(0o644)


if __name__ == "__main__":
    main()
