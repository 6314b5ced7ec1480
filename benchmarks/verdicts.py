"""How far the trust report itself can be trusted, and what it costs. `make bench-verdicts`; needs HEEDFUL_DATA.

`simulate`: on simulated values, how often is the verdict right? `chance`: where all methods are random numbers, how
often is one recommended? `planted`: on models that can use no more than ten known words, does the report, which is not
told them, recommend a method that finds them? `cost`: a full report on the paper's model and on a BERT of 4 layers, 256
wide, with weights nobody trained.
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
from heedful.evaluation.verdict import CONTROL, LOSS, Verdict, verdicts
from heedful.explainers.random import Random
from heedful.models import Model
from heedful.statistics.significance import mean_p_values, sign_flips

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


UP = np.array([1.0, 1.0, 1.0, -1.0, 1.0])
NAMES = (*(f"method {number}" for number in range(1, 9)), CONTROL)


def simulated(rng: np.random.Generator, effects: Sequence[float], n_texts: int) -> np.ndarray:
    """Eight methods and the control, better by their effects in standard deviations; metrics correlate by ½."""
    size = len(NAMES), len(RANKING), n_texts
    shared, own = rng.normal(size=(size[0], 1, n_texts)), rng.normal(size=size)
    shift = np.pad(np.array(effects, dtype=np.float64), (0, size[0] - len(effects)))
    return (np.sqrt(0.5) * (shared + own) + shift[:, None, None]) * UP[:, None]


def verdict_of(values: np.ndarray, names: tuple[str, ...] = NAMES) -> tuple[Verdict, ...]:
    return verdicts(names, RANKING, tuple((UP > 0).tolist()), values, np.ones(len(names)), 0)


def simulate(n_runs: int) -> None:
    """How often verdicts on simulated values are right, n_runs a cell."""
    rng = np.random.default_rng(0)
    for n_texts in (12, 30, 100):
        runs = [verdict_of(simulated(rng, [], n_texts)) for _ in range(n_runs)]
        share = np.mean([any(verdict.recommended for verdict in run) for run in runs])
        print(f"All random, {n_texts} texts: a winner in {share:.1%} of {n_runs} runs.")
    for effect, n_texts in ((0.5, 30), (0.5, 100), (1.0, 30), (1.0, 100)):
        runs = [verdict_of(simulated(rng, [effect], n_texts))[0] for _ in range(n_runs)]
        right = np.mean([run.recommended == NAMES[0] for run in runs])
        wrong = np.mean([run.recommended not in (None, NAMES[0]) for run in runs])
        print(f"Effect {effect:g}, {n_texts} texts: recommended in {right:.1%}, another method in {wrong:.1%}.")
    for effect in (0.5, 1.0):
        runs = [verdict_of(simulated(rng, [effect, effect], 100))[0] for _ in range(n_runs)]
        named = [set(NAMES[:2]) <= set(run.as_good) for run in runs if run.recommended]
        print(
            f"Two equals of effect {effect:g}, 100 texts: named together in {np.mean(named):.1%} of {len(named)} runs."
        )
    company(rng, n_runs)
    for n_texts in (20, 30, 100):
        rows = np.where(rng.random((20 * n_runs, n_texts)) < 0.9, 0.05, -0.45)
        flips, new = sign_flips(rows[:n_runs], 0), mean_p_values(rows, LOSS, 0)
        before, after = (np.mean((p < 0.05) & (rows[: len(p)].mean(axis=1) > 0)) for p in (flips, new))
        print(
            f"Skewed differences of mean 0, {n_texts} texts: better in {after:.1%}; by sign flips alone {before:.1%}."
        )


def company(rng: np.random.Generator, n_runs: int) -> None:
    """How often a useless, duplicated or refusing method changes a recommendation or another method's score."""
    for kind in ("useless", "duplicated", "refusing"):
        changed, won = 0, 0
        for _ in range(n_runs):
            values = simulated(rng, [0.6, 0.6, 0.3], 100)
            added = values[[int(rng.integers(8))]] if kind == "duplicated" else simulated(rng, [], 100)[:1]
            if kind == "refusing":
                added[:, :, ((added - values[-1:])[0] * UP[:, None]).mean(axis=0) < 0] = np.nan
            before, after = verdict_of(values)[0], verdict_of(np.concatenate([values, added]), (*NAMES, kind))[0]
            scores = [{s.method: s.score for s in verdict.standings if s.method != kind} for verdict in (before, after)]
            changed += before.recommended != after.recommended or scores[0] != scores[1]
            won += after.recommended == kind
        print(f"A {kind} method more: recommendation or scores changed in {changed} of {n_runs} runs; it won in {won}.")


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
    parser.add_argument("what", nargs="*", default=["simulate", "chance", "planted", "cost"])
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--runs", type=int, default=400, help="of every cell of the simulation")
    parser.add_argument("--tokens", type=int, default=96, help="where the BERT cuts a review")
    parser.add_argument("--half", action="store_true", help="masks of the BERT in half precision")
    parser.add_argument("--model", action="append", default=[], help="another model to plant known words in")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    paper = heedful.load("paper")
    if "simulate" in given.what:
        simulate(given.runs)
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
