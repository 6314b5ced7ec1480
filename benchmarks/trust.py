"""What it costs to judge explanations, beside Quantus, on a 4-layer, 256-wide BERT and a sentence of 30 words.

    make bench-trust

Six metrics that both have, of explanations that are given. Quantus is asked as its documentation says, with one call a
metric; the BERT is put before it as a module of a presence vector, 1 for a word and 0, its baseline, for the mask token
in its place, so that both sides remove alike. Many explanations are one batch to it. CPU time of one thread; both sides
in turn, so that they meet the same machine, and the median over rounds.

Where ours is cheaper: masks go through the model in batches, and what was asked for one metric or one explanation is
asked for no other (`MaskValues`): leaving out each word serves two of the six metrics and all explanations, and all
explanations meet the same random sets. A text costs both sides the same once it is in a batch.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.perturbation import build
from heedful.explainers.explain import run_explainer
from heedful.explainers.random import Random
from heedful.metrics import Evaluation, Metric, measure
from heedful.metrics.compactness import Entropy, Gini
from heedful.metrics.infidelity import Infidelity
from heedful.metrics.monotonicity import LooCorrelation, Monotonicity
from heedful.metrics.removal import EvidenceFor
from heedful.models import Model
from heedful.models.question import MaskValues, ask
from heedful.perturb.document_values import DocumentValues

N_WORDS, N_EXPLANATIONS, N_ROUNDS = 30, 12, 3
CLASS = 1


class Presence(nn.Module):
    """The logits of a text with the mask token in the place of every word that is not present."""

    def __init__(self, network: nn.Module, ids: Tensor, mask: int) -> None:
        super().__init__()
        self.network, self.mask, self.n_read = network, mask, 0
        self.register_buffer("ids", ids)

    def forward(self, present: Tensor) -> Tensor:
        kept = nn.functional.pad(present.flatten(1) > 0.5, (1, 1), value=True)
        self.n_read += len(kept)
        return self.network(torch.where(kept, self.ids, self.mask)).logits


@dataclass(frozen=True)
class Side:
    """One of the two: what it does with so many explanations, and how many texts its last run read."""

    run: Callable[[int], list[list[float]]]
    n_read: Callable[[], int]


def ours(model: Model, text: str, scores: np.ndarray, metrics: Sequence[Metric]) -> Side:
    asked = ask(model, [text], CLASS)
    given = [replace(run_explainer(Random(), asked)[0], scores=row) for row in scores]
    cache = [MaskValues()]

    def run(n_explanations: int) -> list[list[float]]:
        cache[0] = MaskValues()
        question = replace(asked, mask_values=cache[0])
        # Whoever explained the text knows what the model says of it.
        question.learn(torch.from_numpy(asked.logits))
        values = DocumentValues(question, "word")
        evaluations = [Evaluation(question, explanation, values) for explanation in given[:n_explanations]]
        return [[measure(metric, evaluation) for evaluation in evaluations] for metric in metrics]

    return Side(run, lambda: cache[0].n_evaluated)


def theirs(presence: Presence, scores: np.ndarray, metrics: Sequence[Any]) -> Side:
    def run(n_explanations: int) -> list[list[float]]:
        presence.n_read = 0
        x = np.ones((n_explanations, 1, N_WORDS))
        classes = np.full(n_explanations, CLASS)
        values = []
        for metric in metrics:
            a = scores[:n_explanations, None].copy()
            values.append(metric(model=presence, x_batch=x, y_batch=classes, a_batch=a, softmax=False, device="cpu"))
        return values

    return Side(run, lambda: presence.n_read)


def quantus_metrics(equal: bool) -> list[Any]:
    """Six of Quantus: with as many perturbations as ours have, or with its own numbers of them."""
    import quantus

    gone: dict[str, Any] = {"perturb_baseline": 0.0, "disable_warnings": True}
    samples, runs, step = ({"nr_samples": 1}, {"nr_runs": 50}, {"features_in_step": 3}) if equal else ({}, {}, {})
    return [
        quantus.Sparseness(disable_warnings=True),
        quantus.Complexity(disable_warnings=True),
        quantus.MonotonicityCorrelation(**gone, **samples),
        quantus.FaithfulnessEstimate(similarity_func=quantus.correlation_spearman, **gone),
        quantus.PixelFlipping(**gone, **step),
        quantus.FaithfulnessCorrelation(subset_size=N_WORDS // 2, return_aggregate=False, **gone, **runs),
    ]


def cost(sides: Sequence[Side], n_explanations: int, n_rounds: int) -> list[float]:
    """The median CPU seconds of each side, asked in turn."""
    seconds = [[] for _ in sides]
    for _ in range(n_rounds):
        for side, spent in zip(sides, seconds, strict=True):
            start = process_time()
            side.run(n_explanations)
            spent.append(process_time() - start)
    return [float(np.median(spent)) for spent in seconds]


def beside_quantus(n_rounds: int) -> None:
    """Both sides' CPU time of one metric on one explanation, and the ratio: metric by metric, then all six together."""
    model, network, tokenizer, long_text = build()
    text = " ".join(long_text.split()[:N_WORDS])
    presence = Presence(network, tokenizer(text, return_tensors="pt")["input_ids"], tokenizer.mask_token_id).eval()
    scores = np.random.default_rng(0).standard_normal((N_EXPLANATIONS, N_WORDS))
    metrics = [Gini(), Entropy(), Monotonicity(), LooCorrelation(), EvidenceFor(), Infidelity()]
    same, usual = quantus_metrics(True), quantus_metrics(False)
    mine, equal = ours(model, text, scores, metrics), theirs(presence, scores, same)
    print(f"Quantus {version('quantus')}, {len(metrics)} metrics, a sentence of {N_WORDS} words")
    check(mine.run(3), equal.run(3), float(model([text])[0, CLASS]))
    print("CPU time of one metric on one explanation, and the texts that were read for all of the row\n")
    print(f"{'':64}{'theirs':>10}{'ours':>10}{'ratio':>8}{'texts read':>16}")

    def row(name: str, other: Side, own: Side, n_explanations: int, n_metrics: int, n_rounds: int = n_rounds) -> None:
        their_seconds, our_seconds = cost((other, own), n_explanations, n_rounds)
        each = n_explanations * n_metrics / 1e3
        print(
            f"{name:64}{their_seconds / each:7.2f} ms{our_seconds / each:7.2f} ms"
            f"{their_seconds / our_seconds:7.1f}×{other.n_read():>9,} /{own.n_read():>5,}",
            flush=True,
        )

    for metric, peer in zip(metrics, same, strict=True):
        own = ours(model, text, scores, [metric])
        row(f"{metric.name} and {type(peer).__name__}", theirs(presence, scores, [peer]), own, 1, 1)
    row("six metrics, 1 explanation", equal, mine, 1, 6)
    row(f"six metrics, {N_EXPLANATIONS} explanations", equal, mine, N_EXPLANATIONS, 6)
    own_numbers = theirs(presence, scores, usual)
    row("six metrics, 1 explanation, perturbations as many as is usual", own_numbers, mine, 1, 6, 1)


def check(mine: list[list[float]], other: list[list[Any]], whole: float) -> None:
    """That both sides measure the same: the first five of the six."""
    curves = [np.array([whole, *curve]) for curve in other[4]]
    other[4] = [whole - float((curve[1:] + curve[:-1]).mean() / 2) for curve in curves]
    apart = max(float(np.abs(np.array(mine[place]) - np.array(other[place])).max()) for place in range(5))
    print(f"the same values but for {apart:.1e}, infidelity aside, which theirs has as a correlation over other sets")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=N_ROUNDS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    beside_quantus(given.rounds)


if __name__ == "__main__":
    main()
