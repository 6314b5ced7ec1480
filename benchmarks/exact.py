"""The figures of docs/exact.md: how right and how fast exact values are. Needs the reviews (HEEDFUL_DATA or the hub).

python -m benchmarks.exact                          accuracy, and speed on one CPU thread
python -m benchmarks.exact --official 50            against five runs each of the official package, about 10 minutes
python -m benchmarks.exact --all --device cuda      LIME and Shapley values of all 25,000 test reviews
"""

import argparse
from time import perf_counter

import numpy as np
import torch

import heedful
from benchmarks.replacing_lime import official_lime
from heedful.datasets.imdb import Imdb
from heedful.models.question import ask
from heedful.models.single_layer import SingleLayer
from heedful.perturb.exact_game import games_of
from heedful.theory.exact import lime, shapley

N_REVIEWS = 64


def long_reviews(model: SingleLayer) -> list[str]:
    texts = [example.text for example in Imdb().examples("test")]
    order = np.random.default_rng(0).permutation(len(texts))
    long = (texts[i] for i in order if len(texts[i].split()) > 260)
    chosen = [text for text, _ in zip(long, range(N_REVIEWS), strict=False)]
    assert all(model.encode(text).n_units("word") == 255 for text in chosen)
    return chosen


def speed_and_accuracy(model: SingleLayer) -> None:
    texts = long_reviews(model)
    torch.set_num_threads(1)
    question = ask(model, texts)
    print(f"{N_REVIEWS} test reviews of 255 words, one thread\n")
    print("| | unit | features | ms a review, values alone | ms a review, from text | stated error | true error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for unit in ("word", "type"):
        games = games_of(question, unit, "replace", 2, "the benchmark")
        for method, value in (
            ("lime-exact", lambda tolerance, g=games: lime(g, 25.0, 1.0, 5000, tolerance)),
            ("shapley-exact", lambda tolerance, g=games: shapley(g, tolerance)),
        ):
            found, tight = value(1e-6), value(1e-10)
            true = float((found.values - tight.values).abs().max())
            alone = _best(lambda value=value: value(1e-6))
            whole = _best(lambda method=method, unit=unit: heedful.explain(model, texts, method, unit=unit))
            print(
                f"| `{method}` | {unit} | {games.n_units.mean():.0f} | {alone:.2f} | {whole:.2f} "
                f"| {found.error.max():.0e} | {true:.0e} |"
            )


def _best(action) -> float:  # noqa: ANN001
    """Milliseconds a review, the fastest of seven runs: other work on the machine only ever adds."""
    times = []
    for _ in range(7):
        started = perf_counter()
        action()
        times.append(perf_counter() - started)
    return 1000 * min(times) / N_REVIEWS


def against_official(model: SingleLayer, n_reviews: int) -> None:
    """‖mean of five runs − exact‖ over the standard error of that mean, replacement law, all words of the first 255."""
    texts = [example.text for example in Imdb().examples("test")]
    chosen = np.random.default_rng(0).choice(len(texts), n_reviews, replace=False)
    ratios, distances, noises, theorem = [], [], [], []
    for number, index in enumerate(chosen):
        document = model.encode(texts[index])
        words = list(document.units("type"))
        text = " ".join(document.word_keys)
        exact = heedful.explain(model, text, "lime-exact", target=1, unit="type").scores
        runs = np.array([official_lime(model, text, words, 5000, seed) for seed in range(5)])
        distance = np.linalg.norm(runs.mean(axis=0) - exact)
        standard_error = np.linalg.norm(runs.std(axis=0, ddof=1)) / np.sqrt(5)
        printed = heedful.explain(model, text, "lime-theorem", target=1, unit="type").scores
        ratios.append(distance / standard_error)
        distances.append(distance)
        noises.append(standard_error)
        theorem.append(np.linalg.norm(runs.mean(axis=0) - printed))
        print(f"{number + 1} of {n_reviews}: distance {distance:.4f}, standard error {standard_error:.4f}", flush=True)
    print(f"\n{n_reviews} test reviews, five runs of the official package (n = 5000), 2-norms:")
    print(f"mean of five runs − exact:      {np.mean(distances):.4f} ± {np.std(distances, ddof=1):.4f}")
    print(f"standard error of that mean:    {np.mean(noises):.4f}")
    print(f"ratio, on average:              {np.mean(ratios):.3f} (largest {max(ratios):.3f})")
    print(f"mean of five runs − Theorem 5.1: {np.mean(theorem):.4f} ± {np.std(theorem, ddof=1):.4f}")


def all_reviews(model: SingleLayer) -> None:
    started = perf_counter()
    texts = [example.text for example in Imdb().examples("test")]
    read = perf_counter() - started
    cuda = model.network.W_e.is_cuda
    for method in ("lime-exact", "shapley-exact"):
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        started = perf_counter()
        found = heedful.explain(model, texts, method, unit="type")
        seconds = perf_counter() - started
        memory = f", {torch.cuda.max_memory_allocated() / 1e9:.2f} GB at the peak" if cuda else ""
        errors = [e.error.max() for e in found]
        print(f"{method}, {len(found):,} reviews: {seconds:.1f} s with the text processing{memory}", flush=True)
        print(f"  stated error: median {np.median(errors):.0e}, largest {max(errors):.0e}")
    print(f"(reading the file: {read:.1f} s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--official", type=int, metavar="N", help="compare with the official package on N reviews")
    parser.add_argument("--all", action="store_true", help="every test review")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    model = heedful.load("paper")
    assert isinstance(model, SingleLayer)
    model.network.to(options.device)
    if options.official:
        against_official(model, options.official)
    elif options.all:
        all_reviews(model)
    else:
        speed_and_accuracy(model)


if __name__ == "__main__":
    main()
