import pytest
import torch
from torch.nn.functional import gelu

from heedful.errors import BadInput
from heedful.models.encoder.network import EncoderConfig
from studies.reviews.initial import initial_encoder
from tests.families import loud

CONFIG = EncoderConfig(depth=2, n_heads=2, T_max=8, d_e=6, d_hidden=5, n_classes=3)


@pytest.fixture(scope="module")
def network():
    network = loud(initial_encoder(CONFIG, 9, 0)).double()
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.dim() == 1:
                weight += 0.3 * torch.randn(weight.shape)
    return network.eval()


def by_hand(network, e):
    """The forward pass token by token and head by head."""

    def norm(x, part):
        return (x - x.mean()) / torch.sqrt(x.var(unbiased=False) + 1e-5) * part.weight + part.bias

    def linear(x, part):
        return part.weight @ x + part.bias

    x = [vector + place for vector, place in zip(e, network.W_p, strict=False)]
    for layer in network.layers:
        h = [norm(one, layer.norm_1) for one in x]
        q, k, v = ([linear(one, part) for one in h] for part in (layer.q_proj, layer.k_proj, layer.v_proj))
        for s in range(len(x)):
            heads = []
            for part in (slice(0, 3), slice(3, 6)):
                scores = torch.stack([q[s][part] @ one[part] / 3**0.5 for one in k])
                alpha = torch.softmax(scores, dim=0)
                heads.append(sum(a * one[part] for a, one in zip(alpha, v, strict=True)))
            x[s] = x[s] + linear(torch.cat(heads), layer.o_proj)
        x = [one + linear(gelu(linear(norm(one, layer.norm_2), layer.up)), layer.down) for one in x]
    return linear(sum(norm(one, network.norm) for one in x) / len(x), network.head)


@torch.no_grad()
def test_it_is_an_encoder_with_norms_before_and_a_mean_at_the_end(network):
    e = network.W_e[torch.tensor([[2, 5, 7, 8, 5]])]
    seen = torch.ones(1, 5, dtype=torch.bool)
    assert torch.allclose(network(e, seen)[0], by_hand(network, e[0]), atol=1e-12)


@torch.no_grad()
def test_what_is_not_seen_changes_nothing(network):
    e = network.W_e[torch.tensor([[2, 5, 7, 8, 5]])]
    seen = torch.tensor([[True, True, True, False, False]])
    other = e.clone()
    other[0, 3:] = 100.0
    assert torch.allclose(network(e, seen), network(other, seen), atol=1e-12)
    assert torch.allclose(network(e, seen)[0], by_hand(network, e[0, :3]), atol=1e-12)


def test_initial_weights_depend_on_the_seed_alone():
    state = torch.get_rng_state()
    one, same, other = (initial_encoder(CONFIG, 9, seed) for seed in (0, 0, 1))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(one.W_e, same.W_e)
    assert not torch.equal(one.W_e, other.W_e)
    assert torch.equal(one.norm.weight, torch.ones(6))
    assert all(weight.isfinite().all() for weight in one.parameters())


@pytest.mark.parametrize("change", [{"n_heads": 4}, {"T_max": 4}, {"depth": 0}])
def test_sizes_that_do_not_fit_are_refused(change):
    sizes = {"n_heads": 2, "T_max": 16, "d_e": 6, "depth": 1}
    with pytest.raises(BadInput):
        EncoderConfig(**{**sizes, **change})
