"""Classifiers trained with a loss for better attention, and what their attention can then be used for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch

import heedful
from heedful.datasets import Example
from heedful.document import Document
from heedful.models.classic.classifier import Classic
from heedful.models.classic.network import ClassicConfig, initial_classic
from heedful.models.fitting.batch import BatchLoss, run_batch
from heedful.models.fitting.better_attention import conicity, entropy, leak, marked_tokens, missed_rationale, penalised
from heedful.models.fitting.fit import FitRecipe, Fitting, accuracy_of
from heedful.models.network import Config, Network
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from heedful.models.vocabulary import Vocabulary

Trainee = Classic | SingleLayer
_PROBES = {
    "τ attention": ("agreement", "Kendall's τ of attention and leave-one-out, the word replaced"),
    "τ gradient": ("agreement", "Kendall's τ of gradient × input and leave-one-out, the word replaced"),
    "shuffled": ("permuted", "attention shuffled in the last layer"),
    "flips": ("erasure", "Share of decisions that flip without the largest weight"),
    "for": ("sign-and-value", "words with most attention that are for the decision"),
}
"""Findings of probes by their name in the table: the first of a probe that says these words."""
_METRICS = ("auprc", "comprehensiveness", "sufficiency")
_AT_ONCE, _WORD_SCALE = 32, 0.1


@final
@dataclass(frozen=True)
class LabelledSplits:
    """Texts to train on, to choose the best epoch with, and to test; some with the words that people marked."""

    name: str
    classes: tuple[str, ...]
    train: Sequence[Example]
    validation: Sequence[Example]
    test: Sequence[Example]


def untrained(config: ClassicConfig | Config, vocabulary: Vocabulary, classes: tuple[str, ...], seed: int) -> Trainee:
    """A model at the start of its training."""
    n_words = len(vocabulary)
    if isinstance(config, ClassicConfig):
        return Classic(initial_classic(config, n_words, seed), vocabulary, classes)
    weights = initial_weights(config, n_words, seed)
    # The vectors of rare words hardly change, so their initial values are noise.
    weights["W_e"] *= _WORD_SCALE
    return SingleLayer(Network(config, weights), vocabulary, classes)


def train_with_losses(model: Trainee, splits: LabelledSplits, recipe: FitRecipe, weights: Mapping[str, float]) -> None:
    """Trains with the losses of these weights; the weights of the epoch with the best validation accuracy stay."""
    documents, labels = _read(model, splits.train)
    loss = penalised(weights, documents, splits.train)
    Fitting(model, documents, labels, recipe, loss, held_out=_read(model, splits.validation)).run()
    model.network.eval()


def measure_attention(model: Trainee, splits: LabelledSplits, n_probed: int, seed: int) -> dict[str, float]:
    """Accuracy and losses on all test texts; metrics of `trust` and findings of probes on `n_probed` of them."""
    documents, labels = _read(model, splits.test)
    marked = [*map(marked_tokens, documents, splits.test)]
    row = {"accuracy": accuracy_of(model, documents, labels), "attention entropy": mean_loss(model, documents, entropy)}
    some = [place for place, own in enumerate(marked) if own is not None]
    missed = missed_rationale([marked[place] for place in some])
    row["missed rationale"] = mean_loss(model, [documents[place] for place in some], missed)
    row["marked"] = _on_marked(model, [documents[place] for place in some], [marked[place] for place in some])
    if isinstance(model, Classic):
        row |= {"conicity": mean_loss(model, documents, conicity), "leak": mean_loss(model, documents, leak)}
    return row | trusted(model, splits, n_probed, seed) | probed(model, splits, n_probed, seed)


@torch.no_grad()
def mean_loss(model: Trainee, documents: Sequence[Document], loss: BatchLoss) -> float:
    """The mean of a loss over documents."""
    total = 0.0
    for start in range(0, len(documents), _AT_ONCE):
        rows = torch.arange(start, min(start + _AT_ONCE, len(documents)))
        batch = run_batch(model, rows, documents[start : start + _AT_ONCE], torch.zeros_like(rows), loss)
        total += float(loss(batch)) * len(rows)
    return total / len(documents)


def _on_marked(model: Trainee, documents: Sequence[Document], marked: Sequence[np.ndarray | None]) -> float:
    """The share of attention on words that people marked, mean over heads and texts."""
    shares = []
    for document, own in zip(documents, marked, strict=True):
        alpha = model.attention([document])[0, -1].mean(axis=0)
        shares.append(float(alpha[: len(document.ids)][own].sum()))
    return float(np.mean(shares))


def trusted(model: Trainee, splits: LabelledSplits, n: int, seed: int) -> dict[str, float]:
    """Plausibility and faithfulness of the attention weights as scores, beside random scores, by `heedful.trust`."""
    report = heedful.trust(
        model, list(splits.test), ["attention-mean"], _METRICS, n, scale="probability", seed=seed, progress=None
    )
    means = dict(zip(report.methods, report.means.tolist(), strict=True))
    row = {}
    for place, name in enumerate(report.metrics):
        row[name] = means["attention-mean"][place]
        row[f"{name}, random"] = means["random"][place]
    return row


def probed(model: Trainee, splits: LabelledSplits, n: int, seed: int) -> dict[str, float]:
    """The chosen findings of `heedful.probe`, and the null of those that have one."""
    tests = list(dict.fromkeys(name for name, _ in _PROBES.values()))
    report, row = heedful.probe(model, list(splits.test), tests, n, seed=seed, progress=None), {}
    for short, (name, words) in _PROBES.items():
        result = report[name].result
        if result is not None and result.findings:
            finding = next(finding for finding in result.findings if words in finding.what)
            row[short] = finding.value.value
            row |= {} if finding.null is None else {f"{short}, null": finding.null.value}
    return row


def _read(model: Trainee, examples: Sequence[Example]) -> tuple[list[Document], list[int]]:
    return [model.encode(example.text) for example in examples], [example.label for example in examples]
