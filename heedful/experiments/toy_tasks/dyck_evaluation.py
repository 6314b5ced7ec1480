"""Evaluation of networks on bracket strings: their accuracy, and what their second layer attends to."""

from collections.abc import Mapping
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.experiments.claim import Cell, finite_or_none
from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.experiments.toy_tasks.dyck_training import DyckRun, DyckSettings

STACK_LIKE = 0.5
"""The threshold for stack-like attention on the last open bracket; the sources give no number."""

RIGHT = 0.99

_AT_ONCE = 100
"""The number of strings in a batch."""


def weights_of(settings: DyckSettings, run: DyckRun, index: int, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Everything that one run's network needs."""
    own = {name: tensor[index] for name, tensor in trained.items()}
    return own | {name: tensor.to(own["tokens"].device) for name, tensor in settings.fixed(run).items()}


@final
class StringScores(NamedTuple):
    """The results of one network over all strings."""

    accuracy: float
    """The share of closing brackets whose type is predicted correctly, given that the next token is one."""
    on_stack: float
    """The mean weight of its second layer on the last open bracket, over the rows with an open bracket.
    It is 1 minus the total variation distance to the stack-like pattern, which has all its weight there.
    """


@torch.no_grad()
def evaluate_strings(
    settings: DyckSettings, weights: Mapping[str, Tensor], tokens: Int[np.ndarray, "string place"]
) -> StringScores:
    """The accuracy of the network, and its attention to the last open bracket."""
    k, device = settings.language.n_types, weights["tokens"].device
    n_right = n_closing = n_open = 0
    weight = 0.0
    for start in range(0, len(tokens), _AT_ONCE):
        some = tokens[start : start + _AT_ONCE]
        ids, boxes = torch.tensor(some, device=device), torch.tensor(boxes_of(settings.language, some), device=device)
        read = settings.network.run(weights, ids)
        closing = (ids >= k) & (ids < 2 * k)
        named = k + read.logits[:, :-1, k : 2 * k].argmax(dim=-1)
        n_right += int((closing & (named == ids)).sum())
        n_closing += int(closing.sum())
        at_box = read.attention.gather(-1, boxes[..., None])[..., 0].double()
        weight += float(at_box[boxes > 0].sum())
        n_open += int((boxes > 0).sum())
    return StringScores(n_right / n_closing, weight / n_open)


def boxes_of(language: Dyck, tokens: Int[np.ndarray, "string place"]) -> Int[np.ndarray, "string row"]:
    """For every row of attention the key of the last open bracket; 0, the start token, if none is open."""
    return np.pad(language.last_open(tokens), ((0, 0), (1, 0)), constant_values=-1) + 1


def uniform_on_stack(language: Dyck, tokens: Int[np.ndarray, "string place"]) -> float:
    """The weight of uniform attention on the last open bracket."""
    _, rows = np.nonzero(boxes_of(language, tokens))
    return float((1 / (rows + 1)).mean())


def opened_last(
    language: Dyck, tokens: Int[np.ndarray, "string place"]
) -> tuple[Bool[np.ndarray, "string place"], Bool[np.ndarray, "string place"]]:
    """Which closing brackets have the type of the last opening bracket, and which require a stack."""
    k, places = language.n_types, np.arange(tokens.shape[1])
    latest = np.maximum.accumulate(np.where(tokens < k, places, 0), axis=1)
    same = k + np.take_along_axis(tokens, latest, axis=1) == tokens
    closing = (tokens >= k) & (tokens < 2 * k)
    return closing & same, closing & ~same


@torch.no_grad()
def balance_violation(settings: DyckSettings, weights: Mapping[str, Tensor]) -> float:
    """How much the attention output depends on a balanced prefix, which does not affect the valid continuations.

    The mean distance between the second layer's pooled vectors after two prefixes of equal length, divided by the mean
    norm of the vectors, over the rows with an open bracket; 0 means no dependence. In the spirit of Wen et al.'s
    balance violation, which is defined for one layer on top of the minimal first layer.
    """
    first, second = settings.prefixed
    device = weights["tokens"].device
    one, other = (
        settings.network.run(weights, torch.tensor(tokens, device=device)).pooled for tokens in (first, second)
    )
    rows = torch.tensor(boxes_of(settings.language, first) > settings.n_before, device=device)
    a, b = one[rows].double(), other[rows].double()
    return float((a - b).norm(dim=-1).mean() / ((a.norm(dim=-1) + b.norm(dim=-1)) / 2).mean())


def evaluate_run(settings: DyckSettings, run: DyckRun, index: int, trained: Mapping[str, Tensor]) -> dict[str, Cell]:
    """One row of results."""
    weights = weights_of(settings, run, index, trained)
    near, far = (
        evaluate_strings(settings, weights, settings.held_out),
        evaluate_strings(settings, weights, settings.longer),
    )
    return {
        "variant": run.name,
        "seed": run.seed,
        "rate": run.rate,
        "accuracy": near.accuracy,
        "longer accuracy": far.accuracy,
        "on stack": finite_or_none(near.on_stack),
        "stack-like": near.on_stack > STACK_LIKE,
        "right": near.accuracy >= RIGHT,
        "balance violation": finite_or_none(balance_violation(settings, weights)),
    }


def describe_strings(settings: DyckSettings) -> list[dict[str, Cell]]:
    """Statistics of the strings, and the accuracy and attention that need no stack."""
    kinds = {"training": settings.training, "held out": settings.held_out, "longer": settings.longer}
    rows: list[dict[str, Cell]] = []
    for kind, tokens in kinds.items():
        lengths, (same, other) = settings.language.lengths(tokens), opened_last(settings.language, tokens)
        rows.append(
            {
                "strings": kind,
                "n": len(tokens),
                "shortest": int(lengths.min()),
                "longest": int(lengths.max()),
                "mean length": float(lengths.mean()),
                "accuracy of the type opened last": float(same.sum() / (same | other).sum()),
                "uniform attention on stack": uniform_on_stack(settings.language, tokens),
            }
        )
    return rows
