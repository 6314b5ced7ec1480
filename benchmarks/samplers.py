"""The known-answer bench: every sampler against the exact value, by masks asked and by seconds.

`make bench-samplers`; `python -m benchmarks.samplers --out docs/samplers.md` writes the page and its figure. All sides
ask the same function: target · f of the bundled model on a mask, removed words replaced by the unknown one; the
official `lime` asks it in strings.
"""

import argparse
import platform
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.cluster.hierarchy
import torch

import heedful
from benchmarks.replacing_lime import official_lime
from heedful.models.single_layer import SingleLayer
from heedful.target import Target

SIZES = (20, 100, 255)
BUDGETS = (1000, 5000, 20_000)
N_SEEDS, N_TEXTS = 3, 2

Ask = Callable[[np.ndarray], np.ndarray]


class Result(NamedTuple):
    """One sampler on one size at one budget: root mean square error relative to the exact values, and what it cost."""

    aim: str
    sampler: str
    n_words: int
    budget: int
    error: float
    masks: float
    seconds: float


def text_of(model: SingleLayer, n_words: int, seed: int) -> str:
    """Distinct words, so that one word is one feature for every package."""
    rng = np.random.default_rng(seed)
    return " ".join(rng.choice(np.array(model.vocabulary.words[2:8000]), size=n_words, replace=False))


class Counted:
    """f on masks, and how many masks were asked; rows asked twice are counted twice."""

    def __init__(self, model: SingleLayer, text: str) -> None:
        self.model, self.document, self.asked = model, model.encode(text), 0
        self.target = Target(1, "positive")

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        keep = np.asarray(masks).reshape(len(masks), -1) > 0.5
        self.asked += len(keep)
        tokens = np.concatenate([np.ones((len(keep), 1), dtype=bool), keep], axis=1)
        return self.model.masked(self.document, self.target, tokens, "replace")


def ours(method: str, design: str) -> Callable[[SingleLayer, str, int, int], tuple[np.ndarray, int]]:
    def run(model: SingleLayer, text: str, budget: int, seed: int) -> tuple[np.ndarray, int]:
        found = heedful.explain(model, text, method, target=1, n_samples=budget, design=design, seed=seed)
        return found.scores, int(found.facts["masks"])

    return run


def kernel_shap(model: SingleLayer, text: str, budget: int, seed: int) -> tuple[np.ndarray, int]:
    import shap

    f, d = Counted(model, text), len(text.split())
    np.random.seed(seed)
    explainer = shap.KernelExplainer(f, np.zeros((1, d)))
    return explainer.shap_values(np.ones((1, d)), nsamples=budget, l1_reg=False, silent=True)[0], f.asked


def permutation_shap(model: SingleLayer, text: str, budget: int, seed: int) -> tuple[np.ndarray, int]:
    import shap

    f, d = Counted(model, text), len(text.split())
    explainer = shap.PermutationExplainer(f, shap.maskers.Independent(np.zeros((1, d))), seed=seed)
    evaluations = max(budget, 2 * d + 1)
    return explainer(np.ones((1, d)), max_evals=evaluations, silent=True).values[0], f.asked


def partition_shap(model: SingleLayer, text: str, budget: int, seed: int) -> tuple[np.ndarray, int]:  # noqa: ARG001
    import shap

    f, d = Counted(model, text), len(text.split())
    neighbours = scipy.cluster.hierarchy.average(np.arange(d, dtype=float)[:, None])
    explainer = shap.PartitionExplainer(f, shap.maskers.Partition(np.zeros((1, d)), clustering=neighbours))
    return explainer(np.ones((1, d)), max_evals=budget, silent=True).values[0], f.asked


def captum_kernel_shap(model: SingleLayer, text: str, budget: int, seed: int) -> tuple[np.ndarray, int]:
    from captum.attr import KernelShap

    f, d = Counted(model, text), len(text.split())
    torch.manual_seed(seed)
    explainer = KernelShap(lambda masks: torch.from_numpy(f(masks.numpy())))
    values = explainer.attribute(
        torch.ones(1, d), torch.zeros(1, d), n_samples=budget, perturbations_per_eval=min(budget, 1000)
    )
    return values[0].numpy(), f.asked


def their_lime(model: SingleLayer, text: str, budget: int, seed: int) -> tuple[np.ndarray, int]:
    return official_lime(model, text, text.split(), budget, seed), budget


SAMPLERS = {
    "lime-exact": {
        "heedful lime": ours("lime", "stratified"),
        "heedful lime, unpaired": ours("lime", "independent"),
        "official lime": their_lime,
    },
    "shapley-exact": {
        "heedful shapley-sampled": ours("shapley-sampled", "walks"),
        "heedful shapley-sampled, kernel": ours("shapley-sampled", "stratified"),
        "shap Kernel": kernel_shap,
        "shap Permutation": permutation_shap,
        "shap Partition (Owen values)": partition_shap,
        "captum KernelShap": captum_kernel_shap,
    },
}


