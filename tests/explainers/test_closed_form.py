"""The theorems as explainers: the query's share of the gradient by autograd, and the distance to LIME's limit."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import Unsupported
from tests.conftest import tiny_model
from tests.families import build
from tests.straightforward import Straightforward

TEXT = "good film , good story was not dull"


def gradient_of_cls(model, fixed_query):
    """∇f at [cls] of the model written head by head; a fixed query does not see that [cls] changes."""
    plain = Straightforward(model)
    e = (plain.embedding(torch.tensor(plain.ids(TEXT))) + plain.positions).detach().requires_grad_()
    outputs = []
    for head in plain.heads:
        q = head.query(e[0].detach() if fixed_query else e[0])
        attention = torch.softmax(head.key(e) @ q / len(q) ** 0.5, dim=0)
        outputs.append(head.last(attention @ head.value(e))[2])
    (gradient,) = torch.autograd.grad(torch.stack(outputs).mean(), e)
    return gradient[0].mean().item()


@pytest.mark.parametrize("query", ["moves", "fixed"])
def test_the_gradient_at_cls_is_autograd_s_with_and_without_its_query(tiny, query):
    explanation = heedful.explain(tiny, TEXT, "gradient-theorem", target=2, query=query)
    assert explanation.facts["[cls]"] == pytest.approx(gradient_of_cls(tiny, query == "fixed"), abs=1e-12)


@pytest.mark.parametrize("unit", ["word", "type"])
@pytest.mark.parametrize(
    ("method", "settings"),
    [("lime-theorem", {}), ("lime-theorem", {"form": "corrected"}), ("lime-sums", {}), ("lime-integral", {})],
)
def test_the_distance_to_exact_is_that_to_lime_s_limit(tiny, method, settings, unit):
    closed, limit = (
        heedful.explain(tiny, TEXT, name, target=1, unit=unit, **own)
        for name, own in ((method, settings), ("lime-limit", {}))
    )
    assert closed.facts["distance_to_exact"] == pytest.approx(np.linalg.norm(closed.scores - limit.scores))
    assert closed.error is None


def test_a_single_word_has_no_distance_to_a_limit(tiny):
    one_word, two_words = heedful.explain(tiny, ["good", "good film"], "lime-theorem")
    assert "distance_to_exact" not in one_word.facts
    assert two_words.facts["distance_to_exact"] > 0


def test_the_theorems_need_the_weights_of_the_single_layer_model():
    with pytest.raises(Unsupported, match="lime-theorem needs weights"):
        heedful.explain(build("bert"), "good film", "lime-theorem")


TRAINED = tiny_model(positional="learned", padding="eos")
"""With learned positions, padded by a token of its own."""


def test_with_learned_positions_and_a_padding_token_the_gradient_is_autograd_s():
    explanation = heedful.explain(TRAINED, TEXT, "gradient-theorem", target=2)
    assert explanation.facts["[cls]"] == pytest.approx(gradient_of_cls(TRAINED, False), abs=1e-12)
    by_backward = heedful.explain(TRAINED, TEXT, "gradient-mean", target=2)
    assert explanation.scores == pytest.approx(by_backward.scores, abs=1e-12)


@pytest.mark.parametrize("cls", ["kept", "replaced"])
def test_in_lime_s_document_of_unknown_words_the_padding_stays(cls):
    plain = Straightforward(TRAINED)
    ids = torch.tensor(plain.ids(TEXT))
    n_words = len(TRAINED.encode(TEXT).ids) - 1
    unknown = ids.clone()
    unknown[1 - (cls == "replaced") : n_words + 1] = 1
    scores = 0
    for head in plain.heads:
        parts = []
        q = head.query((plain.embedding(ids) + plain.positions)[0])
        for own in (ids, unknown):
            e = plain.embedding(own) + plain.positions
            alpha = torch.softmax(head.key(e) @ q / len(q) ** 0.5, dim=0)
            parts.append(alpha * head.last(head.value(e))[:, 1])
        scores = scores + 1.5 * (parts[0] - parts[1]) / len(plain.heads)
    explanation = heedful.explain(TRAINED, TEXT, "lime-theorem", target=1, cls=cls)
    assert explanation.scores == pytest.approx(scores[1 : n_words + 1].detach().numpy(), abs=1e-12)


def test_exact_shapley_values_of_such_a_model_are_those_of_its_forward_passes():
    text = "good film not dull"
    plain, words = Straightforward(TRAINED), text.split()
    n = len(words)

    def f(kept):
        return plain.predict([" ".join(w if i in kept else "neverseen" for i, w in enumerate(words))])[0, 1]

    for word, value in enumerate(heedful.explain(TRAINED, text, "shapley-exact", target=1, absence="replace").scores):
        others = [i for i in range(n) if i != word]
        expected = sum(
            factorial(size) * factorial(n - 1 - size) / factorial(n) * (f({*some, word}) - f(set(some)))
            for size in range(n)
            for some in combinations(others, size)
        )
        assert value == pytest.approx(expected, abs=1e-12)
