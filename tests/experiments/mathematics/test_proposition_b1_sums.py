import numpy as np
import pytest

from heedful.experiments.mathematics.proposition_b1_sums import corrected_law, equation_29, equation_30, printed_law
from heedful.experiments.mathematics.subsets import all_kept, lime_law


@pytest.mark.parametrize("d", [2, 3, 7])
def test_the_corrected_law_is_the_law_over_all_sets_that_keep_a_word(d):
    keep = all_kept(d)
    law, gone = lime_law(keep) * keep[:, 0], d - keep.sum(axis=1)
    assert np.allclose(corrected_law(d), [law[gone == s].sum() / law.sum() for s in range(1, d)])
    assert corrected_law(d).sum() == pytest.approx(1)


def test_the_equations_are_the_printed_ones_in_slow_loops():
    d, g_v, g_v_h, G, G_h = 6, [0.7, -1.2], [0.3, 0.9], 20.0, 17.0
    law = printed_law(d)
    for term in range(2):
        own, other = 0.0, 0.0
        for s in range(1, d):
            below = (1 - s / (d - 1)) * G + s / (d - 1) * G_h
            own += g_v[term] / below / d
            other += ((1 - s / (d - 1)) * g_v[term] + s / (d - 1) * g_v_h[term]) / below / d
        assert equation_29(np.array(g_v), G, G_h, law)[term] == pytest.approx(own)
        assert equation_30(np.array(g_v), np.array(g_v_h), G, G_h, law)[term] == pytest.approx(other)
