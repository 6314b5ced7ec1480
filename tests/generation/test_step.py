import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.generation.step import BeamNode, demanded_token, largest, next_log_probabilities, record_step
from heedful.models.language import Prefix
from tests.families import build


def test_the_largest_values_come_in_order_and_equal_ones_in_their_order():
    rng = np.random.default_rng(0)
    for n in (1, 3, 17, 50, 60):
        values = rng.integers(0, 9, 50).astype(float)
        assert largest(values, n).tolist() == sorted(range(50), key=lambda i: (-values[i], i))[:n]


@pytest.mark.parametrize("bad", [[0.0, np.nan, 1.0], [0.0, np.inf, 1.0], [-np.inf] * 3])
def test_logits_that_are_not_finite_are_refused(bad):
    with pytest.raises(BadInput, match="logits after 3 written tokens are not finite numbers"):
        next_log_probabilities(Prefix(None, torch.tensor([bad]), 3), 3)


def test_a_token_that_cannot_be_written_has_no_probability():
    log_p = next_log_probabilities(Prefix(None, torch.tensor([[0.0, -np.inf, 0.0]]), 3), 0)
    assert np.allclose(np.exp(log_p), [[0.5, 0, 0.5]])


def test_a_record_has_the_ten_best_and_the_written_token():
    p = np.arange(1, 31) / np.arange(1, 31).sum()
    kept = p >= p[20]
    law = np.where(p >= p[20], p, 0) / p[20:].sum()
    step = record_step([str(i) for i in range(30)], np.log(p), 4, kept, law, False)
    assert [a.id for a in step.alternatives] == [*range(29, 19, -1), 4]
    assert [a.kept for a in step.alternatives] == [True] * 10 + [False]
    assert np.allclose([a.probability for a in step.alternatives], p[[*range(29, 19, -1), 4]])
    assert np.isclose(sum(a.law for a in step.alternatives), 1)
    assert (step.n_kept, step.id, step.token) == (10, 4, "4")
    assert np.isclose(step.mass, p[20:].sum())
    assert np.isclose(step.log_probability, np.log(p[4]))


def test_demanded_tokens_are_at_the_beginning_and_at_the_limit(monkeypatch):
    model = build("bart")
    assert [demanded_token(model, n, 3) for n in range(3)] == [None] * 3
    monkeypatch.setattr(model, "first_id", 7)
    monkeypatch.setattr(model, "last_id", 1)
    assert [demanded_token(model, n, 3) for n in range(3)] == [7, None, 1]
    assert demanded_token(model, 0, 1) == 1


def test_the_value_of_a_beam_is_its_mean_log_probability():
    assert BeamNode(0, 3, 5, "a", -1.0, -6.0, "kept").value == -2
