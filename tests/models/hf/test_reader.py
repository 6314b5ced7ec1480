import numpy as np
import pytest
import torch

import heedful
from tests.families import word_pieces
from tests.tasks import CHOICE, inputs_of, network_of


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_choices_are_scored_one_by_one(family):
    network = network_of("choice", family)
    model = heedful.wrap(network, word_pieces())
    choices = ["a dull plot", "bright", "very good ."]
    pairs = [heedful.Pair(CHOICE.first, choice) for choice in choices]
    read = word_pieces()([CHOICE.first] * 3, choices, return_tensors="pt", padding=True)
    names = inputs_of("choice", family)
    with torch.no_grad():
        together = network(**{name: read[name][None] for name in names}).logits[0]
    assert np.allclose(model(pairs)[:, 0], together, atol=1e-9)
    assert model.classes == ("the choice",)


def test_the_first_sentence_is_followed_by_the_second_or_a_random_one():
    model = heedful.wrap(network_of("next", "bert"), word_pieces())
    explanation = heedful.explain(model, CHOICE, "attention-mean", target="random", scale="probability")
    with torch.no_grad():
        ids = word_pieces()(CHOICE.first, CHOICE.second, return_tensors="pt")
        assert explanation.output == pytest.approx(model.network(**ids).logits[0].softmax(0)[1].item())
