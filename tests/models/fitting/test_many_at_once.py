"""Models trained side by side: as `heedful train` trains each, with removed words at the mean vector."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.models.fitting.many_at_once import (
    GONE,
    BestEpoch,
    _logits,
    padded_ids,
    train_many,
    word_frequencies,
)
from heedful.models.network import Network
from heedful.models.training import initial_weights, train
from heedful.models.vocabulary import CLS, UNK, Vocabulary
from tests.planted import BAD, CONFIG, EXAMPLES, GOOD, RECIPE, SPLITS, VOCABULARY, Planted

IDS = {split: padded_ids([example.text for example in EXAMPLES[split]], VOCABULARY, CONFIG.T_max) for split in SPLITS}
LABELS = {split: np.array([example.label for example in EXAMPLES[split]]) for split in SPLITS}
DECIDING = VOCABULARY.ids(BAD + GOOD)


def test_texts_are_read_as_the_paper_s_model_reads_them():
    ids = padded_ids(["great film, great", "", "a b c d e"], Vocabulary(("[cls]", "[unk]", "film", "great", "a")), 4)
    assert ids.tolist() == [[CLS, 3, 2, UNK], [CLS, UNK, UNK, UNK], [CLS, 4, UNK, UNK]]


# The second learning rate destroys what was learnt, so that the best epoch is not the last.
@pytest.mark.parametrize(("learning_rate", "n_epochs", "is_last"), [(2e-2, 3, True), (1.0, 6, False)])
def test_it_trains_and_chooses_as_heedful_train_does(tmp_path, learning_rate, n_epochs, is_last):
    recipe = replace(RECIPE, learning_rate=learning_rate, n_epochs=n_epochs)
    model, epochs = train(Planted(), CONFIG, replace(recipe, seed=3), tmp_path)
    assert model.vocabulary == VOCABULARY
    (trained,) = train_many(CONFIG, len(VOCABULARY), recipe, LABELS, [(IDS, 3)])
    best = max(epochs, key=lambda epoch: epoch.validation_accuracy)
    assert (best.number + 1 == n_epochs) == is_last
    predicted = model([example.text for example in EXAMPLES["test"]]).argmax(axis=1)
    test_accuracy = float((predicted == LABELS["test"]).mean())
    # A text whose two logits are nearly equal may fall to the other side by rounding.
    assert trained == BestEpoch(best.number + 1, *(pytest.approx(x, abs=0.004) for x in (best[3], test_accuracy)))


def test_models_trained_side_by_side_do_not_touch_each_other():
    without = {split: np.where(np.isin(ids, DECIDING), GONE, ids).astype(np.int32) for split, ids in IDS.items()}
    cases = [(IDS, 0), (without, 0), (IDS, 1)]
    recipe = replace(RECIPE, n_epochs=3)
    together = train_many(CONFIG, len(VOCABULARY), recipe, LABELS, cases)
    for case, result in zip(cases, together, strict=True):
        (alone,) = train_many(CONFIG, len(VOCABULARY), recipe, LABELS, [case])
        assert result == BestEpoch(alone.epoch, *(pytest.approx(accuracy, abs=0.004) for accuracy in alone[1:]))
    assert together[0].test_accuracy > 0.9
    assert together[1].test_accuracy < 0.6


def test_a_removed_word_has_the_mean_vector_of_the_words_of_the_training_texts():
    """By hand: the vectors of all words of all training texts, averaged; texts with that vector in the word's place."""
    n_words, ids = len(VOCABULARY), IDS["test"][:3].copy()
    network = Network(CONFIG, initial_weights(CONFIG, n_words, 0))
    weights = {name: weight.detach()[None] for name, weight in network.named_parameters() if weight.requires_grad}
    W_e = weights["W_e"][0]
    words = [word for row in IDS["train"].tolist() for word in row[1:] if word != UNK]
    mean = W_e[torch.tensor(words)].double().mean(dim=0)
    ids[:, 2] = GONE
    e = torch.stack([W_e[torch.tensor(row)] for row in np.where(ids == GONE, UNK, ids).tolist()])
    by_unknown = network(e + network.W_p)
    e[:, 2] = mean.float()
    by_mean = network(e + network.W_p)
    frequencies = torch.from_numpy(word_frequencies(IDS["train"], n_words))
    read = torch.from_numpy(ids)[None]
    assert torch.allclose(_logits(network, weights, frequencies, read)[0], by_mean, atol=1e-5)
    assert torch.allclose(_logits(network, weights, None, read)[0], by_unknown, atol=1e-5)
    assert not torch.allclose(by_mean, by_unknown, atol=1e-3)
