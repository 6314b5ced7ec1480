"""Whether anchors keep their promise: test reviews, each rule found tried on 10,000 fresh masked texts.

python -m benchmarks.anchors                        the bundled model; needs the reviews (HEEDFUL_DATA or the hub)
python -m benchmarks.anchors --budget 2000          with fewer masks
"""

import argparse
from time import perf_counter

import numpy as np
import torch

import heedful
from heedful.datasets.imdb import Imdb
from heedful.explanation import Explanation
from heedful.models.single_layer import SingleLayer

N_FRESH = 10_000


def true_precision(model: SingleLayer, found: Explanation, presence: float) -> float:
    """How often the prediction stays, from whole texts and argmax, not from the sweep that found the rule.

    Sampling leaves a standard error of 0.2 points at a precision of 0.95.
    """
    document, held = found.document, found.scores > 0
    assert held.sum() == found.facts["anchor_size"]
    rng = np.random.default_rng(found.document.ids.tolist())
    stays = 0
    for _ in range(N_FRESH // 1000):
        keep = (rng.random((1000, len(held))) < presence) | held
        tokens = np.concatenate([np.ones((1000, 1), dtype=bool), keep], axis=1)
        logits = model.predict_ids([np.where(row, document.ids, 1) for row in tokens])
        stays += int((logits.argmax(axis=1) == found.target.index).sum())
    return stays / N_FRESH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=100)
    parser.add_argument("--budget", type=int, default=5000)
    parser.add_argument("--threshold", type=float, default=0.95)
    parser.add_argument("--presence", type=float, default=0.5)
    parser.add_argument("--beam-width", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = heedful.load("paper")
    assert isinstance(model, SingleLayer)
    texts = [example.text for example in Imdb().examples("test")]
    chosen = np.random.default_rng(0).choice(len(texts), options.reviews, replace=False)
    settings = {
        "budget": options.budget,
        "threshold": options.threshold,
        "presence": options.presence,
        "beam_width": options.beam_width,
    }
    rows, seconds = [], []
    for index in chosen:
        started = perf_counter()
        found = heedful.explain(model, texts[index], "anchors", **settings)
        seconds.append(perf_counter() - started)
        facts = found.facts
        true = true_precision(model, found, options.presence)
        rows.append([true, *(facts[name] for name in ("precision_lower", "anchor_size", "masks", "base_precision"))])
    true, lower, size, masks, base = np.array(rows).T
    promised = lower >= options.threshold
    kept, valid = promised & (true >= options.threshold), true >= lower
    print(f"{len(rows)} test reviews, {settings}")
    print(f"promised a precision of {options.threshold:g} at 95 % confidence: {promised.sum()}")
    print(f"  of these kept on {N_FRESH:,} fresh masked texts: {kept.sum()}, least {true[promised].min():.4f}")
    print(f"lower bound below the true precision, promised or not: {valid.sum()} of {len(rows)}")
    sizes = ", ".join(f"{int(n)}: {int((size[promised] == n).sum())}" for n in np.unique(size[promised]))
    print(f"anchor size: median {np.median(size[promised]):g}, how many of each {{{sizes}}}")
    print(f"  where some unit is needed: median {np.median(size[promised & (size > 0)]):g}")
    print(f"precision with nothing held: median {np.median(base):.3f}; lower bound where nothing is promised: ", end="")
    print(f"median {np.median(lower[~promised]):.3f}" if (~promised).any() else "none")
    print(f"masks: median {np.median(masks):.0f}, most {masks.max():.0f}")
    print(f"seconds a review, one thread: median {np.median(seconds):.3f}, most {max(seconds):.3f}")


if __name__ == "__main__":
    main()
