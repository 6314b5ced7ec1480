import pytest
import torch

from heedful.errors import BadInput
from heedful.models.network import Config, positional_table


def test_the_faster_forms_of_the_network_equal_its_equations(tiny):
    document = tiny.encode("good film bad plot")
    ids, e = tiny.padded([document.ids]), tiny.embed([document])
    net = tiny.network
    expected = net(e)
    assert torch.allclose(net.attended(e), expected, atol=1e-9)
    assert torch.allclose(net.read(ids).to(expected), expected, atol=1e-6)
    assert torch.allclose(net.matrices(e)[:, :, 0], net.attention(e), atol=1e-9)


def test_a_table_of_positions_has_a_row_for_each():
    assert positional_table("equation-3", 7, 4).shape == (7, 4)


def test_a_table_of_positions_that_does_not_exist_is_refused():
    config = Config()
    # The tests check types at the door; a user's program does not.
    object.__setattr__(config, "positional", "rotary")
    with pytest.raises(BadInput, match="positional is one of equation-3, authors, learned; 'rotary' was given"):
        config.__post_init__()
