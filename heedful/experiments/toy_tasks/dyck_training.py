"""Networks with different parts, trained side by side on strings of brackets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.experiments.toy_tasks.dyck_network import DyckNetwork, DyckParts
from heedful.experiments.toy_tasks.side_by_side import Adam, StepPlan, falling_rate, stack_runs, train_side_by_side

_LAST = 500


@final
@dataclass(frozen=True)
class DyckRun:
    """One network to train."""

    name: str
    parts: DyckParts
    seed: int
    rate: float = 1e-2
    """The initial learning rate; the default is Wen et al.'s."""


@final
@dataclass(frozen=True)
class DyckSettings:
    """Task and training settings; the defaults are Wen et al.'s, and the shortest string has one pair of brackets."""

    language: Dyck = field(default_factory=Dyck)
    width: int = 50
    shortest: int = 1
    longest: int = 28
    far: tuple[int, int] = (400, 500)
    """Lengths of the longer strings."""
    n_training: int = 100_000
    n_epochs: int = 10
    batch_size: int = 100
    n_asked: int = 10_000
    """The number of samples before duplicates and training strings are dropped."""
    n_far: int = 500
    seed: int = 0

    @cached_property
    def network(self) -> DyckNetwork:
        """The network that all runs share."""
        return DyckNetwork(self.language, self.width)

    @cached_property
    def training(self) -> Int[np.ndarray, "string place"]:
        """The strings to train on."""
        return self.language.strings(self.n_training, self.shortest, self.longest, self._stream(0))

    @cached_property
    def held_out(self) -> Int[np.ndarray, "string place"]:
        """Distinct strings of the training lengths, from the same distribution, none of them in the training set."""
        drawn = np.unique(self.language.strings(self.n_asked, self.shortest, self.longest, self._stream(1)), axis=0)
        seen = {row.tobytes() for row in self.training}
        return drawn[np.array([row.tobytes() not in seen for row in drawn], dtype=bool)]

    @cached_property
    def longer(self) -> Int[np.ndarray, "string place"]:
        """Strings longer than any in training."""
        return self.language.strings(self.n_far, *self.far, self._stream(2))

    @property
    def n_before(self) -> int:
        """The length of the prefixes."""
        return 2 * (self.longest // 6)

    @cached_property
    def prefixed(self) -> tuple[Int[np.ndarray, "string place"], Int[np.ndarray, "string place"]]:
        """Strings after two balanced prefixes of equal length, both of which leave no bracket open."""
        n, length = self.n_far, self.n_before
        first, second = (self.language.strings(n, length, length, self._stream(number)) for number in (3, 4))
        after = self.language.strings(n, 2, self.longest - length, self._stream(5))
        return np.concatenate([first, after], axis=1), np.concatenate([second, after], axis=1)

    def fixed(self, run: DyckRun) -> dict[str, Tensor]:
        """The tensors that are not trained, for the longest strings; shorter ones use a corner of the same table."""
        return self.network.fixed(run.parts, max(self.longest, self.far[1]), run.seed)

    def _stream(self, number: int) -> int:
        return 100 * self.seed + number


def quick_dyck_settings(seed: int) -> DyckSettings:
    """Smaller settings: a few seconds on one core."""
    strings = {"shortest": 6, "longest": 12, "far": (60, 80), "n_training": 5_000, "n_asked": 4_000, "n_far": 200}
    return DyckSettings(Dyck(2, 3), width=20, n_epochs=3, batch_size=32, seed=seed, **strings)


def train_runs(
    settings: DyckSettings, runs: Sequence[DyckRun], device: str, watch: Callable[[int, int], None]
) -> dict[str, Tensor]:
    """The trained weights of all runs, stacked: Adam, and a cosine schedule from a run's rate to 0, as published.

    `final loss` is the mean loss over the last training steps, by which the rate is selected.
    """
    n_steps = max(1, settings.n_training * settings.n_epochs // settings.batch_size)
    plan = StepPlan(Adam(1.0), n_steps, settings.batch_size, falling_rate(n_steps))
    start = stack_runs([settings.network.initial(run.seed) for run in runs])
    fixed = stack_runs([settings.fixed(run) for run in runs])
    done = train_side_by_side(
        lambda weights, batch: next_token_loss(settings, weights, batch[0]),
        {name: tensor.to(device) for name, tensor in start.items()},
        [torch.tensor(settings.training, device=device)],
        [torch.arange(settings.n_training)] * len(runs),
        [run.seed for run in runs],
        plan,
        {name: tensor.to(device) for name, tensor in fixed.items()},
        watch,
        [run.rate for run in runs],
    )
    return done.parameters | {"final loss": done.losses[:, -_LAST:].mean(dim=1)}


def next_token_loss(
    settings: DyckSettings, weights: Mapping[str, Tensor], tokens: Int[Tensor, "string place"]
) -> Float[Tensor, ""]:
    """Cross-entropy of the next token, the end token included, over the rows of the strings without padding."""
    end, n_tokens = settings.language.end, settings.language.n_tokens
    log_probabilities = torch.log_softmax(settings.network.run(weights, tokens).logits, dim=-1)
    ends = pad(tokens, (0, 1), value=end)
    counts = pad(tokens != end, (1, 0), value=True)
    is_next = ends[..., None] == torch.arange(n_tokens, device=tokens.device)
    return -(log_probabilities * (is_next & counts[..., None])).sum() / counts.sum()
