"""Masked-language pre-training, fine-tuning on reviews and phrases together, and the choice among seeds."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, embedding, gelu

from heedful.models.encoder.network import EncoderConfig, EncoderNetwork
from heedful.models.encoder.word_pieces import MASK_ID, PAD_ID, SPECIAL_PIECES, START_ID
from studies.families.training import half_precision, say
from studies.reviews.corpus import NEUTRAL, Texts


@final
@dataclass(frozen=True)
class Settings:
    """The model and how to train it. Pre-training takes `n_steps`, or as many as fit into `seconds`."""

    model: EncoderConfig = field(default=EncoderConfig())
    n_pieces: int = 12_000
    n_held: int = 2_000
    n_steps: int = 9_000
    seconds: float | None = None
    tokens_a_step: int = 256 * 320
    masked: float = 0.25
    pretraining_rate: float = 1.2e-3
    weight_decay: float = 0.02
    seeds: tuple[int, ...] = (0, 1, 2)
    n_epochs: int = 3
    reviews_a_step: int = 32
    phrases_a_step: int = 80
    empty_a_step: int = 4
    rate: float = 2e-4
    word_dropout: float = 0.08
    smoothing: float = 0.05
    dropout: float = 0.1
    seed: int = 0
    device: str = "cpu"


@final
class Guess(nn.Module):
    """The head of the pre-training: scores of all pieces at masked places, by the table of word vectors."""

    def __init__(self, network: EncoderNetwork) -> None:
        super().__init__()
        d_e = network.config.d_e
        self.network, self.map, self.norm = network, nn.Linear(d_e, d_e), nn.LayerNorm(d_e)
        self.bias = nn.Parameter(torch.zeros(len(network.W_e)))

    def forward(self, ids: Int[Tensor, "batch token"], gone: Tensor) -> Float[Tensor, "_ piece"]:
        states = self.network.states(embedding(ids, self.network.W_e), ids != PAD_ID)[gone]
        return self.norm(gelu(self.map(states))) @ self.network.W_e.T + self.bias


def pretrain(network: EncoderNetwork, corpus: Mapping[str, Texts], settings: Settings) -> dict[str, Any]:
    """Masked-language pre-training on all training texts, labels unused; random parts of long reviews take turns."""
    torch.manual_seed(settings.seed)
    texts = _together([corpus[name] for name in ("unsup", "train", "sentences")])
    guess = Guess(network).to(settings.device).train()
    optimiser = _adamw(guess, settings.pretraining_rate, settings)
    n_steps, started, warm, losses, step = settings.n_steps, time.perf_counter(), 0.0, [], 0
    T_max = network.config.T_max
    for step, which in enumerate(_batches(texts, T_max, settings)):
        if step == n_steps:
            break
        if settings.seconds and step == 60:
            each = (time.perf_counter() - started - warm) / 40
            n_steps = int(settings.seconds / each)
            say(f"{1000 * each:.1f} ms a step, so {n_steps} steps")
        _set_rate(optimiser, settings.pretraining_rate, step, n_steps)
        ids = texts.rows(which, T_max, torch.rand(len(which), device=settings.device) < 0.5)
        gone = (torch.rand(ids.shape, device=ids.device) < settings.masked) & (ids >= len(SPECIAL_PIECES))
        with half_precision(ids.device):
            scores = guess(torch.where(gone, MASK_ID, ids), gone)
        loss = cross_entropy(scores.float(), ids[gone])
        _step(guess, optimiser, loss)
        if step % 500 == 0 or step == n_steps - 1:
            losses.append((step, round(loss.item(), 4)))
            say(f"pre-training: step {step}, loss {loss.item():.4f}, {time.perf_counter() - started:.0f} s")
        if step == 19:
            _ = loss.item()
            warm = time.perf_counter() - started
    return {"n_steps": min(step, n_steps), "losses": losses, "seconds": round(time.perf_counter() - started, 1)}


def finetune(network: EncoderNetwork, corpus: Mapping[str, Texts], settings: Settings, seed: int) -> None:
    """Joint fine-tuning on reviews and phrases; a text of which no word is left has the target ½."""
    torch.manual_seed(1000 + seed)
    reviews, phrases, T_max = corpus["train"], corpus["phrases"], network.config.T_max
    n_steps = settings.n_epochs * len(reviews) // settings.reviews_a_step
    rated, neutral = ((phrases.labels == NEUTRAL) == flag for flag in (False, True))
    pools = [part.nonzero()[:, 0] for part in (rated, neutral)]
    n_neutral = settings.phrases_a_step // 5
    orders = [
        _endless(torch.arange(len(reviews), device=settings.device), settings.reviews_a_step),
        _endless(pools[0], settings.phrases_a_step - n_neutral),
        _endless(pools[1], n_neutral),
    ]
    optimiser = _adamw(network, settings.rate, settings)
    handles = _with_dropout(network.train(), settings.dropout)
    started = time.perf_counter()
    for step in range(n_steps):
        _set_rate(optimiser, settings.rate, step, n_steps)
        long, *short = (next(order) for order in orders)
        which = torch.cat(short)
        empty = torch.full((settings.empty_a_step, 1), START_ID, device=settings.device)
        batches = [
            (reviews.rows(long, T_max), reviews.labels[long]),
            (phrases.rows(which, T_max), phrases.labels[which]),
            (empty, torch.full_like(empty[:, 0], NEUTRAL)),
        ]
        losses = [_loss(network, ids, labels, settings) for ids, labels in batches]
        _step(network, optimiser, losses[0] + losses[1] + 0.1 * losses[2])
        if step % 400 == 0:
            shown = ", ".join(f"{loss.item():.3f}" for loss in losses)
            say(f"seed {seed}: step {step} of {n_steps}, losses {shown}, {time.perf_counter() - started:.0f} s")
    for handle in handles:
        handle.remove()
    network.eval()


def _loss(network: EncoderNetwork, ids: Tensor, labels: Tensor, settings: Settings) -> Tensor:
    """Cross-entropy after word dropout; of one text in eight any share of the words is masked, of some all."""
    chance = torch.rand(len(ids), 2, device=ids.device)
    some = torch.where(chance[:, 0] < 0.02, 1.0, chance[:, 1])
    share = torch.where(chance[:, 0] < 0.125, some, settings.word_dropout)
    is_word = ids >= len(SPECIAL_PIECES)
    ids = torch.where(is_word & (torch.rand(ids.shape, device=ids.device) < share[:, None]), MASK_ID, ids)
    positive = settings.smoothing / 2 + (1 - settings.smoothing) * labels
    positive = torch.where((labels == NEUTRAL) | ~(ids >= len(SPECIAL_PIECES)).any(dim=1), 0.5, positive)
    with half_precision(ids.device):
        logits = network(embedding(ids, network.W_e), ids != PAD_ID)
    return cross_entropy(logits.float(), torch.stack([1 - positive, positive], dim=1))


@torch.no_grad()
def differences(network: EncoderNetwork, texts: Texts, at_once: int = 500) -> Float[np.ndarray, "text"]:
    """Logit of positive minus logit of negative, in single precision."""
    order, found = texts.lengths.argsort(), np.zeros(len(texts))
    for which in order.split(at_once):
        ids = texts.rows(which, network.config.T_max)
        logits = network(embedding(ids, network.W_e), ids != PAD_ID)
        found[which.cpu().numpy()] = (logits[:, 1] - logits[:, 0]).double().cpu().numpy()
    return found


def accuracy(network: EncoderNetwork, texts: Texts) -> float:
    """The share of texts with the right sign of the difference."""
    return float(((differences(network, texts) > 0) == texts.labels.cpu().numpy()).mean())


def mean_of(weights: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several networks, weight by weight (Wortsman et al., 2022, arXiv:2203.05482)."""
    return {name: torch.stack([some[name] for some in weights]).mean(dim=0) for name in weights[0]}


