"""Results of steering with chosen numbers."""

import numpy as np

from heedful.features.labelled import Label
from heedful.features.steering import FEATURE, MEANS, MEASURES, RANDOM, UNCHANGED, Run, Steering

TEXTS = (" and a happy <b> end.", " but no end.")


def run_of(direction, words, surprise=1.0, factor=1.0):
    words = np.array(words, dtype=np.float64)
    values = dict.fromkeys(MEASURES, words / 100) | {"words": words, "surprise": np.full(len(words), surprise)}
    moved = direction != UNCHANGED
    return Run(direction, factor * moved, 5.0 * factor * moved, 4.9 * factor * moved, TEXTS * (len(words) // 2), values)


def steering_of(feature, means, random, unchanged=None, label=None, curve=(), surprise=1.0):
    n = len(feature)
    runs = [run_of(UNCHANGED, [0.0] * n if unchanged is None else unchanged)]
    for factor in sorted({1.0, *curve}):
        own = ((FEATURE, feature, surprise), (MEANS, means, 1.0), (RANDOM, random, 1.0))
        runs += [run_of(name, np.array(words) * factor, cost, factor) for name, words, cost in own]
    return Steering(
        feature=7,
        how="clamp",
        c=5.0,
        largest=2.5,
        label=label or Label(("happy", "glad"), (1, 2)),
        prompts=tuple(f"It was day {number}" for number in range(n)),
        runs=tuple(runs),
        examples="3 sentences with a labelled word and 9 without",
        cosines={MEANS: 0.25, RANDOM: -0.01},
        size=8.0,
        cut_short=False,
        settings={"strategy": "nucleus", "max_new": 12, "seed": 0},
        place="the residual stream that enters layer 3",
        model="0123456789abcdef",
        dictionary="fedcba9876543210",
    )
