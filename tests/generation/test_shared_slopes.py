from copy import deepcopy

import pytest
import torch

from heedful.generation import shared_slopes
from heedful.generation.continuation import Continuation
from heedful.generation.shared_slopes import SlopeCache, every_slope
from heedful.models.question import Question, Wanted
from heedful.target import Target
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 12, 7, 20]


def written(family="gpt2"):
    base = build(family)
    document = base.continued(base.encode(PROMPT), OUTPUT)
    return Continuation(base, tuple("abcd"), tuple((n,) for n in range(4))), document


@pytest.mark.parametrize("most", [1, 2, 3, 16])
def test_the_size_of_a_chunk_changes_no_gradient(most, monkeypatch):
    monkeypatch.setattr(shared_slopes, "_MOST", most)
    model, document = written()
    e = model.embed([document]).detach()
    for group in range(4):
        inputs = e.clone().requires_grad_()
        (expected,) = torch.autograd.grad(model.forward(inputs, [document])[0, group], inputs)
        value, slope = every_slope(model, SlopeCache(), group, e, document)
        assert torch.allclose(slope, expected, atol=1e-10)
        assert torch.allclose(value, model.forward(e, [document])[:, group], atol=1e-10)


def test_the_groups_of_a_chunk_share_one_forward_pass(monkeypatch):
    model, document = written("llama")
    e, cache, calls = model.embed([document]).detach(), SlopeCache(), []
    real = Continuation.token_values
    monkeypatch.setattr(Continuation, "token_values", lambda *a: calls.append(1) or real(*a))
    for group in range(4):
        every_slope(model, cache, group, e, document)
    assert len(calls) == 1
    every_slope(model, cache, 0, 0.5 * e, document)
    assert len(calls) == 2


def test_a_token_has_no_gradient_at_what_is_written_after_it():
    model, document = written()
    _, slope = every_slope(model, SlopeCache(), 1, model.embed([document]).detach(), document)
    assert torch.count_nonzero(slope[0, -3:]) == 0
    assert torch.count_nonzero(slope[0, :-3]) > 0


def test_a_model_in_half_precision_has_gradients():
    base = build("gpt2")
    half = type(base)(deepcopy(base.network).bfloat16(), base.tokenizer)
    document = written()[1]
    model = Continuation(half, tuple("abcd"), tuple((n,) for n in range(4)))
    _, slope = every_slope(model, SlopeCache(), 1, half.embed([document]).detach(), document)
    _, exact = every_slope(written()[0], SlopeCache(), 1, base.embed([document]).detach(), document)
    assert torch.allclose(slope.double(), exact, atol=0.05 * float(exact.abs().max()))


def test_a_difference_of_two_groups_has_the_gradient_of_the_difference():
    model, document = written()
    e = model.embed([document]).detach()
    both, one = (
        Question(model, (document,), Wanted(Target(0, "a", other, "log-probability", "log-probabilities"))).slopes(
            [0], e
        )
        for other in (1, None)
    )
    value, slope = every_slope(model, SlopeCache(), 1, e, document)
    assert torch.allclose(both[1], one[1] - slope, atol=1e-10)
    assert torch.allclose(both[0], one[0] - value, atol=1e-10)
