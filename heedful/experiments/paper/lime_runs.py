"""LIME as in the official package, on many documents of the single-layer model, without forward passes.

Sizes are uniform on 1 … d over distinct words, all occurrences are removed, the document itself is the first sample,
the cosine kernel has width 25, ridge 1, a free intercept, and independent masks. The same masks are used for deletion,
where later words move up, as in the package, and for replacement by [UNK], as in the paper's text.

A text longer than the model's limit is truncated to T_max − 1 words, which are explained as the whole text, as in
`lime`. In the package, words beyond the limit would move up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag

from heedful.document import SPECIAL, Document
from heedful.document.units import sum_to
from heedful.errors import BadInput
from heedful.models.pooling import Pooling
from heedful.models.single_layer import SingleLayer
from heedful.models.vocabulary import CLS
from heedful.theory.lime import lime_approximation, lime_leading_term

LAWS = ("delete", "replace")
FORMS = ("printed", "corrected")

_WIDTH, _RIDGE = 25.0, 1.0
_AT_ONCE = 50
"""The number of documents whose surrogates are fitted together. Masks exist for one document at a time:
5 runs of 5,000 masks over 255 words take about 200 MB, the surrogates of 50 documents 80 MB more."""


@torch.no_grad()
def lime_runs(
    model: SingleLayer,
    documents: Sequence[Document],
    numbers: Sequence[int],
    target: int = 1,
    seed: int = 0,
    n_runs: int = 5,
    n_samples: int = 5000,
    precision: torch.dtype = torch.float32,
) -> list[Float[np.ndarray, "law run unit"]]:
    """LIME's coefficient of every distinct word, for each absence and run.

    Masks come from the seed and the document's number alone. In single precision f is off by about 1e-6, which changes
    a coefficient by about 1e-7; surrogates are always fitted in double precision.
    """
    coefficients = []
    for start in range(0, len(documents), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        each = []
        for game, number in zip(lime_games(model, documents[part], target, precision), numbers[part], strict=True):
            keep = draw_masks(len(game.kept), n_runs, n_samples, _rng(seed, number, game.kept.device))
            each.append(moments(keep, game.deleted(keep), game.replaced(keep)))
        sizes = [matrix.shape[-1] for matrix in each]
        normal = each[0].new_zeros(len(each), n_runs, max(sizes), max(sizes))
        for row, (matrix, size) in enumerate(zip(each, sizes, strict=True)):
            normal[row, :, :size, :size] = matrix
        scores = ridge_coefficients(normal).cpu().numpy()
        if not np.isfinite(scores).all():
            raise BadInput(f"The range of the scores is too large for {precision}; use torch.float64.")
        coefficients += [scores[row, :, :, : size - 3] for row, size in enumerate(sizes)]
    return coefficients


@torch.no_grad()
def theorem(model: SingleLayer, documents: Sequence[Document], target: int = 1) -> list[Float[np.ndarray, "form unit"]]:
    """Theorem 5.1 for every distinct word: as printed, Eq. (19), and with its constant and centre corrected."""
    pooling = _pooling(model, documents, target)
    # LIME never removes [cls]; padding is [UNK] with every mask.
    cls = torch.arange(pooling.s.shape[2], device=pooling.s.device) == CLS
    s_h, w_h = (torch.where(cls, x, x_h) for x, x_h in ((pooling.s, pooling.s_gone), (pooling.w, pooling.w_gone)))
    formulas = lime_approximation, lime_leading_term
    rows = zip(pooling.s, pooling.w, s_h, w_h, strict=True)
    places = torch.stack([torch.stack([formula(*row) for formula in formulas]) for row in rows]).cpu().numpy()
    scores_of_units = []
    for document, scores in zip(documents, places, strict=True):
        holder = document.unit_of("type")
        n_units = int(holder.max()) + 1
        scores_of_units.append(np.stack([sum_to(holder, n_units, row[: len(holder)]) for row in scores]))
    return scores_of_units


@final
@dataclass(frozen=True)
class LimeGame:
    """Σ g and Σ g·w of every head in one document, which suffice to evaluate masks over its distinct words."""

    kept: Float[Tensor, "unit sums"]
    gone: Float[Tensor, "unit sums"]
    fixed: Float[Tensor, "sums"]
    """The contribution of [cls] and padding when words are replaced."""
    landed: Float[Tensor, "landing sums"]
    """Word t at position p is row (t − 1) T + p, both from 1 to T; row 0 is for removed words."""
    tail: Float[Tensor, "count sums"]
    """The contribution of [cls] and padding, by the number of kept words, when words are deleted."""
    holder: Int[Tensor, "word"]

    def replaced(self, keep: Bool[Tensor, "run mask unit"]) -> Float[Tensor, "run mask"]:
        """f with [UNK] instead of every removed word: two matrix products."""
        weights = keep.to(self.kept)
        # Not kept − gone: with very unequal attention the difference would lose its digits.
        return _ratio(weights @ self.kept + (1 - weights) @ self.gone + self.fixed)

    def deleted(self, keep: Bool[Tensor, "run mask unit"]) -> Float[Tensor, "run mask"]:
        """f of the shortened texts: the position of a kept word is the number of kept words up to it."""
        masks = keep.flatten(0, 1)
        words = masks.gather(1, self.holder.expand(len(masks), -1))
        n_words = words.shape[1]
        place = words.cumsum(dim=1, dtype=torch.int32)
        count = place[:, -1].long()
        place += n_words * torch.arange(n_words, dtype=torch.int32, device=place.device)
        place *= words
        sums = embedding_bag(place, self.landed, mode="sum") + self.tail.index_select(0, count)
        return _ratio(sums).unflatten(0, keep.shape[:2])


@torch.no_grad()
def lime_games(
    model: SingleLayer, documents: Sequence[Document], target: int, precision: torch.dtype
) -> Iterator[LimeGame]:
    """Each document as a game, in that precision."""
    pooling = _pooling(model, documents, target)
    s, w, s_h, w_h = pooling.s, pooling.w, pooling.s_gone, pooling.w_gone
    holders = np.full((len(documents), s.shape[2]), SPECIAL)
    for row, document in zip(holders, documents, strict=True):
        row[: len(document.ids)] = document.unit_of("type")
    n_units = holders.max(axis=1) + 1
    if n_units.min() < 2:
        raise BadInput("LIME needs at least 2 distinct words; a document has fewer.")
    holder = torch.from_numpy(holders).to(s.device)
    # A constant taken from all scores of a head cancels in N/D, and without it exp could overflow.
    largest = torch.maximum(s, s_h).amax(dim=2, keepdim=True)
    g, g_h = (s - largest).exp(), (s_h - largest).exp()
    kept, gone = torch.cat([g, g * w], dim=1), torch.cat([g_h, g_h * w_h], dim=1)
    member = (holder[..., None] == torch.arange(int(n_units.max()), device=s.device)).to(s)
    of_kept, of_gone = ((x @ member).transpose(1, 2).to(precision) for x in (kept, gone))
    fixed = torch.where((holder < 0)[:, None], kept, 0.0).sum(dim=2).to(precision)
    padding = gone.flip(2).cumsum(dim=2).flip(2)[..., 1:]
    tail = torch.cat([padding, torch.zeros_like(padding[..., :1])], dim=2) + kept[..., :1]
    tail = tail.transpose(1, 2).to(precision)
    # A word elsewhere is [UNK] there plus the difference between the word and [UNK], the same at all positions.
    factor, shift = (s - s_h).exp(), w - w_h
    for row, document in enumerate(documents):
        words = slice(1, len(document.ids))
        g_there = factor[row, :, words, None] * g_h[row, :, None, words]
        w_there = shift[row, :, words, None] + w_h[row, :, None, words]
        landed = torch.cat([g_there, g_there * w_there]).flatten(1).T
        landed = torch.cat([torch.zeros_like(landed[:1]), landed]).to(precision)
        units = slice(0, int(n_units[row]))
        yield LimeGame(of_kept[row, units], of_gone[row, units], fixed[row], landed, tail[row], holder[row, words])


def draw_masks(n_units: int, n_runs: int, n_samples: int, rng: torch.Generator) -> Bool[Tensor, "run mask unit"]:
    """LIME's masks as kept units: everything first, then s units removed, s uniform on 1 … d, the set uniform given s.

    One unit is always removed, and each other one if its random number is below that of the mask. The rank of the
    mask's number among d numbers is uniform on 0 … d − 1, and given the rank all sets are equally likely, so no sort is
    needed.
    """

    def numbers(n: int) -> Int[Tensor, "run mask _"]:
        return torch.empty(n_runs, n_samples, n, dtype=torch.int32, device=rng.device).random_(generator=rng)

    keep = numbers(n_units) >= numbers(1)
    certain = torch.randint(n_units, (n_runs, n_samples, 1), generator=rng, device=rng.device)
    keep.scatter_(2, certain, value=False)
    keep[:, 0] = True
    return keep


def moments(
    keep: Bool[Tensor, "run mask unit"], *answers: Float[Tensor, "run mask"]
) -> Float[Tensor, "run column column"]:
    """Σ π x xᵀ over masks, x = (1, outputs, mask), π the kernel of Eq. (15)."""
    n_units = keep.shape[2]
    distance = 100 * (1 - (keep.sum(dim=2).double() / n_units).sqrt())
    root = torch.exp(-(distance**2) / (4 * _WIDTH**2))[..., None]
    rows = torch.empty(*keep.shape[:2], 1 + len(answers) + n_units, dtype=torch.float64, device=keep.device)
    rows[..., : 1 + len(answers)] = torch.stack([torch.ones_like(answers[0]), *answers], dim=-1) * root
    rows[..., 1 + len(answers) :].copy_(keep).mul_(root)
    return rows.transpose(1, 2) @ rows


def ridge_coefficients(normal: Float[Tensor, "batch run column column"]) -> Float[Tensor, "batch 2 run unit"]:
    """The coefficients for both absences, per document and run: weighted ridge regression with intercept, Eq. (16)."""
    total, first = normal[..., :1, :1], normal[..., :1]
    centred = (normal - first @ first.transpose(-1, -2) / total)[..., 1:, 1:]
    matrix = centred[..., 2:, 2:] + _RIDGE * torch.eye(normal.shape[-1] - 3).to(normal)
    return torch.cholesky_solve(centred[..., 2:, :2], torch.linalg.cholesky(matrix)).movedim(-1, 1)


def _pooling(model: SingleLayer, documents: Sequence[Document], target: int) -> Pooling:
    if model.network.config.padding != "unk":
        raise BadInput("These runs of LIME need a model that is padded with [unk], as the paper's is.")
    targets = np.zeros((len(documents), len(model.classes)))
    targets[:, target] = 1.0
    return model.pooling(documents, targets, "replace")


def _rng(seed: int, number: int, device: torch.device) -> torch.Generator:
    state = np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state >> np.uint64(1)))


def _ratio(sums: Float[Tensor, "*mask sums"]) -> Float[Tensor, "*mask"]:
    """f = 1/K Σ_i N_i/D_i, in double."""
    D, N = sums.chunk(2, dim=-1)
    return (N / D).mean(dim=-1).double()
