"""Rollout against the product of whole matrices."""

import numpy as np
import pytest

from tests.parity.plain_pass import PAPERS, agree, blocks, ours, passed


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", PAPERS)
def test_rollout_is_the_product_of_whole_matrices(family, number):
    run = passed(family, number)
    product = np.eye(sum(run.sizes()))
    for M in blocks(run):
        product = M @ product
    row = run.readout @ product[: len(run.readout)]
    assert row.sum() == pytest.approx(1.0)
    agree(ours(family, "rollout", number), row, run.sizes()[1])
