"""Trains a word model on documents: Adam, batches of texts of similar length, any loss, edited or frozen attention."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.datasets import Example
from heedful.document import Document
from heedful.errors import BadInput, Unsupported
from heedful.family import check_seed
from heedful.models.fitting.batch import BatchLoss, cross_entropy, run_batch
from heedful.models.recording import Edit, Recordable
from heedful.models.training_loop import BatchProgress, Epoch, Rows, TrainingLoop, TrainingState, shuffled

_CHUNK, _PROBED = 50, 32
"""Batches whose texts are sorted by length together, and texts that show which weights act through attention alone."""


@final
@dataclass(frozen=True)
class FitRecipe:
    """How to train; the defaults are those of Jain & Wallace (2019), whose Adam is AMSGrad."""

    n_epochs: int = 8
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_epochs", "batch_size", "learning_rate"):
            if not getattr(self, name) > 0:
                raise BadInput(f"{name} must be above 0; {getattr(self, name)} was given.")
        if not self.weight_decay >= 0:
            raise BadInput(f"weight_decay must be at least 0; {self.weight_decay} was given.")
        check_seed(self.seed)


def amsgrad(weights: list[Tensor], recipe: FitRecipe) -> torch.optim.Optimizer:
    """The optimiser of Jain & Wallace (2019)."""
    decay = recipe.weight_decay
    return torch.optim.Adam(weights, lr=recipe.learning_rate, weight_decay=decay, amsgrad=True, fused=True)


def batches_by_length(lengths: Sequence[int], recipe: FitRecipe, epoch: int) -> list[Int[Tensor, "batch"]]:
    """Batches of texts of similar length in random order, by seed and epoch.

    The shuffled texts are sorted by length in chunks of fifty batches, and the batches are shuffled again.
    """
    order = shuffled(len(lengths), recipe.seed, epoch)
    chunks = [
        chunk[torch.tensor(lengths)[chunk].argsort(stable=True)] for chunk in order.split(_CHUNK * recipe.batch_size)
    ]
    batches = [batch for chunk in chunks for batch in chunk.split(recipe.batch_size)]
    return [batches[n] for n in np.random.default_rng((recipe.seed, epoch, 1)).permutation(len(batches))]


@final
@dataclass(frozen=True, eq=False)
class Fitting:
    """One training run of a model, in place. With held-out texts the weights of the epoch that is best on them stay.

    `frozen_attention` keeps the weights that act through attention alone as they are: the frozen test of Wiegreffe &
    Pinter (2019), arXiv:1908.04626, Section 3.
    """

    model: Recordable
    documents: Sequence[Document]
    labels: Sequence[int]
    recipe: FitRecipe
    loss: BatchLoss = cross_entropy
    edit: Edit | None = None
    frozen_attention: bool = False
    held_out: tuple[Sequence[Document], Sequence[int]] | None = None
    optimiser: Callable[[list[Tensor], FitRecipe], torch.optim.Optimizer] = amsgrad
    batches: Callable[[Sequence[int], FitRecipe, int], Sequence[Rows]] = batches_by_length

    def run(self, path: Path | None = None, watch: BatchProgress = lambda *_: None) -> list[Epoch]:
        """Trains, or resumes from the state in the file; the same seed gives the same weights."""
        if not self.documents or len(self.documents) != len(self.labels):
            raise BadInput(f"{len(self.documents)} texts have {len(self.labels)} labels; give at least one of each.")
        weights, recipe = dict(self.model.network.named_parameters()), self.recipe
        frozen = self._frozen() if self.frozen_attention else ()
        moving = [weight for name, weight in weights.items() if weight.requires_grad and name not in frozen]
        state = TrainingState(path, weights, self.optimiser(moving, recipe))
        state.restore(Epoch)

        def evaluate(number: int, mean_loss: float) -> Epoch:
            accuracy = nan if self.held_out is None else accuracy_of(self.model, *self.held_out)
            epoch = Epoch(number, mean_loss, float(self._n_correct) / len(self.documents), accuracy)
            self._n_correct.zero_()
            if self.held_out and all(accuracy > before.validation_accuracy for before in state.epochs):
                state.keep_best()
            return epoch

        TrainingLoop(self._batches, self._loss, evaluate, recipe.seed).run(recipe.n_epochs, state, watch)
        if self.held_out is not None:
            state.restore_best()
        # The fingerprint that the model may have computed is that of other weights.
        vars(self.model).pop("fingerprint", None)
        return state.epochs

    def _frozen(self) -> tuple[str, ...]:
        names = attention_only(self.model, self.documents[:_PROBED], self.labels[:_PROBED])
        if not names:
            raise Unsupported("No weight of this model acts through attention alone, so there is nothing to freeze.")
        return names

    def _batches(self, epoch: int) -> Sequence[Rows]:
        batches = self.batches([len(document.ids) for document in self.documents], self.recipe, epoch)
        return [batch.to(self._y.device) for batch in batches]

    def _loss(self, rows: Rows) -> Float[Tensor, ""]:
        batch = run_batch(
            self.model, rows, [self.documents[n] for n in rows.tolist()], self._y[rows], self.loss, self.edit
        )
        self._n_correct.add_((batch.logits.detach().argmax(dim=1) == batch.labels).sum())
        return self.loss(batch)

    @cached_property
    def _y(self) -> Int[Tensor, "text"]:
        return torch.tensor(self.labels, dtype=torch.long, device=_device(self.model))

    @cached_property
    def _n_correct(self) -> Float[Tensor, ""]:
        return torch.zeros((), device=_device(self.model))


def attention_only(model: Recordable, documents: Sequence[Document], labels: Sequence[int]) -> tuple[str, ...]:
    """The weights that act through attention alone: those without a gradient once attention is held constant."""
    weights = {name: weight for name, weight in model.network.named_parameters() if weight.requires_grad}
    y = torch.tensor(labels, dtype=torch.long, device=_device(model))
    rows = torch.arange(len(y), device=y.device)

    def moved(edit: Edit | None) -> set[str]:
        loss = cross_entropy(run_batch(model, rows, documents, y, edit=edit))
        gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        return {name for name, g in zip(weights, gradients, strict=True) if g is not None and g.any()}

    # A filter that is never active has no gradient in either pass; it does not belong to the attention.
    alone = moved(None) - moved(lambda _, maps: maps.detach())
    return tuple(name for name in weights if name in alone)


def read_examples(model: Recordable, examples: Sequence[Example]) -> tuple[list[Document], list[int]]:
    """The texts as the model reads them, and their labels."""
    return [model.encode(example.text) for example in examples], [example.label for example in examples]


def accuracy_of(model: Recordable, documents: Sequence[Document], labels: Sequence[int]) -> float:
    """The share of documents whose predicted class is the label; NaN if there are none."""
    if not documents:
        return nan
    # Short texts together, so that they are not padded to the longest.
    order = sorted(range(len(documents)), key=lambda n: len(documents[n].ids))
    predicted = model.logits([documents[n] for n in order]).argmax(axis=1)
    return float((predicted == np.array(labels)[order]).mean())


def _device(model: Recordable) -> torch.device:
    return next(model.network.parameters()).device
