"""The losses against plain loops over texts, heads and words."""

from math import inf, log

import numpy as np
import pytest
import torch

from heedful.datasets import Example
from heedful.document import Pair
from heedful.errors import BadInput
from heedful.models.fitting.batch import cross_entropy, run_batch
from heedful.models.fitting.better_attention import (
    check_penalties,
    conicity,
    entropy,
    leak,
    marked_tokens,
    missed_rationale,
    penalised,
)
from heedful.models.fitting.fit import FitRecipe
from heedful.models.fitting.fresh import fresh
from tests.conftest import tiny_model
from tests.models.classic.models import KINDS, TEXTS, classic
from tests.models.fitting.test_fit import fit_model

EXAMPLES = [Example(TEXTS[0], 1, ((13, 17),)), Example(TEXTS[1], 0, None), Example(TEXTS[2], 1, ((0, 4), (5, 9)))]
LOSSES = {"entropy": entropy, "diversity": conicity, "leak": leak}


def batch_of(model):
    documents = [model.encode(text) for text in TEXTS]
    labels = torch.tensor([1, 0, 1])
    return run_batch(model, torch.arange(3), documents, labels, lambda _: torch.zeros(()))


def states(model, document):
    """h_t of the words of a document, each read in the text."""
    with torch.no_grad():
        h, _ = model.network.first(model.embed([document]), torch.tensor([len(document.ids)]))
    return h[0, 1:].numpy()


@pytest.mark.parametrize("model", [tiny_model(), classic()], ids=["single-layer", "classic"])
def test_entropy_is_that_of_every_head_over_its_maximum(model):
    batch, values = batch_of(model), []
    for document, heads in zip(batch.documents, model.attention(batch.documents)[:, 0], strict=True):
        # The paper's model attends to padding; a classic one attends to words alone.
        n = heads.shape[1] if len(heads) > 1 else len(document.ids) - 1
        for alpha in heads:
            values.append(-sum(a * log(a) for a in alpha if a > 0) / log(n))
    assert entropy(batch).item() == pytest.approx(np.mean(values))


def test_entropy_of_a_single_word_is_zero_and_has_a_gradient():
    model = classic()
    document = model.encode("good")
    batch = run_batch(model, torch.arange(1), [document], torch.tensor([1]), entropy)
    assert entropy(batch).item() == 0
    entropy(batch).backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.network.parameters())


@pytest.mark.parametrize("model", [tiny_model(), classic()], ids=["single-layer", "classic"])
def test_a_missed_rationale_is_the_mean_over_the_texts_that_have_one(model):
    batch = batch_of(model)
    marked = [*map(marked_tokens, batch.documents, EXAMPLES)]
    assert [None if m is None else np.flatnonzero(m).tolist() for m in marked] == [[4], None, [1, 2]]
    alpha = model.attention(batch.documents)[:, 0].mean(axis=1)
    expected = (-log(alpha[0, 4]) - log(alpha[2, 1] + alpha[2, 2])) / 2
    assert missed_rationale(marked)(batch).item() == pytest.approx(expected)
    assert missed_rationale([None] * 3)(batch).item() == 0


def test_marked_words_that_cannot_get_attention_do_not_count():
    model = classic(pairs=True)
    pairs = [Pair("good film", "a dull plot"), Pair("bad story", "not good")]
    documents = [model.encode(pair) for pair in pairs]
    batch = run_batch(model, torch.arange(2), documents, torch.tensor([1, 0]), lambda _: torch.zeros(()))
    # Of the first pair "good" and "dull" are marked, of the second a word of its second text alone.
    examples = [Example(pairs[0], 1, ((0, 4), (12, 16))), Example(pairs[1], 0, ((14, 18),))]
    marked = [*map(marked_tokens, documents, examples)]
    assert [np.array(d.pieces)[m].tolist() for d, m in zip(documents, marked, strict=True)] == [
        ["good", "dull"],
        ["good"],
    ]
    alpha = model.attention(documents)[0, 0, 0]
    assert missed_rationale(marked)(batch).item() == pytest.approx(-log(alpha[1]))


