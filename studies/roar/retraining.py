"""Texts without some of their words, and many single-layer models trained on them side by side."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int, Int32
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy, embedding

from heedful.datasets import Example, Split
from heedful.errors import BadInput
from heedful.models.network import Config, Network
from heedful.models.training import Recipe, initial_weights
from heedful.models.training_loop import BatchProgress, Rows, TrainingLoop, TrainingState, shuffled
from heedful.models.vocabulary import CLS, UNK, Vocabulary, split_plain
from studies.roar.rankings import NOWHERE, Ranks

Mode = Literal["remove", "keep"]
Imputation = Literal["mean", "unknown"]
"""What replaces a removed word: the mean vector of the words of the training texts, or the unknown word's."""
GONE = -1
"""The number of a removed word."""
Ids = Int32[np.ndarray, "batch token"]
Labels = Int[np.ndarray, "batch"]
Weights = dict[str, Tensor]
"""The weights of all trainings, a first axis of runs before their own."""
_AT_ONCE = 256


@final
class Reviews(NamedTuple):
    """Labelled texts as the model reads them: [cls], words, and [unk] up to T_max."""

    ids: Ids
    n_words: Int[np.ndarray, "batch"]
    labels: Labels


@final
class TrainingCase(NamedTuple):
    """The texts that one model is trained, chosen and tested on, and its seed."""

    ids: Mapping[Split, Ids]
    seed: int


@final
class Accuracies(NamedTuple):
    """The best epoch on the validation texts, counted from 1, and the accuracies there."""

    epoch: int
    validation_accuracy: float
    test_accuracy: float


def read_reviews(examples: Sequence[Example], vocabulary: Vocabulary, T_max: int) -> Reviews:
    """The texts as token numbers, at most T_max of them."""
    ids = np.full((len(examples), T_max), UNK, dtype=np.int32)
    ids[:, 0] = CLS
    n_words = np.zeros(len(examples), dtype=np.int64)
    for index, example in enumerate(examples):
        words = split_plain(example.text)[: T_max - 1]
        ids[index, 1 : len(words) + 1] = vocabulary.ids(words)
        n_words[index] = len(words)
    return Reviews(ids, n_words, np.array([example.label for example in examples]))


def replaced(reviews: Reviews, ranks: Ranks, mode: str, percent: int) -> Ids:
    """The texts with that share of their words `GONE`: "remove" takes the strongest, "keep" the weakest.

    Of n words it is percent · n / 100, rounded, halves up. Words that were unknown before count like any other.
    """
    if not ((ranks != NOWHERE).sum(axis=1) == reviews.n_words).all():
        raise BadInput("The ranking has another number of words than the texts; it is of other texts.")
    n_gone = ((percent * reviews.n_words + 50) // 100)[:, None]
    gone = ranks < n_gone if mode == "remove" else ranks >= reviews.n_words[:, None] - n_gone
    ids = reviews.ids.copy()
    np.copyto(ids[:, 1:], GONE, where=gone & (ranks != NOWHERE))
    return ids


def retrain(
    config: Config,
    n_words: int,
    recipe: Recipe,
    labels: Mapping[Split, Labels],
    cases: Sequence[TrainingCase],
    watch: BatchProgress = lambda *_: None,
    frequencies: Float[np.ndarray, "word"] | None = None,
) -> list[Accuracies]:
    """Trains a model for each case as `models.training` does, all side by side.

    With `frequencies` of words a removed word has their mean vector at that step (Hooker et al., 2019, impute by the
    mean); without, the unknown word's.

    One step of one such model is far too small for a GPU. Here a step is made for all cases together: the weights have
    an axis of runs, the loss is the sum of theirs, and AdamW treats every weight by itself, so each model is trained as
    if alone, up to rounding. Initial weights and the order of the texts depend on a case's seed, not on `recipe.seed`.
    """
    device = recipe.device
    starts = {seed: initial_weights(config, n_words, seed) for seed in {case.seed for case in cases}}
    network = Network(config, starts[cases[0].seed]).to(device)
    names = [name for name, weight in network.named_parameters() if weight.requires_grad]
    weights = {
        name: torch.stack([starts[case.seed][name].to(device) for case in cases]).requires_grad_() for name in names
    }
    y = {split: torch.from_numpy(part).to(device) for split, part in labels.items()}
    x = {split: torch.stack([torch.from_numpy(case.ids[split]).to(device) for case in cases]) for split in labels}
    means = None if frequencies is None else torch.from_numpy(frequencies).to(device)
    runs = torch.arange(len(cases), device=device)[:, None]
    best = [Accuracies(0, -1.0, 0.0)] * len(cases)

    def batches(epoch: int) -> Sequence[Rows]:
        orders = torch.stack([shuffled(len(y["train"]), case.seed, epoch) for case in cases])
        return orders.to(device).split(recipe.batch_size, dim=1)

    def loss(rows: Rows) -> Float[Tensor, ""]:
        logits = _logits(network, weights, means, x["train"][runs, rows])
        return cross_entropy(logits.flatten(0, 1), y["train"][rows].flatten(), reduction="sum") / rows.shape[1]

    def evaluate(epoch: int, mean_loss: float) -> tuple[int, float]:
        validation = _accuracies(network, weights, means, x["validation"], y["validation"])
        if any(new > old.validation_accuracy for new, old in zip(validation, best, strict=True)):
            test = _accuracies(network, weights, means, x["test"], y["test"])
            for run, (new, tested) in enumerate(zip(validation, test, strict=True)):
                if new > best[run].validation_accuracy:
                    best[run] = Accuracies(epoch + 1, new, tested)
        return epoch, mean_loss

    optimiser = torch.optim.AdamW(list(weights.values()), lr=recipe.learning_rate, fused=True)
    state = TrainingState(None, weights, optimiser)
    TrainingLoop(batches, loss, evaluate, recipe.seed).run(recipe.n_epochs, state, watch)
    return best


def word_frequencies(reviews: Reviews, n_words: int) -> Float[np.ndarray, "word"]:
    """The share of every word of the vocabulary among the words of texts; neither [cls] nor [unk] counts."""
    counts = np.bincount(reviews.ids.ravel(), minlength=n_words).astype(np.float32)
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


@torch.no_grad()
def _accuracies(
    network: Network,
    weights: Weights,
    means: Tensor | None,
    x: Int32[Tensor, "run batch token"],
    y: Int[Tensor, "batch"],
) -> list[float]:
    n_right = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    for part, label in zip(x.split(_AT_ONCE, dim=1), y.split(_AT_ONCE), strict=True):
        n_right += (_logits(network, weights, means, part).argmax(dim=2) == label).sum(dim=1)
    return [n / len(y) for n in n_right.tolist()]
