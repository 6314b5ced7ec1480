"""Texts without some of their words, and many single-layer models trained on them side by side."""

from collections.abc import Callable, Mapping, Sequence
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
from heedful.models.vocabulary import CLS, UNK, Vocabulary, split_plain
from studies.roar.rankings import NOWHERE, Ranks

Mode = Literal["remove", "keep"]
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
class Lesson(NamedTuple):
    """What one model is trained, chosen and tested on, and from which seed."""

    ids: Mapping[Split, Ids]
    seed: int


@final
class Outcome(NamedTuple):
    """The best epoch on the validation texts, counted from 1, and the accuracies there."""

    epoch: int
    validation_accuracy: float
    test_accuracy: float


def read(examples: Sequence[Example], vocabulary: Vocabulary, T_max: int) -> Reviews:
    ids = np.full((len(examples), T_max), UNK, dtype=np.int32)
    ids[:, 0] = CLS
    n_words = np.zeros(len(examples), dtype=np.int64)
    for index, example in enumerate(examples):
        words = split_plain(example.text)[: T_max - 1]
        ids[index, 1 : len(words) + 1] = vocabulary.ids(words)
        n_words[index] = len(words)
    return Reviews(ids, n_words, np.array([example.label for example in examples]))


def replaced(reviews: Reviews, ranks: Ranks, mode: str, percent: int) -> Ids:
    """The texts with that share of their words unknown: "remove" takes the strongest, "keep" the weakest.

    Of n words it is percent · n / 100, rounded, halves up. Words that were unknown before count like any other.
    """
    if not ((ranks != NOWHERE).sum(axis=1) == reviews.n_words).all():
        raise BadInput("The ranking has another number of words than the texts; it is of other texts.")
    n_gone = ((percent * reviews.n_words + 50) // 100)[:, None]
    gone = ranks < n_gone if mode == "remove" else ranks >= reviews.n_words[:, None] - n_gone
    ids = reviews.ids.copy()
    np.copyto(ids[:, 1:], UNK, where=gone & (ranks != NOWHERE))
    return ids


def retrain(
    config: Config,
    n_words: int,
    recipe: Recipe,
    labels: Mapping[Split, Labels],
    lessons: Sequence[Lesson],
    watch: Callable[[int, int, int], None] = lambda *_: None,
) -> list[Outcome]:
    """Trains a model for each lesson as `models.training` does, all in one; `watch` is told epoch, batch and batches.

    One step of one such model is far too small for a GPU. Here a step is made for all lessons together: the weights
    have an axis of runs, the loss is the sum of theirs, and AdamW knows no neighbours, so each is trained as if alone,
    up to rounding. Initial weights and the order of the texts depend on a lesson's seed alone, not on `recipe.seed`.
    """
    device = recipe.device
    starts = {seed: initial_weights(config, n_words, seed) for seed in {lesson.seed for lesson in lessons}}
    network = Network(config, starts[lessons[0].seed]).to(device)
    names = [name for name, weight in network.named_parameters() if weight.requires_grad]
    weights = {
        name: torch.stack([starts[lesson.seed][name].to(device) for lesson in lessons]).requires_grad_()
        for name in names
    }
    optimiser = torch.optim.AdamW(list(weights.values()), lr=recipe.learning_rate, fused=True)
    y = {split: torch.from_numpy(part).to(device) for split, part in labels.items()}
    x = {split: torch.stack([torch.from_numpy(lesson.ids[split]).to(device) for lesson in lessons]) for split in labels}
    runs = torch.arange(len(lessons), device=device)[:, None]
    best = [Outcome(0, -1.0, 0.0)] * len(lessons)

    for epoch in range(recipe.n_epochs):
        order = np.stack([_order(lesson.seed, epoch, len(y["train"])) for lesson in lessons])
        batches = torch.from_numpy(order).to(device).split(recipe.batch_size, dim=1)
        total_loss = torch.zeros((), device=device)
        for count, batch in enumerate(batches, start=1):
            logits = _logits(network, weights, x["train"][runs, batch])
            loss = cross_entropy(logits.flatten(0, 1), y["train"][batch].flatten(), reduction="sum") / batch.shape[1]
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total_loss += loss.detach()
            watch(epoch, count, len(batches))
        if not total_loss.isfinite():
            raise BadInput(f"The loss is not a finite number in epoch {epoch + 1}; try a smaller learning_rate.")
        validation = _accuracies(network, weights, x["validation"], y["validation"])
        better = [new > old.validation_accuracy for new, old in zip(validation, best, strict=True)]
        if any(better):
            test = _accuracies(network, weights, x["test"], y["test"])
            found = [Outcome(epoch + 1, *accuracies) for accuracies in zip(validation, test, strict=True)]
            best = [new if is_better else old for new, old, is_better in zip(found, best, better, strict=True)]
    return best


def _order(seed: int, epoch: int, n: int) -> Int[np.ndarray, "batch"]:
    """The order in which `heedful.models.training` shows the texts."""
    return np.random.default_rng((seed, epoch)).permutation(n)


def _logits(
    network: Network, weights: Weights, ids: Int32[Tensor, "run batch token"]
) -> Float[Tensor, "run batch class"]:
    def of_one(own: Weights, own_ids: Tensor) -> Tensor:
        e = embedding(own_ids, own["W_e"]) + network.W_p
        return functional_call(network, own, (e,))

    return torch.vmap(of_one)(weights, ids)


@torch.no_grad()
def _accuracies(
    network: Network, weights: Weights, x: Int32[Tensor, "run batch token"], y: Int[Tensor, "batch"]
) -> list[float]:
    n_right = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    for part, label in zip(x.split(_AT_ONCE, dim=1), y.split(_AT_ONCE), strict=True):
        n_right += (_logits(network, weights, part).argmax(dim=2) == label).sum(dim=1)
    return [n / len(y) for n in n_right.tolist()]