def test_training_on_rationales_moves_attention_onto_them_in_every_model():
    examples = [
        Example(text, label, ((4, 8),)) for text, label in (("the film was good .", 1), ("the plot was bad .", 0))
    ]
    for model in (tiny_model(), classic()):
        documents, shares = [model.encode(example.text) for example in examples], []
        for weight in (0.0, 1.0):
            loss = penalised({"rationale": weight}, documents, examples)
            recipe = FitRecipe(n_epochs=10, batch_size=2, learning_rate=5e-2)
            trained = fit_model(fresh(model, 0), documents, [1, 0], recipe, loss)
            shares.append(trained.attention(documents)[:, 0, :, 2].mean())
        assert shares[1] > shares[0] + 0.1


def test_a_rationale_behind_what_the_model_reads_marks_nothing():
    model = classic(T_max=3)
    assert marked_tokens(model.encode("the film was good"), Example("the film was good", 1, ((13, 17),))) is None


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_conicity_is_the_mean_cosine_with_the_mean_state(encoder, attention):
    model = classic(encoder, attention)
    batch, values = batch_of(model), []
    for document in batch.documents:
        h = states(model, document)
        mean = sum(h) / len(h)
        # A convolution may have a state of zeros, which has no direction.
        sizes = [max(np.sqrt((h_t @ h_t) * (mean @ mean)), 1e-9) for h_t in h]
        values.append(np.mean([h_t @ mean / size for h_t, size in zip(h, sizes, strict=True)]))
    assert conicity(batch).item() == pytest.approx(np.mean(values))


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_leak_is_what_a_state_has_from_other_words(encoder, attention):
    model = classic(encoder, attention)
    batch, values = batch_of(model), []
    for document in batch.documents:
        away = whole = 0.0
        for number, h_t in zip(document.ids[1:], states(model, document), strict=True):
            with torch.no_grad():
                alone, _ = model.network.first(model.network.W_e[number][None, None], torch.tensor([1]))
            difference = h_t - alone[0, 0].numpy()
            away, whole = away + difference @ difference, whole + h_t @ h_t
        values.append(away / whole)
    assert leak(batch).item() == pytest.approx(np.mean(values), abs=1e-12)
    if encoder == "average":
        assert leak(batch).item() == pytest.approx(0, abs=1e-12)


def test_the_losses_are_added_with_their_weights_and_without_any_there_is_cross_entropy_alone():
    batch = batch_of(classic())
    whole = penalised({"entropy": 0.5, "rationale": 2.0, "diversity": 0.0, "leak": 3.0}, batch.documents, EXAMPLES)
    missed = missed_rationale([*map(marked_tokens, batch.documents, EXAMPLES)])
    expected = cross_entropy(batch) + 0.5 * entropy(batch) + 2 * missed(batch) + 3 * leak(batch)
    assert whole(batch).item() == pytest.approx(expected.item())
    assert penalised(dict.fromkeys(LOSSES, 0.0), [], []) is cross_entropy


@pytest.mark.parametrize("name", LOSSES)
def test_training_with_a_loss_lowers_it(name):
    model = fresh(classic(), 0)
    documents, labels = [model.encode(text) for text in TEXTS * 4], [1, 0, 1] * 4
    recipe, values = FitRecipe(n_epochs=10, batch_size=4, learning_rate=1e-2), {}
    for weight in (0.0, 1.0):
        trained = fit_model(fresh(model, 0), documents, labels, recipe, penalised({name: weight}, documents, []))
        values[weight] = LOSSES[name](batch_of(trained)).item()
    assert values[1.0] < values[0.0] - 0.01


def test_texts_without_rationales_and_negative_weights_are_refused():
    with pytest.raises(BadInput, match="no rationales"):
        penalised({"rationale": 1.0}, [], [Example("a", 0)])
    for weight in (-0.1, inf):
        with pytest.raises(BadInput, match="entropy must be a number of at least 0"):
            check_penalties({"entropy": weight})
