"""Coverage of 95 % intervals from few masks, unit by unit, on a model whose every mask is evaluated.

`python -m benchmarks.few_masks MODEL [N_SAMPLES] [RUNS]`
"""

import sys

import numpy as np

import heedful
from heedful.explainers import configure
from heedful.explainers.explain import run_explainer
from heedful.models.question import MaskValues, Question, ask
from heedful.perturb.surrogate import kernel
from heedful.perturb.sweep import Sweep

TEXTS = (
    "you are a stupid idiot and i hate you so much",
    "what a lovely day for the whole family to go out",
    "nobody likes that ugly old man , he is a liar",
)
METHODS = (("lime", {}), ("shapley-sampled", {}), ("shapley-sampled", {"design": "stratified"}))


def exact_lime(keep: np.ndarray, f: np.ndarray, n_samples: int) -> np.ndarray:
    """Eq. (16) over all masks, each with the weight of its share of the samples; a free intercept."""
    size, d = keep.sum(axis=1), keep.shape[1]
    mass = np.where(size == d, 1.0, (n_samples - 1) / d / np.bincount(size)[size]) * kernel(keep, 25.0)
    x = keep - mass @ keep / mass.sum()
    return np.linalg.solve(x.T @ (x * mass[:, None]) + np.eye(d), x.T @ (mass * (f - mass @ f / mass.sum())))


def coverage(question: Question, method: str, settings: dict, n_samples: int, n_runs: int) -> np.ndarray:
    """The share of runs whose interval contains the exact value, for every word, the strongest first."""
    d = question.documents[0].n_units("word")
    keep = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    f = Sweep(question, 0, "word", "replace")(keep)
    if method == "lime":
        exact = exact_lime(keep, f, n_samples)
    else:
        every = configure(method, {"n_samples": 2**d * 100, "design": "stratified"})
        exact = run_explainer(every, question)[0].scores
    covered = []
    for seed in range(n_runs):
        run = run_explainer(configure(method, {"n_samples": n_samples, "seed": seed, **settings}), question)[0]
        assert run.error is not None
        covered.append(np.abs(run.scores - exact) <= run.error)
    return np.mean(covered, axis=0)[np.argsort(-np.abs(exact))]


def main() -> None:
    model = heedful.load(sys.argv[1])
    n_samples, n_runs = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((2, 200), (3, 400)))
    for text in TEXTS:
        question = ask(model, [text], target=1)
        question.mask_values = MaskValues()
        for method, settings in METHODS:
            share = coverage(question, method, settings, n_samples, n_runs)
            print(f"{method} {settings}: all {share.mean():.1%}, five strongest {share[:5].mean():.1%}, ", end="")
            print(f"worst {share.min():.1%}  ({text[:30]} …)", flush=True)


if __name__ == "__main__":
    main()
