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
    """The model and how to train it. Pre-training takes `n_steps`, or as many as fit into `seconds`.

    No further seed is begun that would end after `limit` seconds of the whole run.
    """

    model: EncoderConfig = field(default=EncoderConfig())
    n_pieces: int = 12_000
    n_held: int = 2_000
    n_steps: int = 5_000
    seconds: float | None = None
    limit: float | None = None
    rows_a_step: int = 384
    masked: float = 0.25
    pretraining_rate: float = 1.5e-3
    weight_decay: float = 0.02
    seeds: tuple[int, ...] = (0, 1, 2)
    n_epochs: int = 3
    reviews_a_step: int = 64
    phrases_a_step: int = 160
    verdicts_a_step: int = 64
    rate: float = 3e-4
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

    def forward(self, ids: Int[Tensor, "batch token"], places: Int[Tensor, "batch place"]) -> Float[Tensor, "_ piece"]:
        states = self.network.states(embedding(ids, self.network.W_e), None)
        states = states.gather(1, places[..., None].expand(-1, -1, states.shape[-1])).flatten(0, 1)
        return self.norm(gelu(self.map(states))) @ self.network.W_e.T + self.bias


def pretrain(network: EncoderNetwork, corpus: Mapping[str, Texts], settings: Settings) -> dict[str, Any]:
    """Masked-language pre-training on windows of all training texts, labels unused; every fourth step on short ones."""
    torch.manual_seed(settings.seed)
    parts = [corpus["unsup"], corpus["train"], *[corpus["sentences"]] * 3]
    stream, T_max, losses = torch.cat([part.stream() for part in parts]), network.config.T_max, []
    guess = Guess(network).to(settings.device).train()
    optimiser = _adamw(guess, settings.pretraining_rate, settings)
    started, step, progress = time.perf_counter(), 0, 0.0
    while progress < 1:
        _set_rate(optimiser, settings.pretraining_rate, progress)
        width = T_max // 5 if step % 4 == 3 else T_max
        ids = _windows(stream, settings.rows_a_step * T_max // width, width)
        # A fixed number of places, so that the CPU need not wait for the GPU.
        order = torch.rand(ids.shape, device=ids.device) - 2 * (ids < len(SPECIAL_PIECES))
        places = order.topk(int(settings.masked * width), dim=1).indices
        with half_precision(ids.device):
            scores = guess(ids.scatter(1, places, MASK_ID), places)
        loss = cross_entropy(scores.float(), ids.gather(1, places).flatten())
        _step(guess, optimiser, loss)
        if step % 500 == 0:
            losses.append((step, round(loss.item(), 4)))
            say(f"pre-training: step {step}, loss {loss.item():.4f}, {time.perf_counter() - started:.0f} s")
        step += 1
        if settings.seconds is None:
            progress = step / settings.n_steps
        elif step % 20 == 0:
            _ = loss.item()
            progress = (time.perf_counter() - started) / settings.seconds
    say(f"pre-training: {step} steps, loss {loss.item():.4f}")
    return {"n_steps": step, "losses": losses, "last": loss.item(), "seconds": round(time.perf_counter() - started, 1)}


def _windows(stream: Int[Tensor, "_"], n: int, width: int) -> Int[Tensor, "batch token"]:
    """Random parts of the stream, each after [CLS]."""
    start = torch.randint(len(stream) - width, (n, 1), device=stream.device)
    parts = stream[start + torch.arange(width - 1, device=stream.device)].long()
    return torch.cat([torch.full_like(start, START_ID), parts], dim=1)


def finetune(network: EncoderNetwork, corpus: Mapping[str, Texts], settings: Settings, seed: int) -> None:
    """Joint fine-tuning on reviews, phrases and verdicts; a text of which no word is left has the target ½."""
    torch.manual_seed(1000 + seed)
    T_max, n_steps = network.config.T_max, settings.n_epochs * len(corpus["train"]) // settings.reviews_a_step
    is_neutral, n_neutral = corpus["phrases"].labels == NEUTRAL, settings.phrases_a_step // 5
    pools = [
        ("train", torch.ones_like(corpus["train"].labels), settings.reviews_a_step),
        ("verdicts", torch.ones_like(corpus["verdicts"].labels), settings.verdicts_a_step),
        ("phrases", ~is_neutral, settings.phrases_a_step - n_neutral),
        ("phrases", is_neutral, n_neutral),
    ]
    orders = [(corpus[name], _endless(which.nonzero()[:, 0], size)) for name, which, size in pools]
    optimiser = _adamw(network, settings.rate, settings)
    handles = _with_dropout(network.train(), settings.dropout)
    # Half precision would need more, smaller kernels: it is slower here.
    torch.set_float32_matmul_precision("high")
    started, short_width = time.perf_counter(), min(80, T_max)
    for step in range(n_steps):
        _set_rate(optimiser, settings.rate, step / n_steps)
        drawn = [(texts, next(order)) for texts, order in orders]
        widths = [T_max, *[short_width] * 3]
        rows = [texts.rows(which, width, width) for (texts, which), width in zip(drawn, widths, strict=True)]
        labels = [texts.labels[which] for texts, which in drawn]
        # Some texts are empty.
        rows[-1][: len(rows[-1]) // 8, 1:] = PAD_ID
        batches = [(rows[0], labels[0]), (torch.cat(rows[1:]), torch.cat(labels[1:]))]
        losses = [_loss(network, *batch, settings) for batch in batches]
        _step(network, optimiser, losses[0] + losses[1])
        if step % 400 == 0:
            shown = ", ".join(f"{loss.item():.3f}" for loss in losses)
            say(f"seed {seed}: step {step} of {n_steps}, losses {shown}, {time.perf_counter() - started:.0f} s")
    torch.set_float32_matmul_precision("highest")
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
    seen = ids != PAD_ID
    logits = network.read_out(network.states(embedding(ids, network.W_e), seen[:, None, None, :]), seen)
    return cross_entropy(logits, torch.stack([1 - positive, positive], dim=1))


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


def _set_rate(optimiser: torch.optim.Optimizer, rate: float, progress: float) -> None:
    """Up over the first twentieth, then down to zero in a line."""
    for group in optimiser.param_groups:
        group["lr"] = rate * min((progress + 1e-3) / 0.05, max(0.0, 1 - progress) / 0.95)


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
