"""The training loop: shuffled batches, optimiser steps, an evaluation after each epoch, a state file to resume from."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import cos, isfinite, pi
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from torch import Tensor, nn

from heedful.errors import BadInput
from heedful.run_folder import read_tensors, write_tensors

Rows = Int[Tensor, "*run batch"]
"""The row numbers of one batch; models that are trained side by side have a leading axis for the runs."""
BatchProgress = Callable[[int, int, int], None]
"""Called after every batch with the epoch, the batch, and the number of batches in an epoch."""


@final
class Epoch(NamedTuple):
    """The results of one pass over the data."""

    number: int
    loss: float
    train_accuracy: float
    validation_accuracy: float

    @property
    def summary(self) -> str:
        """The results on one line."""
        return (
            f"loss {self.loss:.4f}, training accuracy {self.train_accuracy:.2%}, "
            f"validation accuracy {self.validation_accuracy:.2%}"
        )


@final
@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train: the learning rate rises linearly, then falls along a cosine to 0."""

    n_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.01
    warmup_share: float = 0.1

    def rate(self, share: float) -> float:
        """The learning rate after this share of all steps."""
        if share < self.warmup_share:
            return self.learning_rate * share / self.warmup_share
        return self.learning_rate * cosine_decay(share - self.warmup_share, 1 - self.warmup_share)


def cosine_decay(done: int | float, total: int | float) -> float:
    """A factor that falls from 1 to 0 along half a cosine."""
    return (1 + cos(pi * done / total)) / 2


def adamw(network: nn.Module, schedule: Schedule) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices only; biases and norms are not decayed."""
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": schedule.weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=schedule.learning_rate, fused=True)


def shuffled(n: int, seed: int, epoch: int) -> Int[Tensor, "row"]:
    """All rows in an order that depends only on seed and epoch: a resumed run uses the same batches."""
    return torch.from_numpy(np.random.default_rng((seed, epoch)).permutation(n))


@contextmanager
def seeded(*seed: int) -> Iterator[None]:
    """Runs the block with torch's random state set from the seed; the state outside is unchanged."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        yield


@final
@dataclass
class TrainingState:
    """Weights, optimiser and finished epochs of one run, in a file from which a killed run resumes.

    Without a path nothing is written. `best` are the weights of the best epoch, kept in addition to the current ones.
    """

    path: Path | None
    weights: Mapping[str, Tensor]
    optimiser: torch.optim.Optimizer
    epochs: list[Any] = field(default_factory=list)
    """One tuple per finished epoch."""
    best: dict[str, Tensor] = field(default_factory=dict)

    def keep_best(self) -> None:
        """Copies the current weights to `best`."""
        self.best = {name: weight.detach().clone() for name, weight in self.weights.items()}

    def restore_best(self) -> None:
        """Makes the best weights the current ones."""
        self._copy(self.best)

    def save(self) -> None:
        """Writes the state; a kill leaves the old file or the new one."""
        if self.path is None:
            return
        tensors = {f"best.{name}": tensor for name, tensor in self.best.items()}
        tensors |= {f"now.{name}": weight.detach() for name, weight in self.weights.items()}
        for number, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": tensor for name, tensor in moments.items()}
        write_tensors(self.path, tensors, {"epochs": json.dumps(self.epochs)})

    def restore(self, epoch: Callable[..., Any]) -> None:
        """Reads the state if its file exists; `epoch` makes a finished epoch from its values."""
        if self.path is None or not self.path.exists():
            return
        try:
            tensors, metadata = read_tensors(self.path)
            self.epochs = [epoch(*row) for row in json.loads(metadata["epochs"])]
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise BadInput(f"{self.path.name} is damaged; delete it to train from the start.") from error
        self._copy(_under("now.", tensors))
        self.best = _under("best.", tensors)
        state = self.optimiser.state_dict()
        for name, tensor in _under("optimiser.", tensors).items():
            number, moment = name.split(".")
            state["state"].setdefault(int(number), {})[moment] = tensor
        self.optimiser.load_state_dict(state)

    @torch.no_grad()
    def _copy(self, tensors: Mapping[str, Tensor]) -> None:
        for name, weight in self.weights.items():
            weight.copy_(tensors[name])


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@final
@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """What an epoch consists of: the batches, the loss, and what is measured afterwards."""

    batches: Callable[[int], Sequence[Rows]]
    """The batches of an epoch."""
    loss: Callable[[Rows], Float[Tensor, ""]]
    """The mean loss over a batch."""
    evaluate: Callable[[int, float], Any]
    """Called with an epoch and its mean loss; the tuple it returns is stored with the finished epochs."""
    seed: int
    """Dropout and augmentation depend on it and on the epoch."""
    rate: Callable[[float], float] | None = None
    """The learning rate after a share of all steps; None keeps the optimiser's own."""
    clipped: Sequence[Tensor] = ()
    """Weights whose gradient is scaled to a norm of at most 1."""
    after_step: Callable[[], None] = lambda: None
    finished: Callable[[Any], None] = lambda _: None
    """Called with every finished epoch, after the state is saved."""

    def run(self, n_epochs: int, state: TrainingState, progress: BatchProgress = lambda *_: None) -> None:
        """Trains until `n_epochs` are finished, from the last finished epoch of the state."""
        for number in range(len(state.epochs), n_epochs):
            with seeded(self.seed, number):
                loss = self._epoch(number, n_epochs, state.optimiser, progress)
            if not isfinite(loss):
                raise BadInput(f"The loss is not a finite number in epoch {number + 1}; try a smaller learning_rate.")
            state.epochs.append(self.evaluate(number, loss))
            state.save()
            self.finished(state.epochs[-1])

    def _epoch(self, number: int, n_epochs: int, optimiser: torch.optim.Optimizer, progress: BatchProgress) -> float:
        """The mean loss over one pass through the data."""
        batches = self.batches(number)
        total, n_rows = torch.zeros((), device=batches[0].device), sum(rows.shape[-1] for rows in batches)
        for count, rows in enumerate(batches, start=1):
            if self.rate is not None:
                share = (number * len(batches) + count) / (n_epochs * len(batches) + 1)
                for group in optimiser.param_groups:
                    group["lr"] = self.rate(share)
            loss = self.loss(rows)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(list(self.clipped), 1.0)
            optimiser.step()
            self.after_step()
            total += loss.detach() * rows.shape[-1]
            progress(number, count, len(batches))
        return float(total) / n_rows
