"""How far each token of an output depends on a context, compared with contexts that say nothing about it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, final, get_args

import numpy as np
import torch
from jaxtyping import Float, Int

from heedful.document import Document
from heedful.errors import BadInput, unknown_name
from heedful.generation.continuation import Continuation
from heedful.models.attention_hook import still
from heedful.models.language import LanguageModel
from heedful.progress import Progress

Null = Literal["foreign", "shuffled"]
"""What null contexts are made of: sentences about other things, or the words of the context in random order."""
_LEAST_DEVIATION = 0.1
"""In nats: a token that no context changes by more than this is not called reliant for a smaller change."""
_ROUNDING = 1e-9
"""Rounding must not make equal contexts differ."""
_SENTENCE_ENDS = re.compile(r"(?<=[.!?。！？])\s+|\n+")


@final
@dataclass(frozen=True, eq=False)
class Dependence:
    """What the context changes at every token of an output, and how much null contexts do."""

    kl: Float[np.ndarray, "token"]
    """KL(p with the context ‖ p without) of the distributions that the token was written from."""
    log_p: Float[np.ndarray, "token"]
    """The log-probability of the token with the context."""
    log_p_without: Float[np.ndarray, "token"]
    """Its log-probability without the context."""
    instead: Int[np.ndarray, "token"]
    """The other token that is most likely without the context."""
    gains: Float[np.ndarray, "context token"]
    """Log p of the token less log p without context, for the context, in the first row, and for the null contexts."""
    own_gains: Float[np.ndarray, "context token"]
    """The same, but for each null context the gain of the token that it makes most likely there, if that is larger."""


def dependence(model: LanguageModel, texts: Sequence[Document], bare: Document, watch: Progress) -> Dependence:
    """The dependence of an output on its context, by teacher forcing: one pass for each text.

    `texts` are the output behind context and prompt, and behind null contexts and prompt; `bare` behind the prompt.
    """
    without = _log_p(model, bare)
    ids = torch.from_numpy(bare.ids[len(bare.ids) - len(without) :])[:, None]
    log_p_without, kl = without.gather(1, ids)[:, 0].numpy(), np.zeros(len(ids))
    gains, own_gains = [], []
    for number, text in enumerate(texts):
        given = _log_p(model, text)
        if not number:
            kl = (given.exp() * (given - without)).sum(dim=1).clamp(min=0.0).numpy()
        own = given.argmax(dim=1, keepdim=True) if number else ids
        gain, own_gain = ((given - without).gather(1, tokens)[:, 0].numpy() for tokens in (ids, own))
        gains.append(gain)
        own_gains.append(np.maximum(gain, own_gain))
        watch(number + 1, len(texts))
    if not np.isfinite([kl, *gains, *own_gains]).all():
        raise BadInput(
            "The model's probabilities with or without the context are not finite numbers (NaN or infinity); "
            "load it in a higher precision, or check its weights."
        )
    instead = without.scatter(1, ids, -np.inf).argmax(dim=1).numpy()
    return Dependence(kl, log_p_without + gains[0], log_p_without, instead, np.stack(gains), np.stack(own_gains))


@torch.no_grad()
def _log_p(model: LanguageModel, text: Document) -> Float[torch.Tensor, "token vocabulary"]:
    """The log-probabilities of all tokens at every position of the output."""
    with still(model.network):
        return Continuation(model).token_logits(text)[0].double().cpu().log_softmax(dim=-1)


def token_p_values(statistic: Float[np.ndarray, "context token"]) -> Float[np.ndarray, "token"]:
    """The p-value of each token by itself: the share of contexts, the first among them, with at least its statistic."""
    return (statistic >= statistic[0] - _ROUNDING).mean(axis=0)


def output_p_values(statistic: Float[np.ndarray, "context token"]) -> Float[np.ndarray, "token"]:
    """P-values corrected for the number of tokens, by the maximum over them (Westfall & Young, 1993, Section 2.3).

    The statistic is standardised token by token over all contexts. The p-value of a token is the share of contexts
    whose largest value over all tokens is at least the token's in the first context. If the first context is drawn like
    the others, any order of them is as likely, so the probability that any token has a p-value up to alpha is at most
    alpha, for any dependence between tokens and any distribution.
    """
    centred = statistic - statistic.mean(axis=0)
    z = centred / np.maximum(statistic.std(axis=0), _LEAST_DEVIATION)
    return (z.max(axis=1)[:, None] >= z[0] - _ROUNDING).mean(axis=0)


def null_contexts(
    passages: Sequence[str], null: str, foreign: Sequence[str] | None, n: int, rng: np.random.Generator
) -> list[list[str]]:
    """n contexts with as many passages as the given one, and nearly as many words in each.

    "foreign": sentences drawn without replacement from `foreign`, or from 60 bundled ones about other things.
    "shuffled": the words of the context in random order, across passages.
    """
    if null not in get_args(Null):
        raise unknown_name("null", null, get_args(Null))
    lengths = [len(passage.split()) for passage in passages]
    if null == "shuffled":
        words = np.array(" ".join(passages).split(), dtype=object)
        ends = np.cumsum(lengths)[:-1]
        return [[" ".join(part) for part in np.split(rng.permutation(words), ends)] for _ in range(n)]
    sentences = _bundled() if foreign is None else tuple(s for text in foreign for s in _sentences(text))
    if not sentences:
        raise BadInput("The foreign texts contain no sentence; give some text, or leave them out.")
    return [_drawn(lengths, sentences, rng) for _ in range(n)]


def _drawn(lengths: Sequence[int], sentences: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Passages of about these numbers of words, from whole sentences; no sentence is repeated before all were used."""
    queue: list[int] = []
    passages = []
    for length in lengths:
        words: list[str] = []
        while True:
            queue = queue or rng.permutation(len(sentences)).tolist()
            more = sentences[queue[-1]].split()
            if words and len(words) + len(more) / 2 > length:
                break
            queue.pop()
            # A sentence that is longer than the whole passage is cut.
            words += more if words else more[: max(1, length)]
        passages.append(" ".join(words))
    return passages


def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _SENTENCE_ENDS.split(text) if part.strip())


@cache
def _bundled() -> tuple[str, ...]:
    return tuple((files("heedful.generation") / "foreign.txt").read_text(encoding="utf-8").splitlines())
