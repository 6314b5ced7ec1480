import numpy as np
import pytest
import torch

from heedful.errors import Unsupported
from heedful.evaluation.probes.retraining import (
    between_seeds,
    correct,
    divergences,
    restarted,
    retrained,
    training_texts,
    word_attention,
)
from heedful.models.attention_edits import uniform
from heedful.models.fitting.fit import FitRecipe
from tests.evaluation.probes.models import (
    LABELS,
    TEXTS,
    divergence,
    inquiry_of,
    model_of,
    own_attention,
    sharp,
    trained_inquiry,
)

OF_ATTENTION = {"classic": {"W_1.weight", "W_1.bias", "v"}, "single-layer": {"W_q", "W_k", "b_q"}}


@pytest.mark.parametrize("kind", OF_ATTENTION)
def test_a_training_begins_at_the_own_weights_except_those_of_attention(kind):
    model = model_of(kind)
    inquiry = trained_inquiry(model)
    weights = dict(model.network.named_parameters())
    own = restarted(model, inquiry.training(), 3, "own")
    changed = {
        name for name, weight in own.network.named_parameters() if not torch.equal(weight, weights[name].float())
    }
    assert changed - {"b_k"} == OF_ATTENTION[kind]
    new = restarted(model, inquiry.training(), 3, "scratch")
    for name, weight in own.network.named_parameters():
        assert not torch.equal(weight, dict(new.network.named_parameters())[name]) or name in {
            *OF_ATTENTION[kind],
            "b_k",
        }


def test_a_training_changes_the_weights_alone_and_the_seed_the_training():
    inquiry = trained_inquiry(sharp())
    recipes = [FitRecipe(2, learning_rate=1e-2, seed=seed) for seed in (0, 0, 1)]
    one, same, other = (retrained(inquiry, "scratch", recipe) for recipe in recipes)
    for name, weight in one.network.named_parameters():
        assert torch.equal(weight, dict(same.network.named_parameters())[name])
    assert not torch.equal(one.network.W_e, other.network.W_e)
    assert inquiry.model.network.W_e.dtype == torch.float64
    frozen = retrained(inquiry, "scratch", recipes[0], frozen_attention=True)
    assert torch.equal(frozen.network.v, restarted(inquiry.model, inquiry.training(), 0, "scratch").network.v)
    assert not torch.equal(frozen.network.v, one.network.v)


@pytest.mark.parametrize("edit", [None, uniform])
def test_a_text_is_right_if_its_label_has_the_largest_logit(edit):
    model = model_of("single-layer", n_classes=2)
    texts = trained_inquiry(model).training()
    logits = [model.logits([d])[0] if edit is None else model.edited([d], edit)[0] for d in texts.test_documents]
    assert correct(model, texts, edit).tolist() == [row.argmax() == n for row, n in zip(logits, LABELS, strict=True)]


@pytest.mark.parametrize("kind", ["single-layer", "classic", "bert"])
def test_attention_of_words_sums_to_one_in_every_head(kind):
    model = model_of(kind)
    documents = [model.encode(text) for text in TEXTS]
    for document, row in zip(documents, word_attention(model, documents), strict=True):
        alpha, is_word = own_attention(model, document)
        assert row == pytest.approx(alpha[:, is_word] / alpha[:, is_word].sum(axis=1, keepdims=True))


def test_divergences_are_means_over_heads_and_pairs_of_seeds():
    rng = np.random.default_rng(0)
    each = [[rng.dirichlet(np.ones(n), size=2) for n in (3, 5)] for _ in range(3)]
    first = [divergence(each[0][text], each[1][text]).mean() for text in (0, 1)]
    assert divergences(each[0], each[1]) == pytest.approx(first)
    pairs = [[divergence(each[a][text], each[b][text]).mean() for text in (0, 1)] for a, b in ((0, 1), (0, 2), (1, 2))]
    assert between_seeds(each) == pytest.approx(np.mean(pairs, axis=0))
    assert np.isnan(between_seeds(each[:1])).all()


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(Unsupported, match="give texts with labels"):
        training_texts(inquiry_of(sharp()))
    with pytest.raises(Unsupported, match="trained elsewhere"):
        retrained(trained_inquiry(model_of("bert")), "own", FitRecipe(1))