def _together(parts: list[Texts]) -> Texts:
    return Texts(*(torch.cat([getattr(part, name) for part in parts]) for name in ("flat", "lengths", "labels")))


def _batches(texts: Texts, T_max: int, settings: Settings) -> Iterator[Int[Tensor, "batch"]]:
    """Batches of texts of similar length without end, each of about the same number of tokens."""
    lengths = (texts.lengths.cpu().numpy() + 1).clip(max=T_max)
    for epoch in range(1_000_000):
        rng = np.random.default_rng((settings.seed, epoch))
        order = rng.permutation(len(lengths))
        # Sorted in portions only, so that batches of an epoch differ from those of another.
        portions = [some[np.argsort(lengths[some], kind="stable")] for some in np.array_split(order, 8)]
        batches, batch = [], []
        for index in np.concatenate(portions):
            if batch and (len(batch) + 1) * max(lengths[index], lengths[batch[0]]) > settings.tokens_a_step:
                batches.append(batch)
                batch = []
            batch.append(index)
        for number in rng.permutation(len(batches)):
            yield torch.from_numpy(np.array(batches[number])).to(settings.device)


def _endless(numbers: Int[Tensor, "text"], at_once: int) -> Iterator[Int[Tensor, "batch"]]:
    while True:
        order = numbers[torch.randperm(len(numbers), device=numbers.device)]
        yield from (some for some in order.split(at_once) if len(some) == at_once or len(order) < at_once)


def _adamw(module: nn.Module, rate: float, settings: Settings) -> torch.optim.AdamW:
    groups = [
        {"params": [w for w in module.parameters() if w.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [w for w in module.parameters() if w.dim() == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=settings.device == "cuda")


def _set_rate(optimiser: torch.optim.Optimizer, rate: float, step: int, n_steps: int) -> None:
    """Up over the first steps, then down to zero in a line."""
    warmup = max(1, min(400, n_steps // 16))
    for group in optimiser.param_groups:
        group["lr"] = rate * min((step + 1) / warmup, (n_steps - step) / max(1, n_steps - warmup))


def _step(module: nn.Module, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    optimiser.step()


def _with_dropout(network: EncoderNetwork, share: float) -> list[Any]:
    """Dropout behind both sub-layers of every layer, in training only."""

    def hook(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        return dropout(output, share)

    parts: list[Any] = [part for layer in network.layers for part in (layer.o_proj, layer.down)]
    return [part.register_forward_hook(hook) for part in parts]
