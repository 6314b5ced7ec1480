from dataclasses import replace

import pytest
import torch

from heedful.features.autoencoder.matryoshka import Matryoshka
from tests.features.autoencoder.examples import PLAIN, WIDTH, active_of, rows, weights_of


@pytest.mark.parametrize(
    ("widths", "width", "expected"),
    [("auto", 512, [16, 64, 256]), ("auto", 4, [2]), ("5,10", 20, [5, 10]), ("5,20", 20, [5]), ("auto", 1, [])],
)
def test_inner_widths_are_given_or_shares_of_the_width(widths, width, expected):
    assert Matryoshka(widths=widths).inner_widths(width) == expected


def test_k_falls_linearly_to_its_end():
    kind = Matryoshka(k=4.0, first_k=3.0)
    assert [kind.k_after(share, 100) for share in (0.0, 0.5, 1.0)] == [12, 8, 4]
    assert kind.k_after(0.0, 10) == 10


def gradients_of(kind):
    """The gradients of the decoder's rows, of which the first five are the narrowest width."""
    weights = weights_of(kind)
    weights.W_dec.requires_grad_(True)
    kind.loss(rows(), weights, 1.0)[0].backward()
    return weights.W_dec.grad


def test_what_is_detached_is_not_changed_by_wider_errors():
    joint, detached = gradients_of(PLAIN), gradients_of(replace(PLAIN, inner="detached"))
    assert not torch.allclose(joint[:5], detached[:5])
    torch.testing.assert_close(joint[5:], detached[5:])
    # The narrowest width learns from its own error and from the whole one.
    narrow = gradients_of(replace(PLAIN, widths="5", inner="joint"))
    torch.testing.assert_close(detached[:5], narrow[:5])


def test_the_first_features_are_those_that_were_active_most_often():
    kind = replace(PLAIN, order="frequency", widths="5")
    weights = weights_of(kind)
    weights.tracked["frequency"].copy_(torch.arange(WIDTH) / 1000)
    x, active = rows(), torch.from_numpy(active_of(kind, rows(), weights))
    tracked = 0.99 * torch.arange(WIDTH) / 1000 + 0.01 * (active > 0).double().mean(dim=0)
    to = kind.directions(weights)
    penalty = kind.encode(x, weights, to, 1.0).penalty
    torch.testing.assert_close(weights.tracked["frequency"], tracked)
    first = tracked.argsort(descending=True)[:5]
    narrow = active[:, first] @ to.W_dec[first] + weights.b_dec
    assert float(penalty) == pytest.approx(float((x - narrow).square().sum(dim=1).mean()))


@pytest.mark.parametrize("passes", [0, 1, 2])
def test_its_rule_has_a_threshold_for_every_pass(passes):
    kind = replace(PLAIN, passes=passes, step=0.25)
    rule = kind.rule(weights_of(kind), torch.arange(passes + 1) + 0.5)
    assert rule.step == (0.25 if passes else 0)
    assert rule.thresholds.tolist() == [[0.5 + number] * WIDTH for number in range(passes + 1)]
