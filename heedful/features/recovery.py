"""How well a dictionary recovered features that are known, and how well a linear probe can detect them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn.functional import normalize

from heedful.errors import BadInput
from heedful.features.dictionary import Dictionary
from heedful.features.source import KnownSource
from heedful.models.training_loop import cosine_decay
from heedful.statistics.intervals import jackknife_interval, wilson
from heedful.statistics.quantity import Quantity

N_BLOCKS, MOST_ROWS = 20, 8_192
"""Intervals come from leaving out each of 20 blocks of rows, or of more where a block would have more than 8,192."""


@final
@dataclass(frozen=True, eq=False)
class Recovery:
    """How well a dictionary recovered known features, by the definitions of SynthSAEBench (arXiv:2602.14687).

    Every feature of the dictionary is judged as a detector of the known feature whose direction is most similar
    (|cosine|): active or not. Intervals are over blocks of rows, for this dictionary; trainings with other seeds differ
    more than that. `mcc` and `uniqueness` depend on directions alone and have none.
    """

    f1: Quantity
    """2 TP / (2 TP + FP + FN), mean over the dictionary's features; 0 where undefined, as with the next two."""
    precision: Quantity
    recall: Quantity
    explained_variance: Quantity
    """1 − Σ‖x − x̂‖² / Σ‖x − mean‖²."""
    l0: Quantity
    """The mean number of active features per row: of the dictionary, and in truth."""
    true_l0: Quantity
    dead_share: Quantity
    """The share of the dictionary's features that are active in none of these rows; its interval is over features."""
    mcc: float
    """The mean |cosine| of the best one-to-one matching (the Hungarian method)."""
    uniqueness: float
    """The number of different known features among the most similar ones, over the width."""
    n_rows: int
    f1_of_each: Float[np.ndarray, "latent"]
    matches: Int[np.ndarray, "latent"]
    """The known feature that is most similar to each."""

    def as_dict(self) -> dict[str, Any]:
        """Every number, with its interval if it has one; not the numbers of each feature."""
        each = {field.name: getattr(self, field.name) for field in fields(self)[:-2]}
        return {name: value._asdict() if isinstance(value, Quantity) else value for name, value in each.items()}

    def __str__(self) -> str:
        return (
            f"F1 {self.f1}, precision {self.precision}, recall {self.recall}, MCC {self.mcc:.4g}, "
            f"uniqueness {self.uniqueness:.4g}, L0 {self.l0} (in truth {self.true_l0}), explained variance "
            f"{self.explained_variance}, dead share {self.dead_share}; {self.n_rows:,} rows"
        )


@final
@dataclass(frozen=True, eq=False)
class Ceiling:
    """How well linear probes detect known features that they were trained on: what a dictionary can hope for."""

    f1: Quantity
    """Mean over features, on held-out rows; the interval is over blocks of these."""
    precision: Quantity
    recall: Quantity
    f1_of_each: Float[np.ndarray, "latent"]
    features: Int[np.ndarray, "latent"]
    """The known features, the most frequent first."""


@torch.no_grad()
def measure_recovery(
    dictionary: Dictionary, data: KnownSource, n_rows: int = 100_000, seed: int = 0, batch_size: int = 4_096
) -> Recovery:
    """Measures a dictionary on rows of a source whose features are known; `batch_size` changes nothing but memory."""
    dictionary = dictionary.to(str(data.directions.device))
    cosines = (normalize(dictionary.W_dec, dim=1) @ data.directions.T).abs()
    matches = cosines.argmax(dim=1)
    blocks = []
    for active, rows in _blocks(data, n_rows, seed, _MEASURED):
        parts = zip(active.split(batch_size), rows.split(batch_size), strict=True)
        blocks.append(_added([_sums(dictionary, matches, *part) for part in parts]))
    f1, precision, recall, explained, l0, true_l0 = _ratios(blocks, _numbers)
    counts = _added(blocks)[-1]
    n_dead, matrix = int((counts[0] + counts[1] == 0).sum()), cosines.cpu().numpy()
    return Recovery(
        f1,
        precision,
        recall,
        explained,
        l0,
        true_l0,
        Quantity(n_dead / dictionary.width, *wilson(n_dead, dictionary.width)),
        float(matrix[linear_sum_assignment(matrix, maximize=True)].mean()),
        len(matches.unique()) / dictionary.width,
        n_rows,
        _rates(counts)[0].cpu().numpy(),
        matches.cpu().numpy(),
    )


