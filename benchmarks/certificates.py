"""How many forwards it takes to be certain, on the model of the paper's Appendix E: six layers of six heads.

    python -m benchmarks.certificates --model runs/six-by-six [--device cuda] [--reviews 100] [--reference 16000]

For every review: the signs of the five strongest words certified by LIME and by Shapley values; whether they are the
signs of a long reference; what share of the reference lies in the 95 % intervals at several numbers of masks; and the
error of LIME at 5,000 masks drawn as the official package draws them against ours at half as many. The model is
trained by `python -m studies.six_by_six`.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from time import perf_counter

import numpy as np

import heedful
from heedful.datasets.imdb import Imdb
from heedful.explanation import Explanation
from heedful.models import Model
from heedful.statistics.intervals import NORMAL_97_5

SEED = 20_000
"""Apart from the seeds that are judged."""


def main() -> None:
    given = _arguments()
    model = heedful.load(given.model, given.device)
    texts = [example.text for example in Imdb().examples("test")]
    order = np.random.default_rng(6).permutation(len(texts))
    rows: dict[str, list[float]] = defaultdict(list)
    start = perf_counter()
    for number, index in enumerate(order[: given.reviews].tolist(), start=1):
        _judge(model, texts[index], given.reference, rows)
        if number % 10 == 0:
            print(f"{number} reviews, {perf_counter() - start:.0f} s", flush=True)
            if given.out:
                given.out.write_text(json.dumps(rows))
    _report(rows, given)


def _judge(model: Model, text: str, n_reference: int, rows: dict[str, list[float]]) -> None:
    def ask(method: str, **settings: object) -> Explanation:
        return heedful.explain(model, text, method, **settings)

    long = {
        "lime": ask("lime", n_samples=n_reference, seed=SEED),
        "shapley-sampled": ask("shapley-sampled", n_samples=2 * n_reference, seed=SEED),
    }
    rows["words"].append(len(long["lime"].scores))
    for method, reference in long.items():
        for until in ("signs", "top"):
            found = ask(method, n_samples="auto", until=until, budget=5000, tolerance=0.05)
            top = np.argsort(-np.abs(found.scores), kind="stable")[:5]
            forwards = found.facts["masks"] + 3 * found.facts.get("backwards", 0)
            rows[f"{method} {until} forwards"].append(forwards)
            if until == "signs":
                right = np.sign(found.scores[top]) == np.sign(reference.scores[top])
                rows[f"{method} signs certain"].append(found.facts.get("certain_signs", 5) == 5)
                rows[f"{method} signs right"].append(bool(right.all()))
            else:
                rows[f"{method} top certain"].append(found.facts.get("certain_top", 5))
        for n_samples in (100, 400, 1000, 5000):
            _cover(rows, f"{method} {n_samples}", ask(method, n_samples=n_samples), reference)
    plain = ask("lime", n_samples=5000, design="independent")
    for name, found in (("official 5000", plain), ("ours 2500", ask("lime", n_samples=2500))):
        rows[f"error² {name}"].append(_error(found, long["lime"]))


def _cover(rows: dict[str, list[float]], name: str, found: Explanation, reference: Explanation) -> None:
    assert found.error is not None
    assert reference.error is not None
    inside = np.abs(found.scores - reference.scores) <= np.hypot(found.error, reference.error)
    rows[f"inside {name}"].append(float(inside.mean()))


def _error(found: Explanation, reference: Explanation) -> float:
    """The squared error relative to the reference's size, less what the reference's own noise adds to it."""
    assert reference.error is not None
    noise = float(((reference.error / NORMAL_97_5) ** 2).sum())
    return (float(((found.scores - reference.scores) ** 2).sum()) - noise) / float((reference.scores**2).sum())


def _report(rows: dict[str, list[float]], given: argparse.Namespace) -> None:
    n = len(rows["words"])
    print(
        f"\n{n} reviews of {np.median(rows['words']):.0f} words (median); reference {given.reference:,} masks for LIME"
    )
    print("A backward pass counts as two forwards.\n")
    for method in ("lime", "shapley-sampled"):
        for until in ("signs", "top"):
            forwards = rows[f"{method} {until} forwards"]
            quartiles = np.quantile(forwards, [0.25, 0.5, 0.75])
            middle = f"{quartiles[1]:.0f} (quartiles {quartiles[0]:.0f}–{quartiles[2]:.0f})"
            print(f"{method}, until {until}: forwards {middle}")
        certain, right = (np.array(rows[f"{method} signs {what}"]) for what in ("certain", "right"))
        print(f"{method}: signs certain in {certain.sum():.0f} of {n}, right in {right.sum():.0f}")
        print(f"{method}: of the five strongest {np.mean(rows[f'{method} top certain']):.1f} were certain to be so")
        for n_samples in (100, 400, 1000, 5000):
            inside = np.average(rows[f"inside {method} {n_samples}"], weights=rows["words"])
            print(f"{method}, {n_samples} masks: {inside:.1%} of the reference inside the 95 % intervals")
    official, ours = (np.sqrt(np.median(rows[f"error² {name}"])) for name in ("official 5000", "ours 2500"))
    ratio = np.sum(rows["error² ours 2500"]) / np.sum(rows["error² official 5000"])
    print(
        f"LIME's error: {official:.4f} at 5,000 masks drawn as the official package does, {ours:.4f} at 2,500 of ours;"
    )
    print(f"ratio of squared errors {ratio:.2f} (below 1: half the forwards are enough)")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="runs/six-by-six")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--reviews", type=int, default=100)
    parser.add_argument("--reference", type=int, default=16_000)
    parser.add_argument("--out", type=Path, default=None, help="keep every number in this JSON file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
