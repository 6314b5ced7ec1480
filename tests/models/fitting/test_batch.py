import numpy as np
import pytest
import torch

from heedful.models.attention_edits import uniform
from heedful.models.fitting.batch import cross_entropy, run_batch
from tests.conftest import tiny_model
from tests.families import build
from tests.models.classic.models import classic

TEXTS = ["the film was good .", "a very bad story", "good"]
MODELS = {"single-layer": tiny_model, "transformer": lambda: build("transformer"), "classic": classic}


def batch_of(model, edit=None, loss=lambda batch: batch.attention.sum()):
    documents = [model.encode(text) for text in TEXTS]
    labels = torch.tensor([0, 1, 2])
    return run_batch(model, torch.arange(3), documents, labels, loss, edit)


@pytest.mark.parametrize("kind", MODELS)
def test_attention_is_that_of_the_last_layer_in_inference(kind):
    model = MODELS[kind]()
    batch = batch_of(model)
    rows = model.attention(batch.documents)[:, -1]
    assert batch.attention.detach().numpy() == pytest.approx(rows, abs=1e-12)
    assert batch.logits.detach().numpy() == pytest.approx(model.logits(batch.documents))


@pytest.mark.parametrize("kind", MODELS)
def test_the_gradient_of_attention_is_that_of_finite_differences(kind):
    model, step = MODELS[kind](), 1e-6
    weight = model.network.W_e
    (gradient,) = torch.autograd.grad(batch_of(model).attention[0, 0, 1].log(), weight)
    word = model.vocabulary.index["film"]
    for coordinate in range(3):
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                weight[word, coordinate] += sign * step
                values.append(batch_of(model).attention[0, 0, 1].log().item())
                weight[word, coordinate] -= sign * step
        assert gradient[word, coordinate].item() == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("kind", MODELS)
def test_an_edit_is_applied_and_cross_entropy_alone_records_nothing(kind):
    model = MODELS[kind]()
    assert batch_of(model, loss=cross_entropy).calls == ()
    edited = batch_of(model, uniform, cross_entropy)
    expected = np.concatenate([model.edited([document], uniform) for document in edited.documents])
    assert edited.logits.detach().numpy() == pytest.approx(expected)
    assert len(edited.calls) == len(model.attention(edited.documents)[0])
    nll = -torch.log_softmax(edited.logits, dim=1)[torch.arange(3), edited.labels].mean()
    assert cross_entropy(edited).item() == pytest.approx(nll.item())
