import torch

from heedful.models.network import positional_table


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