def measure() -> list[Result]:
    model = heedful.load("paper")
    assert isinstance(model, SingleLayer)
    results = []
    for n_words in SIZES:
        texts = [text_of(model, n_words, seed) for seed in range(N_TEXTS)]
        for aim, samplers in SAMPLERS.items():
            for sampler, run in samplers.items():
                run(model, texts[0], BUDGETS[1], 99)
                for budget in BUDGETS:
                    # Ours refuses fewer than ten masks a unit; one permutation there and back is shap's least.
                    if sampler == "heedful shapley-sampled" and budget < 10 * n_words:
                        continue
                    results.append(_measured(model, texts, aim, sampler, run, n_words, budget))
                    print(results[-1], flush=True)
            started = perf_counter()
            found = [heedful.explain(model, text, aim, target=1) for text in texts]
            seconds = (perf_counter() - started) / len(texts)
            stated = np.mean([e.error.max() / np.linalg.norm(e.scores) for e in found])
            results.append(Result(aim, f"heedful {aim}", n_words, 0, float(stated), 0, seconds))
    return results


def _measured(model, texts, aim, sampler, run, n_words, budget) -> Result:  # noqa: ANN001
    errors, masks, seconds = [], [], []
    settings = {"n_samples": budget} if aim == "lime-exact" else {}
    for text in texts:
        exact = heedful.explain(model, text, aim, target=1, **settings).scores
        for seed in range(N_SEEDS):
            started = perf_counter()
            scores, asked = run(model, text, budget, seed)
            seconds.append(perf_counter() - started)
            errors.append(np.linalg.norm(scores - exact) / np.linalg.norm(exact))
            masks.append(asked)
    size = float(np.sqrt(np.mean(np.square(errors))))
    return Result(aim, sampler, n_words, budget, size, float(np.mean(masks)), float(np.median(seconds)))


def draw(results: list[Result], path: Path) -> None:
    import matplotlib.pyplot as plt

    costs = {"masks": "masks asked", "seconds": "seconds"}
    panels = [(aim, cost) for aim in SAMPLERS for cost in costs]
    figure, grid = plt.subplots(len(panels), len(SIZES), figsize=(11, 11.5), sharex="row", sharey="row")
    markers = dict(zip([s for group in SAMPLERS.values() for s in group], "os^os^Dvx", strict=True))
    for row, (aim, cost) in zip(grid, panels, strict=True):
        for axes, n_words in zip(row, SIZES, strict=True):
            for sampler in SAMPLERS[aim]:
                mine = [r for r in results if r.sampler == sampler and r.n_words == n_words and r.aim == aim]
                colour = "#009e73" if sampler.startswith("heedful") else None
                style = "--" if "," in sampler else "-"
                drawn = {"marker": markers[sampler], "label": sampler, "color": colour}
                axes.loglog([getattr(r, cost) for r in mine], [r.error for r in mine], style, **drawn)
            axes.set_title(f"{n_words} words", size=10)
            axes.set_xlabel(costs[cost], size=9)
            axes.grid(alpha=0.3)
        row[0].set_ylabel(f"relative error\nagainst {aim}")
        row[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def page(results: list[Result]) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("lime", "shap", "captum"))
    command = f"`python -m benchmarks.samplers --out docs/samplers.md` ({packages}; Python {platform.python_version()})"
    lines = f"""# Samplers against exact values

On the bundled model the exact values are [known](exact.md), so the error of a sampler can be measured, by the number
of masks and by seconds. Every package evaluates the same function, target · f of a masked text. On this model a mask
costs almost nothing, so seconds are the overhead of the packages. Where a mask is a forward pass, compare by masks.
Error: root mean square of ‖scores − exact‖ / ‖exact‖ over {N_TEXTS} texts of distinct words × {N_SEEDS} seeds.

Command: {command}, {torch.get_num_threads()} threads.

![Error against masks and against seconds](images/samplers.png)

`shap`'s Partition explainer computes Owen values of a tree over neighbouring words, not Shapley values, so its error
does not go to zero. `shapley-sampled` by permutations refuses fewer than ten masks per unit, so it has no row
for 255 words at 1,000. Rows without masks are the exact explainers; their error is the stated one.

| exact value | words | sampler | masks | relative error | seconds |
| --- | --- | --- | --- | --- | --- |""".splitlines()
    for r in sorted(results, key=lambda r: (r.aim, r.n_words, r.budget, r.sampler)):
        error = f"{r.error:.4f}" if r.masks else f"< {r.error:.0e}"
        lines.append(f"| {r.aim} | {r.n_words} | {r.sampler} | {r.masks:,.0f} | {error} | {r.seconds:.3f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.samplers", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the page here, and the figure into images/ beside it")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = measure()
    if options.out:
        options.out.write_text(page(results), encoding="utf-8")
        draw(results, options.out.parent / "images" / "samplers.png")
    else:
        print(page(results))


if __name__ == "__main__":
    main()
