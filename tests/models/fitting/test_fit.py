from dataclasses import asdict
from math import isnan

import numpy as np
import pytest
import torch

from heedful.errors import BadInput, Unsupported
from heedful.models.attention_edits import uniform
from heedful.models.fitting.batch import cross_entropy
from heedful.models.fitting.fit import FitRecipe, Fitting, accuracy_of, attention_only, batches_by_length
from heedful.models.fitting.fresh import fresh
from tests.conftest import tiny_model
from tests.families import build
from tests.models.classic.models import KINDS, PAIRS, classic
from tests.models.test_training import Killed

RECIPE = FitRecipe(n_epochs=6, batch_size=4, learning_rate=2e-2)
MODELS = {"single-layer": tiny_model, "transformer": lambda: build("transformer"), "classic": classic}


def fit_model(model, documents, labels, recipe=FitRecipe(), *loss, state=None, watch=lambda *_: None, **more):  # noqa: B008
    """The model, trained; it may go on from a file."""
    Fitting(model, documents, labels, recipe, *loss, **more).run(state, watch)
    return model


def data(model, n=40):
    """Texts of different length, whose label is whether they say good."""
    rng, documents, labels = np.random.default_rng(0), [], []
    for label in rng.integers(0, 2, size=n):
        words = [*rng.choice(["the", "film", "plot", "a"], size=rng.integers(1, 8)), ("bad", "good")[label]]
        documents.append(model.encode(" ".join(rng.permutation(words))))
        labels.append(int(label))
    return documents, labels


def weights(model):
    return {name: weight.detach().numpy().tobytes() for name, weight in model.network.named_parameters()}


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_learns_in_place_and_has_another_fingerprint(kind):
    model = fresh(MODELS[kind](), 0)
    documents, labels = data(model)
    before = model.fingerprint
    recipe = FitRecipe(n_epochs=20, batch_size=4, learning_rate=2e-3) if kind == "transformer" else RECIPE
    assert fit_model(model, documents, labels, recipe) is model
    assert accuracy_of(model, documents, labels) > 0.9
    assert model.fingerprint != before


@pytest.mark.parametrize("edit", [None, uniform], ids=["own", "uniform"])
@pytest.mark.parametrize("kind", MODELS)
def test_a_killed_run_resumes_to_the_same_bytes(kind, edit, tmp_path):
    model, recipe = MODELS[kind](), FitRecipe(n_epochs=3, batch_size=8)
    documents, labels = data(model, 30)
    whole = fit_model(fresh(model, 1), documents, labels, recipe, edit=edit)

    def kill(epoch, batch, n_batches):
        if (epoch, batch) == (1, 2):
            raise Killed

    path = tmp_path / "state.safetensors"
    with pytest.raises(Killed):
        fit_model(fresh(model, 1), documents, labels, recipe, edit=edit, state=path, watch=kill)
    resumed = fit_model(fresh(model, 1), documents, labels, recipe, edit=edit, state=path)
    assert weights(resumed) == weights(whole)


def test_a_step_is_that_of_adam_with_the_largest_second_moment():
    model = classic()
    documents, labels = data(model, 4)
    by_hand = {name: weight.detach().clone() for name, weight in model.network.named_parameters()}
    logits = model.forward(model.embed(documents), documents)
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(labels))
    gradients = torch.autograd.grad(loss, list(model.network.parameters()))
    fit_model(model, documents, labels, FitRecipe(n_epochs=1, learning_rate=1e-3, weight_decay=1e-2))
    for (name, weight), g in zip(model.network.named_parameters(), gradients, strict=True):
        g = g + 1e-2 * by_hand[name]
        # After one step both moments are those of the gradient itself.
        assert torch.allclose(weight, by_hand[name] - 1e-3 * g / (g.abs() + 1e-8), atol=1e-9)


EXPECTED = {
    "single-layer": {"W_q", "W_k", "b_q"},
    "transformer": {f"layers.{n}.weights.{name}" for n in range(3) for name in ("W_q", "W_k", "b_q", "b_k")},
    "classic": {"v", "W_1.weight", "W_1.bias"},
}


@pytest.mark.parametrize("kind", MODELS)
def test_frozen_attention_keeps_what_acts_through_attention_alone_and_moves_the_rest(kind):
    model = MODELS[kind]()
    documents, labels = data(model)
    # The key's bias adds the same to every score, so its gradient is rounding.
    assert {*attention_only(model, documents[:8], labels[:8])} - {"b_k"} == EXPECTED[kind]
    model = fresh(model, 0)
    before = weights(model)
    fit_model(model, documents, labels, FitRecipe(n_epochs=1), frozen_attention=True)
    after = weights(model)
    moved = {name for name in before if before[name] != after[name]}
    trained = {name for name, weight in model.network.named_parameters() if weight.requires_grad}
    assert moved - {"b_k"} == trained - EXPECTED[kind] - {"b_k"}


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_the_weights_of_attention_are_found_in_every_classic_model(encoder, attention):
    model = classic(encoder, attention)
    documents, labels = data(model, 8)
    expected = ("v", "W_1.weight", "W_1.bias") if attention == "tanh" else ("v",)
    assert attention_only(model, documents, labels) == expected


def test_a_model_without_such_weights_cannot_be_frozen():
    model = classic("average", "dot", pairs=True)
    documents = [model.encode(pair) for pair in PAIRS]
    with pytest.raises(Unsupported, match="nothing to freeze"):
        fit_model(model, documents, [0, 1, 2], frozen_attention=True)


def test_batches_hold_every_text_once_and_are_of_similar_length():
    lengths = np.random.default_rng(0).integers(2, 60, size=500).tolist()
    recipe = FitRecipe(batch_size=8, seed=3)
    one, again, other = (batches_by_length(lengths, recipe, epoch) for epoch in (0, 0, 1))
    assert sorted(torch.cat(one).tolist()) == list(range(500))
    assert [b.tolist() for b in one] == [b.tolist() for b in again]
    assert [b.tolist() for b in one] != [b.tolist() for b in other]
    spread = np.mean([np.ptp(np.array(lengths)[batch.numpy()]) for batch in one])
    assert spread < 5
    firsts = [lengths[int(batch[0])] for batch in one]
    assert firsts != sorted(firsts)


def test_with_held_out_texts_the_best_epoch_on_them_stays_and_without_there_is_no_accuracy():
    model = fresh(classic(), 0)
    documents, labels = data(model)
    contrary = [1 - label for label in labels]
    epochs = Fitting(model, documents, labels, RECIPE, held_out=(documents, contrary)).run()
    best = max(epoch.validation_accuracy for epoch in epochs)
    assert accuracy_of(model, documents, contrary) == best > epochs[-1].validation_accuracy
    assert all(isnan(epoch.validation_accuracy) for epoch in Fitting(model, documents, labels, RECIPE).run())
    assert isnan(accuracy_of(model, [], []))


def test_another_loss_is_minimised():
    model = fresh(classic(), 0)
    documents, labels = data(model)

    def on_the_first_word(batch):
        return cross_entropy(batch) - 5 * batch.attention[:, 0, 1].mean()

    fit_model(model, documents, labels, RECIPE, on_the_first_word)
    assert model.attention(documents)[:, 0, 0, 1].mean() > 0.9


def test_recipes_and_labels_that_do_not_fit_are_refused():
    for name, value in asdict(FitRecipe()).items():
        with pytest.raises(BadInput, match=name):
            FitRecipe(**{name: type(value)(-1)})
    with pytest.raises(BadInput, match="2 texts have 1 labels"):
        fit_model(classic(), [classic().encode("a")] * 2, [1])
