"""How far the trust report itself can be trusted, and what it costs. `make bench-verdicts`; needs HEEDFUL_DATA.

`chance`: where all methods are random numbers, how often is one recommended? `planted`: on models that can use no more
than ten known words, does the report, which is not told them, recommend a method that finds them? `cost`: a full report
on the paper's model and on a BERT of 4 layers, 256 wide, with weights nobody trained.
"""

import argparse
import resource
from collections import Counter
from collections.abc import Sequence
from time import perf_counter

import numpy as np
import torch

import heedful
from benchmarks.perturbation import bert_of
from heedful.datasets.imdb import Imdb
from heedful.explainers.random import Random
from heedful.models import Model

GOLD = ("awful", "bad", "best", "boring", "excellent", "great", "perfect", "terrible", "waste", "worst")
RANKING = ("deletion", "insertion", "comprehensiveness", "sufficiency", "evidence-against")
METRICS = (
    *RANKING,
    *("evidence-for", "infidelity", "monotonicity", "loo-correlation", "effective-complexity", "gini", "consistency"),
)
ON_PAPER = (
    *("attention-mean", "attention-max", "gradient-l1", "gradient-l2", "gradient-mean", "gradient-x-input", "lime"),
    *("lime-exact", "shapley-exact", "shapley-sampled", "leave-one-out", "integrated-gradients"),
)
ON_BERT = (
    *("attention-mean", "attention-last", "rollout", "value-norms", "gradient-l1", "gradient-l2", "gradient-x-input"),
    *("gradient-attention", "integrated-gradients", "lime", "shapley-sampled", "leave-one-out"),
)
ON_PLANTED = ("attention-mean", "gradient-l2", "gradient-x-input", "integrated-gradients", "lime", "leave-one-out")


def reviews() -> list[str]:
    return [example.text for example in Imdb().examples("test")]


def common_words(texts: Sequence[str], n: int) -> list[str]:
    counts = Counter(word for text in texts for word in text.lower().split() if word.isalpha())
    return [word for word, _ in counts.most_common(n)]


def chance(n_repetitions: int) -> None:
    """Eight sets of random numbers and the control, on new reviews every time."""
    model, texts, alarms = heedful.load("paper"), reviews(), Counter()
    for repetition in range(n_repetitions):
        methods = {f"chance {number}": Random(seed=1000 * repetition + number) for number in range(1, 9)}
        report = heedful.trust(model, texts, methods, RANKING, 30, seed=repetition)
        named = [verdict.use for verdict in report.verdicts if verdict.recommended is not None]
        alarms.update([*named, "any"] if named else ["none"])
    print(f"Where all is chance: 'no significant winner' in {alarms['none']} of {n_repetitions} repetitions.")


def planted(name: str, model: Model, n: int) -> None:
    """The recall of the methods that are recommended, when the known words are told and when not, beside the best."""
    texts = [text for text in reviews() if sum(word in text.lower().split() for word in GOLD) >= 2]
    metrics = [*RANKING, "gold-recall", "gold-precision"]
    report = heedful.trust(heedful.deaf(model, GOLD), texts, ON_PLANTED, metrics, n, gold=GOLD)
    column, (low, high) = report.metrics.index("gold-recall"), report.intervals
    recall = dict(zip(report.methods, report.means[:, column].tolist(), strict=True))
    best = int(np.nanargmax(report.means[:, column]))
    print(
        f"{name}: recall at 10 of {report.methods[best]}, the best, is {recall[report.methods[best]]:.3f} "
        f"[{low[best, column]:.3f}, {high[best, column]:.3f}], of random {recall['random']:.3f}."
    )
    for use, told in (("find the known words", "told the words"), ("rank words", "not told them")):
        verdict = report.verdict(use)
        chosen = recall[verdict.recommended or "random"]
        print(f"  {told}: {verdict.sentence} Recall {chosen:.3f}; within it: {chosen >= low[best, column]}.")


def cost(name: str, model: Model, methods: Sequence[str], n: int, **settings: object) -> None:
    """Seconds, memory and shared answers of a report of 12 explainers and 12 metrics."""
    start = perf_counter()
    report = heedful.trust(model, "imdb", methods, METRICS, n, **settings)
    report.as_dict()
    seconds, masks = perf_counter() - start, report.masks
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    n_words = np.mean([len(one.units) for one in report.documents])
    print(
        f"{name}: {len(methods)} explainers and the control × {len(METRICS)} metrics × {len(report.documents)} reviews "
        f"of {n_words:.0f} words on average: {seconds:.0f} s, {peak:.2f} GB at most.\n  Thinned texts: explainers "
        f"asked {masks['explaining']:,}; metrics wanted {masks['wanted']:,}, and {masks['asked']:,} of them "
        f"had to be asked ({masks['wanted'] / max(1, masks['asked']):.1f}× shared)."
    )
    for verdict in report.verdicts:
        print(f"  {verdict.use}: {verdict.sentence}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["chance", "planted", "cost"])
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=96, help="where the BERT cuts a review")
    parser.add_argument("--half", action="store_true", help="masks of the BERT in half precision")
    parser.add_argument("--model", action="append", default=[], help="another model to plant known words in")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    paper = heedful.load("paper")
    if "chance" in given.what:
        chance(given.repetitions)
    if "planted" in given.what:
        planted("the paper's model", paper, min(given.n, 100))
        for name in given.model:
            planted(name, heedful.load(name), min(given.n, 50))
    if "cost" in given.what:
        cost("the paper's model", paper, ON_PAPER, given.n)
    if "bert" in given.what or "cost" in given.what:
        bert, _, _ = bert_of(common_words(reviews(), 8000), given.tokens)
        cost(
            f"BERT 4 × 256, cut at {given.tokens} tokens", bert, ON_BERT, given.n, n_steps=5, n_runs=1, half=given.half
        )


if __name__ == "__main__":
    main()
