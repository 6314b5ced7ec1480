"""The written network is right everywhere, without looking anywhere."""

from dataclasses import replace

import pytest
import torch

from heedful.errors import BadInput
from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.experiments.toy_tasks.dyck_construction import UNIFORM, constructed_weights
from heedful.experiments.toy_tasks.dyck_evaluation import balance_violation, evaluate_strings, uniform_on_stack
from heedful.experiments.toy_tasks.dyck_network import DyckNetwork
from heedful.experiments.toy_tasks.dyck_training import DyckSettings


@pytest.mark.parametrize("language", [Dyck(1, 1), Dyck(2, 2), Dyck(2, 4), Dyck(3, 3)], ids=str)
def test_uniform_attention_closes_every_bracket_of_any_length(language):
    settings = DyckSettings(language, width=50, n_training=50, n_asked=400, longest=20, far=(150, 200), n_far=30)
    weights = constructed_weights(settings.network) | settings.network.fixed(UNIFORM, 200, 0)
    for tokens in (language.strings(300, 1, 20, 0), settings.longer):
        answer = evaluate_strings(settings, weights, tokens)
        assert answer.accuracy == 1
        assert answer.on_stack == pytest.approx(uniform_on_stack(language, tokens), rel=1e-5)


def test_what_it_pools_does_not_depend_on_a_balanced_prefix():
    settings = DyckSettings(n_training=10, n_far=50)
    fixed = settings.network.fixed(UNIFORM, 28, 0)
    assert balance_violation(settings, constructed_weights(settings.network) | fixed) < 1e-5
    shifted = constructed_weights(settings.network)
    shifted["value_2"] = shifted["value_2"] + torch.randn(50, 50, generator=torch.Generator().manual_seed(0))
    assert balance_violation(settings, shifted | fixed) > 0.05


def test_another_order_of_attention_is_wrong():
    """Sharp random scores break the cancelling: the weights were made for uniform ones."""
    settings = DyckSettings(n_training=10, n_far=50, far=(100, 120))
    fixed = settings.network.fixed(replace(UNIFORM, noise=2.0), 120, 0)
    assert evaluate_strings(settings, constructed_weights(settings.network) | fixed, settings.longer).accuracy < 0.95


def test_a_width_that_is_too_small_is_refused():
    with pytest.raises(BadInput, match="needs a width of 25"):
        constructed_weights(DyckNetwork(Dyck(), 20))
