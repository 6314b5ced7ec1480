import numpy as np
import torch

from heedful.models.pooling import Pooling, linear_values
from heedful.target import Target


def test_values_at_masks_are_those_of_a_softmax_written_out():
    rng = np.random.default_rng(0)
    s, w, s_gone, w_gone = (torch.from_numpy(rng.normal(size=(1, 2, 5))) for _ in range(4))
    keep = torch.from_numpy(rng.random((8, 4)) < 0.5)
    kept = torch.cat([keep, torch.ones(8, 1, dtype=torch.bool)], dim=1)[:, None]
    scores, values = torch.where(kept, s, s_gone), torch.where(kept, w, w_gone)
    expected = (scores.softmax(dim=-1) * values).sum(dim=-1).mean(dim=1)
    assert torch.allclose(Pooling(s, w, s_gone, w_gone).values(0, keep), expected, atol=1e-14)


def test_a_log_probability_needs_the_values_of_every_class():
    logits = np.array([[1.0, 2.0], [0.5, -1.0]])
    rows = []

    def evaluate(row):
        rows.append(row)
        return logits @ row

    value = linear_values(Target(0, "a", scale="log-probability"), 2, evaluate)
    assert np.allclose(value, logits[:, 0] - np.log(np.exp(logits).sum(axis=1)))
    assert len(rows) == 2
