"""The network against a plain one that is written with ifs instead of gates."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import vmap
from torch.nn.functional import embedding, layer_norm, linear, scaled_dot_product_attention

from heedful.errors import BadInput
from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.experiments.toy_tasks.dyck_network import DyckNetwork, DyckParts
from heedful.experiments.toy_tasks.side_by_side import stack_runs

LANGUAGE = Dyck(2, 3)
NETWORK = DyckNetwork(LANGUAGE, 16)
LONGEST = 12
WHOLE = DyckParts()
VARIANTS = (
    WHOLE,
    *(replace(WHOLE, **{part: False}) for part in ("attention_residual", "projection", "feed_forward", "norm")),
    *(replace(WHOLE, **{part: False}) for part in ("positions", "first_layer", "content")),
    DyckParts(content=False, noise=1.0),
    DyckParts(False, False, False, False, False, False, True),
)
TOKENS = torch.tensor(LANGUAGE.strings(5, 4, LONGEST, seed=1))


def full(parts: DyckParts, seed: int = 0) -> dict[str, torch.Tensor]:
    """Weights of one network in double precision, with biases that are not zero."""
    rng = torch.Generator().manual_seed(seed + 50)
    drawn = {
        name: torch.randn(w.shape, generator=rng) if "bias" in name else w for name, w in NETWORK.initial(seed).items()
    }
    return {name: w.double() for name, w in (drawn | NETWORK.fixed(parts, LONGEST, seed)).items()}


def minimal(tokens: torch.Tensor) -> torch.Tensor:
    """Type and depth of every bracket, one by one."""
    result = torch.zeros(len(tokens), tokens.shape[1] + 1, NETWORK.width, dtype=torch.float64)
    result[:, 0, 0] = 1
    for string, row in enumerate(tokens.tolist()):
        depth = 0
        for place, token in enumerate(row):
            if token == LANGUAGE.end:
                break
            depth += token < 2
            result[string, place + 1, 1 + 4 * (depth - 1) + token] = 1
            depth -= token >= 2
    return result


def plain(parts: DyckParts, w: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    """The logits."""
    begin = torch.full((len(tokens), 1), LANGUAGE.begin)
    x = embedding(torch.cat([begin, tokens], dim=1), w["tokens"])
    n_rows = x.shape[1]
    if parts.positions:
        place, pair = np.arange(n_rows)[:, None], np.arange(NETWORK.width // 2)
        angle = torch.tensor(place / 10_000 ** (2 * pair / NETWORK.width))
        waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
        x = x + waves.float().double()
    causal = torch.full((n_rows, n_rows), float("-inf"), dtype=torch.float64).triu(1)
    for layer in (1, 2):
        if layer == 2 and not parts.first_layer:
            x = minimal(tokens)
        q, k, v = (x @ w[f"{name}_{layer}"] for name in ("query", "key", "value"))
        if layer == 2 and not parts.content:
            pooled = torch.softmax(w["scores"][:n_rows, :n_rows] + causal, dim=-1) @ v
        else:
            pooled = scaled_dot_product_attention(q, k, v, is_causal=True)
        if parts.projection:
            pooled = pooled @ w[f"out_{layer}"]
        x = x + pooled if parts.attention_residual else pooled
        if parts.norm:
            x = layer_norm(x, (NETWORK.width,))
        if parts.feed_forward:
            hidden = linear(x, w[f"hidden_{layer}"].T, w[f"hidden_bias_{layer}"]).clamp(min=0)
            x = x + linear(hidden, w[f"back_{layer}"].T, w[f"back_bias_{layer}"])
        if parts.norm:
            x = layer_norm(x, (NETWORK.width,))
    return linear(x, w["readout"].T, w["readout_bias"])


@pytest.mark.parametrize("parts", VARIANTS, ids=str)
def test_switches_remove_parts(parts):
    weights = full(parts)
    torch.testing.assert_close(NETWORK.run(weights, TOKENS).logits, plain(parts, weights, TOKENS), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("parts", VARIANTS, ids=str)
def test_a_row_does_not_see_what_comes_later(parts):
    weights, other = full(parts), TOKENS.clone()
    other[:, 5:] = torch.tensor(LANGUAGE.strings(5, 4, LONGEST, seed=9))[:, 5:]
    one, two = NETWORK.run(weights, TOKENS), NETWORK.run(weights, other)
    for before, after in zip(one, two, strict=True):
        torch.testing.assert_close(before[:, :6], after[:, :6], rtol=1e-12, atol=1e-12)
    assert (one.logits[:, 6:] != two.logits[:, 6:]).any()


def test_attention_is_a_distribution_over_what_was_read():
    attention = NETWORK.run(full(WHOLE), TOKENS).attention
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(5, LONGEST + 1, dtype=torch.float64))
    assert (attention.triu(1) == 0).all()


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_attention_without_content_is_one_table_for_all_strings_and_weights(noise):
    parts = DyckParts(content=False, noise=noise)
    weights, others = full(parts), full(parts, seed=1) | NETWORK.fixed(parts, LONGEST, 0)
    one, two = (NETWORK.run({k: w.double() for k, w in own.items()}, TOKENS).attention for own in (weights, others))
    torch.testing.assert_close(one, two, rtol=0, atol=0)
    torch.testing.assert_close(one, one[:1].expand_as(one), rtol=0, atol=0)
    even = 1 / torch.arange(1, LONGEST + 2).double()
    assert torch.allclose(one[0, :, 0], even) == (noise == 0)


def test_a_shorter_string_sees_the_corner_of_the_same_table():
    weights = full(DyckParts(content=False, noise=1.0))
    short, long = NETWORK.run(weights, TOKENS[:, :6]), NETWORK.run(weights, TOKENS)
    torch.testing.assert_close(short.logits, long.logits[:, :7], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("parts", "idle"),
    [
        (DyckParts(projection=False), {"out_1", "out_2"}),
        (DyckParts(feed_forward=False), {name for name in NETWORK.initial(0) if name.startswith(("hidden", "back"))}),
        (DyckParts(content=False, noise=1.0), {"query_2", "key_2"}),
        (
            DyckParts(first_layer=False),
            {name for name in NETWORK.initial(0) if name.endswith("_1") or name == "tokens"},
        ),
        (DyckParts(norm=False), set()),
    ],
    ids=["projection", "feed-forward", "content", "first layer", "norm"],
)
def test_what_is_taken_out_is_not_trained(parts, idle):
    weights = full(parts)
    trained = {name: weights[name].clone().requires_grad_() for name in NETWORK.initial(0)}
    NETWORK.run(weights | trained, TOKENS).logits.square().sum().backward()
    assert {name for name, weight in trained.items() if (weight.grad == 0).all()} == idle


def test_networks_side_by_side_are_the_networks_alone():
    all_weights = [full(parts, seed) for seed, parts in enumerate(VARIANTS)]
    together = vmap(lambda weights: NETWORK.run(weights, TOKENS).logits)(stack_runs(all_weights))
    for logits, weights in zip(together, all_weights, strict=True):
        torch.testing.assert_close(logits, NETWORK.run(weights, TOKENS).logits, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("width", [12, 15])
def test_a_width_that_cannot_hold_type_and_depth_is_refused(width):
    with pytest.raises(BadInput, match="at least 13"):
        DyckNetwork(LANGUAGE, width)
