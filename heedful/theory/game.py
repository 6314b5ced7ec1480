"""The additive game behind softmax attention, and its exact expectations when units are removed at random.

With unit j kept (z_j = 1) or replaced (z_j = 0) the output of a head is N(z)/D(z), both sums over units:

    D(z) = D_F + Σ_j [z_j a_j + (1−z_j) b_j]        N(z) = N_F + Σ_j [z_j A_j + (1−z_j) B_j]

As 1/D = ∫ e^{−λD} dλ, the integrand factorises over units when they are removed independently with probability p: one
one-dimensional integral gives E_p[f | j kept] and E_p[f | j removed] for every j.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.theory.laplace import ExponentialSum, exponential_sum, octave_of


@final
@dataclass(frozen=True)
class Games:
    """a, b, A, B of every unit and the part that is never perturbed, for each head; f is the mean over heads.

    A batch: smaller games are padded with units of weight zero, kept or removed.
    """

    a: Float[Tensor, "game head unit"]
    b: Float[Tensor, "game head unit"]
    A: Float[Tensor, "game head unit"]
    B: Float[Tensor, "game head unit"]
    D_F: Float[Tensor, "game head"]
    N_F: Float[Tensor, "game head"]
    n_units: Int[np.ndarray, "game"]

    @staticmethod
    def of(
        s: Float[Tensor, "game head token"],
        w: Float[Tensor, "game head token"],
        s_h: Float[Tensor, "game head token"],
        w_h: Float[Tensor, "game head token"],
        unit_of: Int[np.ndarray, "game token"],
    ) -> "Games":
        """Games from the scores q·k/√d_att and values W_ℓ v of every token and of its replacement, s_h and w_h.

        `unit_of` gives each token's unit, −1 where it is never removed; a score of −∞ takes no attention.
        """
        # A constant taken from all scores of a head cancels in N/D.
        largest = torch.maximum(s.amax(dim=2), s_h.amax(dim=2))[..., None]
        g, g_h = (s - largest).exp(), (s_h - largest).exp()
        n_heads = s.shape[1]
        n_units = unit_of.max(axis=1, initial=-1) + 1
        widest = int(n_units.max())
        holder = torch.from_numpy(unit_of).to(g.device)
        fixed = holder < 0
        parts = torch.cat([g, g_h, g * w, g_h * w_h], dim=1)
        # On a GPU index_add would add in an order of its own on every run.
        by_unit = sum_by_product if g.is_cuda else sum_by_index
        a, b, A, B = by_unit(parts, holder, widest).split(n_heads, dim=1)
        D_F, N_F = (torch.where(fixed[:, None], x, 0.0).sum(dim=2) for x in (g, g * w))
        return Games(a, b, A, B, D_F, N_F, n_units)

    def take(self, chosen: Int[np.ndarray, "some"]) -> "Games":
        """Some games of the batch, padded to the longest of them."""
        where = torch.from_numpy(chosen).to(self.a.device)
        widest = int(self.n_units[chosen].max())
        a, b, A, B = (x[where, :, :widest] for x in (self.a, self.b, self.A, self.B))
        return Games(a, b, A, B, self.D_F[where], self.N_F[where], self.n_units[chosen])

    @cached_property
    def whole(self) -> Float[Tensor, "game"]:
        """f with everything kept."""
        return _ratio(self.N_F + self.A.sum(dim=2), self.D_F + self.a.sum(dim=2))

    @cached_property
    def empty(self) -> Float[Tensor, "game"]:
        """f with everything replaced."""
        return _ratio(self.N_F + self.B.sum(dim=2), self.D_F + self.b.sum(dim=2))

    def centred(self) -> "Games":
        """The games of f − f(whole): this leaves more digits for the differences that explanations consist of."""
        level = self.whole[:, None]
        N_F = self.N_F - level * self.D_F
        A, B = (value - level[..., None] * size for value, size in ((self.A, self.a), (self.B, self.b)))
        return Games(self.a, self.b, A, B, self.D_F, N_F, self.n_units)

    @cached_property
    def octaves(self) -> Int[np.ndarray, "game head"]:
        """The k with D_max/D_min ≤ 2^k over all sets of units; it determines the number of nodes of the integral."""
        low = self.D_F + torch.minimum(self.a, self.b).sum(dim=2)
        high = self.D_F + torch.maximum(self.a, self.b).sum(dim=2)
        spread = (high / low).cpu().numpy()
        return np.array([[octave_of(float(head)) for head in game] for game in spread])

    def quadrature_bound(
        self, tight: bool, rounding: Float[np.ndarray, "game"] | float = 0.0
    ) -> Float[np.ndarray, "game"]:
        """The error bound of f(z) when 1/D is approximated by a sum of exponentials: relative error × largest |f|."""
        ratios = [
            torch.where(size > 0, (value / size).abs(), 0.0)
            for value, size in ((self.A, self.a), (self.B, self.b), (self.N_F[..., None], self.D_F[..., None]))
        ]
        largest = torch.cat(ratios, dim=2).amax(dim=2).cpu().numpy()
        relative = np.array([[exponential_sum(int(head), tight).bound for head in game] for game in self.octaves])
        return (largest * relative).mean(axis=1) + largest.mean(axis=1) * rounding


def sum_by_index(
    x: Float[Tensor, "game part token"], holder: Int[Tensor, "game token"], n: int
) -> Float[Tensor, "game part unit"]:
    """Sums over the tokens of each of n units; a token in none has holder −1."""
    n_games, n_parts, _ = x.shape
    # The last column collects what is in no unit.
    place = torch.where(holder < 0, n, holder) + (n + 1) * torch.arange(n_games)[:, None]
    flat = x.transpose(0, 1).flatten(1)
    sums = flat.new_zeros(n_parts, n_games * (n + 1)).index_add_(1, place.flatten(), flat)
    return sums.unflatten(1, (n_games, n + 1)).transpose(0, 1)[..., :n]


def sum_by_product(
    x: Float[Tensor, "game part token"], holder: Int[Tensor, "game token"], n: int
) -> Float[Tensor, "game part unit"]:
    """The same by a matrix product, which adds in the same order every time."""
    return x @ (holder[..., None] == torch.arange(n, device=x.device)).to(x)


def _ratio(N: Float[Tensor, "game head"], D: Float[Tensor, "game head"]) -> Float[Tensor, "game"]:
    """The mean of N/D over heads; where nothing is left to attend to, both are 0, and so is the result."""
    return (N / D.clamp(min=1e-300)).mean(dim=1)


def expectations(
    games: Games,
    p: Float[Tensor, "point"],
    kept: Float[Tensor, "set game point"],
    gone: Float[Tensor, "set game point"],
    tight: bool = True,
) -> tuple[Float[Tensor, "set game unit"], Float[Tensor, "game point"]]:
    """Σ_p kept(p) E_p[f | j kept] + gone(p) E_p[f | j removed] for every unit j, and E_p[f] for every p.

    With α_j = e^{−λ(a_j−m_j)}, β_j = e^{−λ(b_j−m_j)}, m = min(a, b), y_j = (1−p)α_j + pβ_j and W the rest of the
    integrand, the two conditional expectations differ from E_p[f] by ∓ multiples of
    ∫ W [ S (α_j−β_j)/y_j + (A_j−B_j) α_jβ_j/y_j² ] dλ, where S is the numerator's mean; no term is a difference of
    large numbers, and no factor exceeds one. Several sets of weights cost hardly more than one. `tight` takes the
    integral over λ to a relative 1e-12 instead of 1e-9.
    """
    n_games, n_heads, widest = games.a.shape
    tilt = kept * p - gone * (1 - p)
    total = p.new_zeros(n_games * n_heads, len(kept), widest)
    mean = p.new_zeros(n_games * n_heads, len(p))
    rows = _Rows.of(games)
    for chosen, width, octave in _portions(games, len(p), tight):
        where = torch.from_numpy(chosen).to(p.device)
        part = rows.take(where, width)
        tilt_of_rows = tilt[:, where // n_heads].transpose(0, 1)
        total[where, :, :width], mean[where] = _integrals(part, exponential_sum(octave, tight), p, tilt_of_rows)
    mean = mean.unflatten(0, (n_games, n_heads)).mean(dim=1)
    total = total.unflatten(0, (n_games, n_heads)).mean(dim=1).transpose(0, 1)
    return total + ((kept + gone) * mean).sum(dim=2)[..., None], mean


@final
@dataclass(frozen=True)
class _Rows:
    """The heads of all games as rows; every unit relative to the lighter of its two forms, kept or replaced."""

    heavier: Bool[Tensor, "form row unit"]
    """Which form takes more attention: first whether the kept one does, then whether the replacement does."""
    excess: Float[Tensor, "row unit"]
    values: Float[Tensor, "form row unit"]
    D_min: Float[Tensor, "row"]
    D_max: Float[Tensor, "row"]
    N_F: Float[Tensor, "row"]

    @staticmethod
    def of(games: Games) -> "_Rows":
        a, b = games.a.flatten(0, 1), games.b.flatten(0, 1)
        values = torch.stack([games.A.flatten(0, 1), games.B.flatten(0, 1)])
        D_F, N_F = games.D_F.flatten(), games.N_F.flatten()
        low, high, kept_is_heavier = torch.minimum(a, b), torch.maximum(a, b), a > b
        heavier = torch.stack([kept_is_heavier, ~kept_is_heavier])
        return _Rows(heavier, high - low, values, D_F + low.sum(dim=1), D_F + high.sum(dim=1), N_F)

    def take(self, where: Int[Tensor, "some"], width: int) -> "_Rows":
        heavier, values = (x[:, where, :width] for x in (self.heavier, self.values))
        D_min, D_max, N_F = (x[where] for x in (self.D_min, self.D_max, self.N_F))
        return _Rows(heavier, self.excess[where, :width], values, D_min, D_max, N_F)


def _cells(x: Tensor) -> int:
    """The number of (node, point, unit) cells processed at a time; each needs about three numbers of 8 bytes."""
    return 1 << 25 if x.is_cuda else 1 << 20


def _portions(games: Games, n_points: int, tight: bool) -> Iterator[tuple[Int[np.ndarray, "some"], int, int]]:
    """Groups of rows with the same number of nodes and a similar number of units, small enough to bound the memory."""
    octaves = games.octaves.flatten()
    widths = np.repeat(games.n_units, games.a.shape[1])
    for octave in np.unique(octaves).tolist():
        same = np.flatnonzero(octaves == octave)
        same = same[np.argsort(-widths[same], kind="stable")]
        n_nodes = ceil(len(exponential_sum(octave, tight).nodes) / 3)
        while len(same):
            width = max(1, int(widths[same[0]]))
            count = max(1, _cells(games.a) // (n_nodes * (n_points + 10) * width))
            yield same[:count], width, octave
            same = same[count:]


def _integrals(
    rows: _Rows, rule: ExponentialSum, p: Float[Tensor, "point"], tilt: Float[Tensor, "row set point"]
) -> tuple[Float[Tensor, "row set unit"], Float[Tensor, "row point"]]:
    """The integral over λ of `expectations`, for rows that share a rule: a third of its nodes at a time, or fewer.

    The heavier form of a unit has the factor x = e^{−λ|a−b|}, the lighter one 1, so α − β = ±(1 − x) and αβ = x.
    """
    (n_rows, width), n_sets = rows.excess.shape, tilt.shape[1]
    nodes, weights = (torch.from_numpy(x).to(p) / rows.D_max[:, None] for x in (rule.nodes, rule.weights))
    count = max(1, min(ceil(len(rule.nodes) / 3), _cells(p) // (n_rows * len(p) * width)))
    shares = torch.stack([1 - p, p], dim=1)
    first, second = (p.new_zeros(n_rows, n_sets, width) for _ in range(2))
    mean = p.new_zeros(n_rows, len(p))
    for lam, weight in zip(nodes.split(count, dim=1), weights.split(count, dim=1), strict=True):
        # Pairs (row, node) are the batch of small matrix products.
        size = lam.shape
        x = torch.exp(-lam[..., None] * rows.excess[:, None])
        forms = torch.where(rows.heavier[:, :, None], x, 1.0)
        y = (shares @ forms.flatten(1)).view(len(p), -1, width)
        W = (weight * torch.exp(-lam * rows.D_min[:, None])).flatten() * y.prod(dim=2)
        # What is nothing beside the rule's own error is nothing, row by row, whatever else is in the batch.
        W = nn.functional.threshold(W / weight.flatten(), min(1e-3 * rule.bound, 1e-12), 0.0) * weight.flatten()
        some = _worth_it(W)
        W, r = W[some].T, y[some].reciprocal_().transpose(0, 1)
        values = forms.mul_(rows.values[:, :, None]).flatten(1, 2).transpose(0, 1)
        of_forms = torch.bmm(values, r.transpose(1, 2)).mul_(shares[some].T)
        W_S = W * (of_forms[:, 0] + of_forms[:, 1] + rows.N_F.repeat_interleave(size[1])[:, None])
        mean[:, some] += W_S.unflatten(0, size).sum(dim=1)
        tilts = tilt[..., some].repeat_interleave(size[1], dim=0)
        first += torch.bmm(tilts * W_S[:, None], r).unflatten(0, size).mul_(1 - x[:, :, None]).sum(dim=1)
        second += torch.bmm(tilts * W[:, None], r.square_()).unflatten(0, size).mul_(x[:, :, None]).sum(dim=1)
    sign = 1 - 2 * rows.heavier[0, :, None].to(p)
    gap = rows.values[0] - rows.values[1]
    return sign * first + gap[:, None] * second, mean


def _worth_it(W: Float[Tensor, "point pair"]) -> slice:
    """The range of points where W is not negligible: for a large λ only those near one end of [0, 1]."""
    seen = torch.nonzero(W.amax(dim=1)).flatten().tolist() or [0]
    return slice(seen[0], seen[-1] + 1)
