"""Trains GPT-2 on texts: cross-entropy of the next token, on windows of all texts one after another."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from heedful.datasets import Dataset, Example
from heedful.document import check_text
from heedful.errors import BadInput
from heedful.family import check_seed
from heedful.models.budget import check_device
from heedful.models.language.bpe import BytePairs, learn_byte_pairs
from heedful.models.language.gpt2 import Gpt2Config, Gpt2Network, initial_gpt2
from heedful.models.language.writer import Writer
from heedful.models.training import check_splits, claim_run
from heedful.models.training_loop import BatchProgress, Rows, Schedule, TrainingLoop, TrainingState, adamw, shuffled
from heedful.run_folder import RunFolder

_UNREAD = -100


@final
@dataclass(frozen=True)
class Gpt2Recipe:
    """How to train; every step reads `batch_size` windows of T_max tokens."""

    learning_rate: float = 2e-3
    weight_decay: float = 0.1
    batch_size: int = 64
    n_epochs: int = 20
    dropout: float = 0.1
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("learning_rate", "batch_size", "n_epochs"):
            if not getattr(self, name) > 0:
                raise BadInput(f"{name} must be above 0; {getattr(self, name)} was given.")
        if not 0 <= self.dropout < 1 or self.weight_decay < 0:
            raise BadInput("dropout must be at least 0 and below 1, and weight_decay at least 0.")
        check_seed(self.seed)
        check_device(self.device)


@final
class LanguageEpoch(NamedTuple):
    """The results of one pass over the data: mean losses per token, in nats."""

    number: int
    loss: float
    held_out_loss: float

    @property
    def perplexity(self) -> float:
        """The perplexity per token on the held-out texts."""
        return exp(self.held_out_loss)

    @property
    def summary(self) -> str:
        """The results on one line."""
        return f"loss {self.loss:.4f} a token, validation perplexity {self.perplexity:.2f}"


@final
@dataclass(frozen=True, eq=False)
class TokenStream:
    """The tokens of texts one after another, each text after the token that ends a text."""

    ids: Int[Tensor, "_"]
    starts: Int[Tensor, "text"]
    """The position of each text, which is that of the token before it."""

    @staticmethod
    def of(texts: Sequence[Int[np.ndarray, "_"]], end: int) -> "TokenStream":
        """The stream of tokenized texts."""
        lengths = np.array([len(text) + 1 for text in texts])
        ids = np.concatenate([part for text in texts for part in ([end], text)])
        return TokenStream(torch.from_numpy(ids.astype(np.int32)), torch.from_numpy(np.cumsum(lengths) - lengths))

    def to(self, device: str) -> "TokenStream":
        """The same on a device."""
        return TokenStream(self.ids.to(device), self.starts.to(device))

    def windows(self, T_max: int, seed: int, epoch: int) -> Int[Tensor, "row"]:
        """The first positions of windows of T_max + 1 tokens, shuffled; together about as long as the stream.

        Every second one begins with a text, as prompts do; the others divide the stream, at other places every time.
        """
        last = len(self.ids) - T_max - 1
        if last < 1:
            raise BadInput(f"The texts have {len(self.ids):,} tokens; training with T_max {T_max} needs more.")
        rng = np.random.default_rng((seed, epoch))
        starts = self.starts.cpu().numpy()
        starts = starts[starts <= last]
        some = rng.permutation(starts)[: max(1, len(self.ids) // (2 * T_max))]
        both = np.concatenate([some, np.arange(rng.integers(min(2 * T_max, last)), last + 1, 2 * T_max)])
        return torch.from_numpy(both[shuffled(len(both), seed, epoch).numpy()]).to(self.ids.device)


def train_gpt2(
    dataset: Dataset, config: Gpt2Config, recipe: Gpt2Recipe, folder: Path, watch: BatchProgress = lambda *_: None
) -> tuple[Writer, list[LanguageEpoch]]:
    """Learns a vocabulary and trains GPT-2 on the texts of a data set, or resumes from the last finished epoch.

    The vocabulary is that of the training texts: at most `n_tokens` of D, fewer if these texts have no more pairs.
    """
    training, validation, _ = (dataset.examples(split) for split in ("train", "validation", "test"))
    check_splits(dataset.name, training, validation)
    texts = plain_texts((*training, *validation))
    vocabulary = learn_byte_pairs(texts[: len(training)], config.n_tokens)
    ids = token_ids(vocabulary, texts)
    stream = TokenStream.of(ids[: len(training)], vocabulary.special[0])
    # Too few tokens for T_max are refused before the folder belongs to this run.
    stream.windows(config.T_max, recipe.seed, 0)
    network = initial_gpt2(replace(config, n_tokens=len(vocabulary)), recipe.seed).to(recipe.device)
    with RunFolder(folder).alone():
        claim_run(folder, dataset, config, recipe, repr((training, validation)))
        epochs = fit_gpt2(network, stream, ids[len(training) :], recipe, folder / "state.safetensors", watch)
    return Writer(network, vocabulary, starts=True), epochs


def plain_texts(examples: Sequence[Example]) -> list[str]:
    """The texts; halves of characters, which have no bytes, become question marks."""
    return [check_text(example.text).encode("utf-8", "replace").decode() for example in examples]


def token_ids(vocabulary: BytePairs, texts: Sequence[str]) -> list[Int[np.ndarray, "_"]]:
    """The tokens of every text."""
    return [np.array(vocabulary.encode(text), dtype=np.int64) for text in texts]


def fit_gpt2(
    network: Gpt2Network,
    stream: TokenStream,
    held_out: Sequence[Int[np.ndarray, "_"]],
    recipe: Gpt2Recipe,
    path: Path | None,
    watch: BatchProgress = lambda *_: None,
    finished: Callable[[Any], None] = lambda _: None,
) -> list[LanguageEpoch]:
    """Trains the network, or resumes from the last finished epoch; the weights of the best held-out epoch are kept."""
    T_max, end = network.config.T_max, int(stream.ids[0])
    schedule = Schedule(recipe.n_epochs, recipe.batch_size, recipe.learning_rate, recipe.weight_decay, 0.03)
    state = TrainingState(path, dict(network.named_parameters()), adamw(network, schedule))
    state.restore(LanguageEpoch)
    stream, steps = stream.to(recipe.device), torch.arange(T_max + 1, device=recipe.device)

    def batches(epoch: int) -> Sequence[Rows]:
        return stream.windows(T_max, recipe.seed, epoch).split(recipe.batch_size)

    def loss(starts: Rows) -> Float[Tensor, ""]:
        ids = stream.ids[starts[:, None] + steps].long()
        with bfloat16_on_gpu(recipe.device):
            logits = network.logits(network.states(dropout(network.embed(ids[:, :-1]), recipe.dropout)))
        return cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())

    def evaluate(number: int, mean_loss: float) -> LanguageEpoch:
        network.eval()
        sums, counts = measure_losses(network, held_out, end)
        network.train()
        epoch = LanguageEpoch(number, mean_loss, float(sums.sum() / counts.sum()))
        if all(epoch.held_out_loss < before.held_out_loss for before in state.epochs):
            state.keep_best()
        return epoch

    with _dropping(network, recipe.dropout):
        TrainingLoop(
            batches, loss, evaluate, recipe.seed, schedule.rate, list(network.parameters()), finished=finished
        ).run(recipe.n_epochs, state, watch)
    state.restore_best()
    return state.epochs


@torch.no_grad()
def measure_losses(
    network: Gpt2Network, texts: Sequence[Int[np.ndarray, "_"]], end: int, at_once: int = 16_384
) -> tuple[Float[np.ndarray, "text"], Int[np.ndarray, "text"]]:
    """For each text Σ_t −log p(x_t | x_1 … x_{t−1}), and how many tokens these are, the end of the text among them.

    A text longer than T_max is read in windows that overlap by half: a token is predicted from at least T_max/2 others.
    """
    T_max, device = network.config.T_max, network.W_e.device
    half = max(1, T_max // 2)
    sums, windows = np.zeros(len(texts)), []
    for number, text in enumerate(texts):
        whole = np.concatenate([[end], text, [end]])
        for start in range(0, max(1, len(whole) - 1 - T_max + half), half):
            # What the window before has predicted is not predicted again.
            windows.append((number, whole[start : start + T_max + 1], T_max - half if start else 0))
    windows.sort(key=lambda window: len(window[1]))
    while windows:
        n = max(1, at_once // len(windows[-1][1]))
        some, windows = windows[-n:], windows[:-n]
        longest = len(some[-1][1]) - 1
        ids, wanted = np.zeros((len(some), longest), np.int64), np.full((len(some), longest), _UNREAD)
        for row, (_, part, skipped) in enumerate(some):
            ids[row, : len(part) - 1] = part[:-1]
            wanted[row, skipped : len(part) - 1] = part[skipped + 1 :]
        logits = network(torch.from_numpy(ids).to(device)).float().flatten(0, 1)
        targets = torch.from_numpy(wanted).to(device).flatten()
        losses = cross_entropy(logits, targets, ignore_index=_UNREAD, reduction="none")
        totals = losses.unflatten(0, ids.shape).double().sum(dim=1).cpu().numpy()
        np.add.at(sums, [number for number, _, _ in some], totals)
    return sums, np.array([len(text) + 1 for text in texts], dtype=np.int64)


def bfloat16_on_gpu(device: str) -> torch.autocast:
    """Bfloat16 products on a GPU; on a CPU nothing is changed."""
    return torch.autocast(torch.device(device).type, torch.bfloat16, enabled=device.startswith("cuda"))


@contextmanager
def _dropping(network: Gpt2Network, share: float) -> Iterator[None]:
    """Inside this context there is dropout behind both parts of every layer, in training only."""

    def drop(module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        return dropout(output, share, module.training)

    parts = [part for layer in network.layers for part in (layer.W_o, layer.W_2)]
    handles = [part.register_forward_hook(drop) for part in parts if isinstance(part, nn.Linear)]
    try:
        network.train()
        yield
    finally:
        network.eval()
        for handle in handles:
            handle.remove()
