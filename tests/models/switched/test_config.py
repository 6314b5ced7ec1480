"""The switches: refused values, and what fingerprints are made from."""

import pytest

from heedful.errors import BadInput
from heedful.models.switched.config import TransformerConfig
from heedful.models.transformer import initial_network


def test_sizes_below_one_are_refused():
    with pytest.raises(BadInput, match="sizes of at least 1"):
        TransformerConfig(n_heads=0)
    with pytest.raises(BadInput, match="T_max of at least 2"):
        TransformerConfig(T_max=1)


@pytest.mark.parametrize("name", ["padding", "values", "read"])
def test_a_switch_that_does_not_exist_is_refused(name):
    config = TransformerConfig()
    # The tests check types at the door; a user's program does not.
    object.__setattr__(config, name, "other")
    with pytest.raises(BadInput, match=f"{name} is one of .*; 'other' was given"):
        config.__post_init__()


def test_every_switch_changes_the_identity_and_older_models_keep_theirs():
    plain = TransformerConfig()
    later = ({"padding": "hidden"}, {"values": "identity"}, {"read": "last"}, {"last_norm": False})
    assert len({TransformerConfig(**changes).identity for changes in later} | {plain.identity}) == 5
    assert plain.identity == (
        "TransformerConfig(depth=1, skip=False, norm=False, nonlinearity='none', causal=False, tied='no', n_heads=6, "
        "T_max=256, d_e=128, d_att=64, d_out=64, d_hidden=256, n_classes=2, positional='equation-3')"
    )


@pytest.mark.parametrize(
    "changes", [{}, {"padding": "eos", "positional": "learned"}, {"tied": "layers", "depth": 3}, {"values": "identity"}]
)
def test_the_shapes_are_those_of_the_weights(changes):
    config = TransformerConfig(n_heads=2, T_max=5, d_e=4, d_att=3, d_out=2, nonlinearity="relu", **changes)
    network = initial_network(config, 7, 0)
    assert {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()} == config.all_shapes(7)
