from dataclasses import replace

import pytest
import torch

from heedful.experiments.classifiers import as_single_layer
from heedful.experiments.summary.final_layer import fold_final_layer, hold_equal_values, hold_identity
from heedful.explainers.explain import explain
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from tests.conftest import tiny_model

TEXT = "the film was good but the plot was very dull"
CONFIG = TransformerConfig(n_heads=2, T_max=16, d_e=8, d_att=4, d_out=2, positional="authors")


def held(config: TransformerConfig, hold) -> Transformer:
    vocabulary = tiny_model().vocabulary
    network = initial_network(config, len(vocabulary), 0)
    with torch.no_grad():
        hold(network)
    return Transformer(network, vocabulary, ("a", "b"))


@pytest.mark.parametrize("changes", [{}, {"positional": "learned", "padding": "eos"}], ids=["paper", "trained"])
@pytest.mark.parametrize("method", ["attention-mean", "gradient-x-input", "lime-exact", "lime-theorem"])
def test_folding_the_final_layer_in_changes_nothing(method, changes):
    model = tiny_model(**changes)
    other = fold_final_layer(model)
    assert other.network.W_l.tolist() == [torch.eye(3).tolist()] * 3
    assert other([TEXT]) == pytest.approx(model([TEXT]), abs=1e-12)
    assert explain(other, TEXT, method).scores == pytest.approx(explain(model, TEXT, method).scores, abs=1e-10)


def test_without_a_final_layer_the_logits_are_the_values():
    model = held(CONFIG, hold_identity)
    (layer,) = model.network.layers
    e = model.embed([model.encode(TEXT)])[0]
    w = layer.weights
    expected = torch.zeros(2)
    for head in range(2):
        scores = (w["W_k"][head] @ e.T).T @ (w["W_q"][head] @ e[0]) / 4**0.5
        expected = expected + torch.softmax(scores, dim=0) @ (e @ w["W_v"][head].T) / 2
    assert model([TEXT])[0] == pytest.approx(expected.detach().numpy(), abs=1e-6)


def test_with_equal_values_a_class_gets_the_attention_that_its_head_pays_to_words():
    model = held(CONFIG, hold_equal_values)
    document = model.encode(TEXT)
    attention = model.attention([document])[0, 0]
    paid = attention[:, 1 : len(document.ids)].sum(axis=1)
    # What positions add to the coordinate is all that is left of a difference.
    assert model([TEXT])[0] == pytest.approx(12.0 * paid, rel=0.02)


def test_with_equal_values_the_class_s_head_explains():
    model = as_single_layer(held(CONFIG, hold_equal_values))
    for label in (0, 1):
        lime = explain(model, TEXT, "lime-exact", target=label, unit="type").scores
        alpha = explain(model, TEXT, "attention-mean", target=label, unit="type", head=label).scores
        assert (lime > 0).all()
        assert lime.argmax() == alpha.argmax()


def test_equal_values_need_one_head_a_class():
    with pytest.raises(ValueError, match="one head"):
        held(replace(CONFIG, n_heads=3), hold_equal_values)
    with pytest.raises(ValueError, match="authors"):
        held(replace(CONFIG, positional="equation-3"), hold_equal_values)
