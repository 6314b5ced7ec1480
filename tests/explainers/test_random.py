import numpy as np
from scipy.stats import kstest

import heedful


def test_scores_are_standard_normal_and_know_nothing_of_the_model(tiny):
    scores = np.concatenate([heedful.explain(tiny, "good film", "random", seed=seed).scores for seed in range(500)])
    assert kstest(scores, "norm").pvalue > 0.001
    assert np.array_equal(
        heedful.explain(tiny, "good film", "random", target=0).scores,
        heedful.explain(tiny, "good film", "random", target=1).scores,
    )
