import pytest
import torch

from heedful.errors import BadInput, Unsupported
from heedful.models.fitting.fresh import fresh
from heedful.models.training import initial_weights
from heedful.models.transformer import initial_network
from tests.conftest import tiny_model
from tests.families import build
from tests.models.classic.models import classic


@pytest.mark.parametrize("model", [tiny_model(), build("transformer"), classic(pairs=True)], ids=lambda m: m.family)
def test_a_fresh_model_has_the_settings_of_the_old_one_and_other_weights(model):
    before = model.fingerprint
    one, again, other = (fresh(model, seed) for seed in (0, 0, 1))
    assert type(one) is type(model)
    assert (one.classes, one.vocabulary, one.network.config) == (model.classes, model.vocabulary, model.network.config)
    assert one.fingerprint == again.fingerprint
    assert len({one.fingerprint, other.fingerprint, before}) == 3
    assert model.fingerprint == before


def test_the_weights_are_those_with_which_its_own_training_begins():
    single, layered = tiny_model(), build("transformer")
    expected = initial_weights(single.network.config, len(single.vocabulary), 3)
    for name, weight in fresh(single, 3).network.state_dict().items():
        assert torch.equal(weight, expected[name])
    expected = initial_network(layered.network.config, len(layered.vocabulary), 3).state_dict()
    for name, weight in fresh(layered, 3).network.state_dict().items():
        assert torch.equal(weight, expected[name])


def test_a_model_that_is_trained_elsewhere_is_refused():
    with pytest.raises(Unsupported, match="trained elsewhere"):
        fresh(build("bert"), 0)
    with pytest.raises(BadInput, match="seed"):
        fresh(tiny_model(), -1)
