"""The figures of Appendix B.1, of reviews with random distances."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle, StepPatch

from heedful.experiments.claim import column
from heedful.experiments.paper.appendix_b1_figures import PUBLISHED, SPREAD, draw_distances, draw_lengths
from heedful.experiments.paper.lime_runs import LAWS

_RNG = np.random.default_rng(0)
ROWS = [
    {
        "n_words": int(n_words),
        "n_types": int(n_words * share),
        **{f"{law} {name}": float(_RNG.gamma(4, 0.1)) for law in LAWS for name in ("printed", "corrected", "exact")},
    }
    for n_words, share in zip(_RNG.permutation(np.arange(30, 110, 2)), _RNG.uniform(0.5, 0.8, 40), strict=True)
]


def test_histograms_hold_every_review_and_the_published_band():
    drawn = draw_distances(ROWS)
    for axes, law in zip(drawn.axes, LAWS, strict=True):
        stairs = {patch.get_label().split(",")[0]: patch for patch in axes.patches if isinstance(patch, StepPatch)}
        for label, name in (
            ("Theorem 5.1 as printed", "printed"),
            ("corrected", "corrected"),
            ("exact value", "exact"),
        ):
            values, edges = stairs[label].get_data()[:2]
            assert values.sum() == pytest.approx(1)
            middle = float(np.median(column(ROWS, f"{law} {name}")))
            below = values[edges[1:] <= middle].sum()
            assert below <= 0.5 <= below + values[edges[1:] > middle][0] + 1e-12
        band = next(patch for patch in axes.patches if isinstance(patch, Rectangle))
        assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx(
            (PUBLISHED - SPREAD, PUBLISHED + SPREAD)
        )


def test_trends_are_medians_of_bins():
    drawn = draw_lengths(ROWS)
    words, types = (np.array(column(ROWS, name)) for name in ("n_words", "n_types"))
    for axes, x in zip(drawn.axes, (words, words / types), strict=True):
        low, high = np.quantile(x, [0.2, 0.8])
        for line, law in zip(axes.lines, LAWS, strict=True):
            error = np.array(column(ROWS, f"{law} printed"))
            middle, median = line.get_data()
            assert (middle[0], median[0]) == pytest.approx((np.median(x[x < low]), np.median(error[x < low])))
            assert (middle[-1], median[-1]) == pytest.approx((np.median(x[x >= high]), np.median(error[x >= high])))
            assert (np.diff(middle) > 0).all()
    assert [axes.get_xlabel() for axes in drawn.axes] == ["words that the model reads", "words for each distinct word"]


def test_reviews_as_long_as_the_model_reads_have_a_point_of_their_own():
    rows = [{**row, "n_words": min(row["n_words"], 50)} for row in ROWS]
    middle, median = draw_lengths(rows).axes[0].lines[0].get_data()
    longest = [row["delete printed"] for row in rows if row["n_words"] == 50]
    assert len(longest) > 8
    assert (middle[-1], median[-1]) == pytest.approx((50, np.median(longest)))