@torch.no_grad()
def measure_ceiling(
    data: KnownSource,
    n_features: int,
    n_rows: int = 100_000,
    n_steps: int = 300,
    batch_size: int = 8_192,
    learning_rate: float = 0.03,
    seed: int = 0,
) -> Ceiling:
    """Trains a logistic probe for each of the most frequent known features, as many as a dictionary could hold.

    A probe begins with the feature's direction and makes `n_steps` of Adam on the cross-entropy of fresh rows. Its
    threshold is the one of 19 probabilities with the highest F1 on `n_rows` other rows; what is reported is measured on
    yet another `n_rows`.
    """
    features, share = _most_frequent(data, n_features, n_rows, seed)
    weights, bias = data.directions[features], torch.logit(share) - 2.5
    optimiser = torch.optim.Adam([weights, bias], lr=learning_rate)
    for step in range(n_steps):
        active, rows = data.sample(batch_size, seed, _TRAINED + step)
        wrong = torch.sigmoid(torch.addmm(bias, rows, weights.T)) - (active[:, features] > 0).float()
        weights.grad, bias.grad = wrong.T @ rows / len(rows), wrong.mean(dim=0)
        optimiser.param_groups[0]["lr"] = learning_rate * cosine_decay(step, n_steps)
        optimiser.step()

    def counts(limits: Float[Tensor, "limit latent"], first: int) -> list[_Sums]:
        return [
            (torch.stack([_counts(rows @ weights.T + bias > limit, active[:, features] > 0) for limit in limits]),)
            for active, rows in _blocks(data, n_rows, seed, first)
        ]

    limits = torch.logit(torch.arange(1, 20, device=bias.device) / 20)[:, None].expand(-1, n_features)
    tried = torch.stack([_rates(each)[0] for each in _added(counts(limits, _CHOSEN))[0]])
    blocks = counts(limits.gather(0, tried.argmax(dim=0, keepdim=True)), _MEASURED)
    f1, precision, recall = _ratios(blocks, lambda sums: _rates(sums[0][0]).mean(dim=1))
    return Ceiling(f1, precision, recall, _rates(_added(blocks)[0][0])[0].cpu().numpy(), features.cpu().numpy())


_MEASURED, _CHOSEN, _COUNTED, _TRAINED = 0, 10**6, 2 * 10**6, 3 * 10**6
"""The number of the first sample that is measured, that chooses thresholds, that counts and that trains."""
_Sums = tuple[Tensor, ...]
"""What numbers are made of, summed over rows."""


def _blocks(
    data: KnownSource, n_rows: int, seed: int, first: int
) -> Iterator[tuple[Float[Tensor, "row feature"], Float[Tensor, "row d_e"]]]:
    """Rows in blocks of nearly equal size, the same whatever the batch."""
    if n_rows < N_BLOCKS:
        raise BadInput(f"Recovery is measured on at least {N_BLOCKS} rows; n_rows is {n_rows}.")
    n_blocks = max(N_BLOCKS, ceil(n_rows / MOST_ROWS))
    for number in range(n_blocks):
        size = (number + 1) * n_rows // n_blocks - number * n_rows // n_blocks
        yield data.sample(size, seed, first + number)


def _sums(
    dictionary: Dictionary,
    matches: Int[Tensor, "latent"],
    active: Float[Tensor, "row feature"],
    rows: Float[Tensor, "row d_e"],
) -> _Sums:
    """The number of rows and of active features, the squared errors and lengths, the rows, and the counts."""
    encoded, x = dictionary.encode(rows), rows.double()
    n, n_active = x.new_tensor(len(rows)), (active > 0).sum().double()
    left = (x - dictionary.decode(encoded).double()).square().sum()
    return n, n_active, left, x.square().sum(), x.sum(dim=0), _counts(encoded > 0, active[:, matches] > 0)


def _counts(detected: Bool[Tensor, "row latent"], true: Bool[Tensor, "row latent"]) -> Float[Tensor, "3 latent"]:
    """True positives, false positives and false negatives of each detector."""
    return torch.stack(
        [(detected & true).sum(dim=0), (detected & ~true).sum(dim=0), (~detected & true).sum(dim=0)]
    ).double()


def _rates(counts: Float[Tensor, "3 latent"]) -> Float[Tensor, "3 latent"]:
    """F1, precision and recall of each detector; 0 where undefined."""
    hit, false, missed = counts
    return torch.stack([2 * hit / (2 * hit + false + missed), hit / (hit + false), hit / (hit + missed)]).nan_to_num(0)


def _numbers(sums: _Sums) -> Float[Tensor, "number"]:
    """F1, precision, recall, explained variance, L0 and the true L0."""
    n, n_active, left, squares, total, counts = sums
    explained = 1 - left / (squares - total.square().sum() / n)
    return torch.cat([_rates(counts).mean(dim=1), torch.stack([explained, counts[:2].sum() / n, n_active / n])])


def _added(parts: Sequence[_Sums]) -> _Sums:
    return tuple(torch.stack(each).sum(dim=0) for each in zip(*parts, strict=True))


def _ratios(blocks: Sequence[_Sums], numbers: Callable[[_Sums], Float[Tensor, "number"]]) -> list[Quantity]:
    """Numbers of all rows, with jackknife intervals over blocks."""
    whole = _added(blocks)
    without = [
        numbers(tuple(all_rows - own for all_rows, own in zip(whole, block, strict=True))).tolist() for block in blocks
    ]
    values = zip(numbers(whole).tolist(), np.array(without).T, strict=True)
    return [Quantity(value, *jackknife_interval(value, each)) for value, each in values]


def _most_frequent(
    data: KnownSource, n_features: int, n_rows: int, seed: int
) -> tuple[Int[Tensor, "latent"], Float[Tensor, "latent"]]:
    """The features that are active most often, and the share of rows in which they are."""
    often = _added([((active > 0).sum(dim=0),) for active, _ in _blocks(data, n_rows, seed, _COUNTED)])[0]
    if n_features > (n_seen := int((often > 0).sum())):
        raise BadInput(f"{n_seen:,} features are active in {n_rows:,} rows; n_features is {n_features:,}.")
    features = often.argsort(descending=True, stable=True)[:n_features]
    return features, often[features] / n_rows
