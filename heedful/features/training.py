"""Trains an autoencoder on a source of activations; a stopped run resumes at its last chunk with the same bytes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import ceil, inf, sqrt
from pathlib import Path
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import BadInput
from heedful.family import check_seed
from heedful.features.autoencoder import Autoencoder, Code, Weights, smallest_kept
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary, dictionary_of
from heedful.features.source import Source, check_finite
from heedful.models.budget import check_device
from heedful.models.training_loop import Rows, TrainingLoop, TrainingState
from heedful.progress import Progress
from heedful.run_folder import RunFolder


@final
@dataclass(frozen=True)
class TrainingPlan:
    """How to train. The learning rate is constant, after `warmup` and before `decay`, shares of the steps."""

    n_rows: int = 4_000_000
    batch_size: int = 1_024
    learning_rate: float = 1e-3
    warmup: float = 0.02
    decay: float = 0.33
    weight_decay: float = 0.0
    dead_after: int = 250_000
    """A feature is dead once it was active in none of so many rows."""
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("n_rows", "batch_size", "learning_rate", "dead_after"):
            if not getattr(self, name) > 0:
                raise BadInput(f"{name} must be above 0; {getattr(self, name)} was given.")
        if not (0 <= self.warmup <= 1 and 0 <= self.decay <= 1 - self.warmup and self.weight_decay >= 0):
            raise BadInput(
                "warmup and decay are shares of the steps that sum to at most 1; weight_decay is at least 0."
            )
        check_seed(self.seed)
        check_device(self.device)

    @property
    def rows_a_chunk(self) -> int:
        """A tenth of the training in whole batches, at most 65,536 rows: a run is saved after every chunk."""
        size = min(self.batch_size, self.n_rows)
        n_batches, most = ceil(self.n_rows / size), max(1, _MOST_ROWS // size)
        return size * ceil(n_batches / max(_FEWEST_CHUNKS, ceil(n_batches / most)))

    def rate(self, share: float) -> float:
        """The learning rate after this share of the steps."""
        rise = min(1.0, share / self.warmup) if self.warmup else 1.0
        fall = min(1.0, (1 - share) / self.decay) if self.decay else 1.0
        return self.learning_rate * min(rise, max(0.0, fall))


_FEWEST_CHUNKS, _MOST_ROWS = 10, 65_536


@final
class ChunkResult(NamedTuple):
    """The training on one chunk: the mean loss, and the other numbers on its last whole batch."""

    number: int
    loss: float
    l0: float
    """The mean number of active features per row."""
    explained_variance: float
    dead_share: float

    @property
    def summary(self) -> str:
        """The results on one line."""
        return (
            f"loss {self.loss:.4g}, {self.l0:.1f} active features per row, explained variance "
            f"{self.explained_variance:.3f}, {self.dead_share:.1%} dead"
        )


def train_on(
    source: Source,
    kind: Autoencoder,
    width: int,
    plan: TrainingPlan,
    card: Card,
    folder: Path | None = None,
    watch: Progress = lambda *_: None,
    finished: Callable[[ChunkResult], None] = lambda _: None,
    completed: Callable[[Dictionary], Dictionary] = lambda dictionary: dictionary,
) -> Dictionary:
    """Trains a dictionary on a source; with a folder, resumes the run that it contains.

    What `completed` makes of the dictionary, such as one whose card has its metrics, is saved and returned.
    """
    kind.check(width)
    run = _Training.of(source, kind, width, plan)
    if folder is None:
        run.train(None, watch, finished)
        return completed(run.dictionary(card))
    with RunFolder(folder).alone():
        settings = {"kind": kind.name, "settings": asdict(kind), "plan": asdict(plan)}
        RunFolder(folder).claim({**settings, "width": width, "source": source.about})
        run.train(folder / "state.safetensors", watch, finished)
        dictionary = completed(run.dictionary(card))
        dictionary.save(folder)
    return dictionary


@final
@dataclass(eq=False)
class _Training:
    """One training run: its weights, the rows of the present chunk, and how far it is."""

    source: Source
    kind: Autoencoder
    plan: TrainingPlan
    weights: Weights
    scale: float
    n_chunks: int
    rows: Float[Tensor, "row d_e"]
    parts: Sequence[Tensor] = ()
    """The rows of the present chunk, batch by batch."""
    dead: Tensor | None = None
    n_steps: int = 0
    done: int = 0
    """The number of steps that were made."""
    last: tuple[Tensor, Code] | None = None
    """The last whole batch and its code."""

    @staticmethod
    def of(source: Source, kind: Autoencoder, width: int, plan: TrainingPlan) -> "_Training":
        """A run that begins: random directions, an encoder with the same ones, and the mean of the first chunk."""
        first = _chunk(source, 0, plan)
        mean = first.mean(dim=0)
        # Rows are scaled so that the mean of ‖x − mean‖² is d_e: one learning rate and one λ fit every layer.
        scale = float((first - mean).square().sum(dim=1).mean().sqrt()) / sqrt(source.d_e)
        if not 0 < scale < inf:
            problem = "too large for single precision" if scale else "equal, so there is nothing to learn"
            raise BadInput(f"All rows of activations are {problem}.")
        weights = first_weights(kind, width, mean / scale, plan.seed)
        n_chunks = -(-plan.n_rows // source.rows_a_chunk)
        return _Training(source, kind, plan, weights, scale, n_chunks, first)

    def train(self, path: Path | None, watch: Progress, finished: Callable[[ChunkResult], None]) -> None:
        parameters = self.weights.parameters
        for weight in parameters.values():
            weight.requires_grad_(True)
        decay = [{"params": [*parameters.values()], "weight_decay": self.plan.weight_decay}]
        optimiser = torch.optim.AdamW(decay, lr=self.plan.learning_rate, fused=True)
        state = TrainingState(path, self.weights.everything, optimiser)
        state.restore(ChunkResult)
        loop = TrainingLoop(
            batches=self.batches,
            loss=self.loss,
            evaluate=self.evaluate,
            seed=self.plan.seed,
            rate=self.plan.rate,
            clipped=[*parameters.values()],
            after_step=self.after_step,
            finished=finished,
        )
        n = self.source.rows_a_chunk

        def advance(number: int, count: int, n_batches: int) -> None:
            watch(number * n + count * n // n_batches, self.n_chunks * n)

        with _fast_products():
            loop.run(self.n_chunks, state, advance)
        for weight in parameters.values():
            weight.requires_grad_(False)

    def batches(self, number: int) -> Sequence[Rows]:
        """The batches of a chunk; which features are dead is determined once per chunk."""
        self.rows = _chunk(self.source, number, self.plan) / self.scale
        dead = (self.weights.quiet >= self.plan.dead_after).nonzero()[:, 0]
        self.dead = dead if len(dead) else None
        self.parts = self.rows.split(self.plan.batch_size)
        self.n_steps, self.done = len(self.parts) * self.n_chunks, number * len(self.parts)
        return torch.arange(len(self.rows), device=self.rows.device).split(self.plan.batch_size)

    def loss(self, rows: Int[Tensor, "batch"]) -> Float[Tensor, ""]:  # noqa: ARG002
        # The rows of a batch follow one another, so that they need not be copied.
        x = self.parts[self.done % len(self.parts)]
        whole, self.done = len(x) == len(self.parts[0]), self.done + 1
        if whole:
            # What the last step computed is freed before this one needs as much.
            self.last = None
        loss, code = self.kind.loss(x, self.weights, self.done / self.n_steps, self.dead)
        if whole:
            self.last = x, code
        return loss

    @torch.no_grad()
    def after_step(self) -> None:
        if self.kind.norms == "unit":
            self.weights.W_dec.copy_(torch.nn.functional.normalize(self.weights.W_dec, dim=1))

    @torch.no_grad()
    def evaluate(self, number: int, loss: float) -> ChunkResult:
        assert self.last is not None
        x, code = self.last
        left, whole = (x - code.reconstruction).square().sum(), (x - x.mean(dim=0)).square().sum()
        l0 = float((code.active > 0).sum(dim=1).float().mean())
        dead = float((self.weights.quiet >= self.plan.dead_after).float().mean())
        return ChunkResult(number, loss, l0, float(1 - left / whole), dead)

    @torch.no_grad()
    def dictionary(self, card: Card) -> Dictionary:
        """The dictionary; thresholds, largest activations and densities are those of the rows behind the training's.

        They are measured on at least 65,536 rows, or on as many as there are.
        """
        settings = {**asdict(self.kind), **asdict(self.plan)}
        n_rows = self.n_chunks * self.source.rows_a_chunk
        card = replace(card, settings=settings, n_rows=n_rows, seed=settings.pop("seed"))
        n, size = self.source.rows_a_chunk, min(self.source.rows_a_chunk, self.plan.batch_size)
        more = ceil(min(_MOST_ROWS, self.source.n_rows) / n)
        rows = torch.cat([_chunk(self.source, self.n_chunks + number, self.plan) for number in range(more)])
        # A batch of few rows would count as much as a whole one.
        whole = rows[: len(rows) // size * size].split(size)
        smallest = smallest_kept(self.kind, self.weights, (part / self.scale for part in whole))
        return dictionary_of(self.kind, self.weights, smallest, self.scale, card).measured(rows).to("cpu")


def _chunk(source: Source, number: int, plan: TrainingPlan) -> Float[Tensor, "row d_e"]:
    """A chunk on the device of the training; one that is not finite is refused."""
    rows = source.chunk(number).to(plan.device)
    check_finite(rows)
    return rows


def first_weights(kind: Autoencoder, width: int, mean: Float[Tensor, "d_e"], seed: int) -> Weights:
    """Random directions, of length 1 or, where lengths are free, 0.1; the encoder's rows are the decoder's."""
    rng = torch.Generator().manual_seed(seed)
    W_dec = torch.nn.functional.normalize(torch.randn(width, len(mean), generator=rng), dim=1).to(mean.device)
    W_dec = W_dec if kind.norms == "unit" else 0.1 * W_dec
    trained, tracked = kind.initial(W_dec)
    nothing = torch.zeros_like(W_dec[:, 0])
    return Weights(W_dec.clone(), nothing.clone(), W_dec, mean.clone(), nothing.clone(), trained, tracked)


@contextmanager
def _fast_products() -> Iterator[None]:
    """Inside this context products on a GPU round their factors to TF32, which keeps about three digits."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
