"""Many single-layer models trained side by side on texts without some of their words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int, Int32
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy, embedding

from heedful.datasets import Split
from heedful.models.network import Config, Network
from heedful.models.training import Recipe, initial_weights
from heedful.models.training_loop import BatchProgress, Rows, TrainingLoop, TrainingState, shuffled
from heedful.models.vocabulary import CLS, UNK, Vocabulary, split_plain

GONE = -1
"""The number of a removed word."""
Ids = Int32[np.ndarray, "batch token"]
Labels = Int[np.ndarray, "batch"]
Weights = dict[str, Tensor]
"""The weights of all trainings, a first axis of runs before their own."""
TrainingCase = tuple[Mapping[Split, Ids], int]
"""The texts that one model is trained, chosen and tested on, and its seed."""
_AT_ONCE = 256


@final
class BestEpoch(NamedTuple):
    """The best epoch on the validation texts, counted from 1, and the accuracies there."""

    epoch: int
    validation_accuracy: float
    test_accuracy: float


def padded_ids(texts: Sequence[str], vocabulary: Vocabulary, T_max: int) -> Ids:
    """Texts as the paper's model reads them: [cls], words, and [unk] up to T_max."""
    ids = np.full((len(texts), T_max), UNK, dtype=np.int32)
    ids[:, 0] = CLS
    for row, text in zip(ids, texts, strict=True):
        words = split_plain(text)[: T_max - 1]
        row[1 : len(words) + 1] = vocabulary.ids(words)
    return ids


def train_many(
    config: Config,
    n_words: int,
    recipe: Recipe,
    labels: Mapping[Split, Labels],
    cases: Sequence[TrainingCase],
    watch: BatchProgress = lambda *_: None,
    frequencies: Float[np.ndarray, "word"] | None = None,
) -> list[BestEpoch]:
    """Trains a model for each case as `heedful train` does, all side by side.

    With `frequencies` of words a removed word has their mean vector at that step (Hooker et al., 2019, impute by the
    mean); without, the unknown word's.

    One step of one such model is far too small for a GPU. Here a step is made for all cases together: the weights have
    an axis of runs, the loss is the sum of theirs, and AdamW treats every weight by itself, so each model is trained as
    if alone, up to rounding. Initial weights and the order of the texts depend on a case's seed, not on `recipe.seed`.
    """
    device, seeds = recipe.device, tuple(seed for _, seed in cases)
    starts = {seed: initial_weights(config, n_words, seed) for seed in {*seeds}}
    network = Network(config, starts[seeds[0]]).to(device)
    names = [name for name, weight in network.named_parameters() if weight.requires_grad]
    weights = {name: torch.stack([starts[s][name].to(device) for s in seeds]).requires_grad_() for name in names}
    y: dict[Split, Tensor] = {split: torch.from_numpy(part).to(device) for split, part in labels.items()}
    x: dict[Split, Tensor] = {
        split: torch.stack([torch.from_numpy(ids[split]).to(device) for ids, _ in cases]) for split in labels
    }
    means = None if frequencies is None else torch.from_numpy(frequencies).to(device)
    best = [BestEpoch(0, -1.0, 0.0)] * len(cases)
    runs = _Runs(network, weights, means, x, y, seeds, recipe.batch_size, best)
    optimiser = torch.optim.AdamW(list(weights.values()), lr=recipe.learning_rate, fused=True)
    loop = TrainingLoop(runs.batches, runs.loss, runs.evaluate, recipe.seed)
    loop.run(recipe.n_epochs, TrainingState(None, weights, optimiser), watch)
    return best


@final
@dataclass(frozen=True, eq=False)
class _Runs:
    """The models that are trained together: their weights, their texts, and their best epochs."""

    network: Network
    weights: Weights
    means: Tensor | None
    x: Mapping[Split, Int32[Tensor, "run text token"]]
    y: Mapping[Split, Int[Tensor, "_"]]
    seeds: tuple[int, ...]
    batch_size: int
    best: list[BestEpoch]

    def batches(self, epoch: int) -> Sequence[Rows]:
        y = self.y["train"]
        orders = torch.stack([shuffled(len(y), seed, epoch) for seed in self.seeds])
        return orders.to(y.device).split(self.batch_size, dim=1)

    def loss(self, rows: Rows) -> Float[Tensor, ""]:
        runs = torch.arange(len(self.seeds), device=rows.device)[:, None]
        logits = _logits(self.network, self.weights, self.means, self.x["train"][runs, rows])
        return cross_entropy(logits.flatten(0, 1), self.y["train"][rows].flatten(), reduction="sum") / rows.shape[1]

    def evaluate(self, epoch: int, mean_loss: float) -> tuple[int, float]:
        validation = self._accuracies("validation")
        if any(new > old.validation_accuracy for new, old in zip(validation, self.best, strict=True)):
            for run, (new, tested) in enumerate(zip(validation, self._accuracies("test"), strict=True)):
                if new > self.best[run].validation_accuracy:
                    self.best[run] = BestEpoch(epoch + 1, new, tested)
        return epoch, mean_loss

    @torch.no_grad()
    def _accuracies(self, split: Split) -> list[float]:
        x, y = self.x[split], self.y[split]
        n_right = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        for part, label in zip(x.split(_AT_ONCE, dim=1), y.split(_AT_ONCE), strict=True):
            logits = _logits(self.network, self.weights, self.means, part)
            n_right += (logits.argmax(dim=2) == label).sum(dim=1)
        return [n / len(y) for n in n_right.tolist()]


def word_frequencies(ids: Ids, n_words: int) -> Float[np.ndarray, "word"]:
    """The share of every word of the vocabulary among the words of texts; neither [cls] nor [unk] counts."""
    counts = np.bincount(ids.ravel(), minlength=n_words).astype(np.float32)
    # [unk] also fills up texts.
    counts[[CLS, UNK]] = 0
    return counts / counts.sum()


def _logits(
    network: Network, weights: Weights, frequencies: Tensor | None, ids: Int32[Tensor, "run batch token"]
) -> Float[Tensor, "run batch class"]:
    W_e = weights["W_e"]
    # A statistic of the data: nothing is learnt through it. The unknown word is a word, and its vector is learnt.
    replacement = W_e[:, UNK] if frequencies is None else frequencies @ W_e.detach()

    def of_one(own: Weights, own_replacement: Tensor, own_ids: Tensor) -> Tensor:
        e = embedding(own_ids.clamp(min=0), own["W_e"])
        e = torch.where((own_ids == GONE)[..., None], own_replacement, e)
        return functional_call(network, own, (e + network.W_p,))

    return torch.vmap(of_one)(weights, replacement, ids)
