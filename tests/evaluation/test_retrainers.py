"""How ROAR trains: by a function, again, or side by side."""

from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.evaluation.replaced_words import WordTexts, read_spans
from heedful.evaluation.retrainers import SingleLayerRetrainer, replacement_word, retrainer_of
from heedful.models.fitting.many_at_once import GONE
from heedful.models.network import Network
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from heedful.models.vocabulary import UNK
from tests.planted import CONFIG, EXAMPLES, RECIPE, SPLITS, VOCABULARY, Planted, train_counts

MODEL = SingleLayer(Network(CONFIG, initial_weights(CONFIG, len(VOCABULARY), 5)), VOCABULARY, Planted.classes)


def parts(n=60):
    found = {}
    for split in SPLITS:
        texts = tuple(example.text for example in EXAMPLES[split][:n])
        labels = np.array([example.label for example in EXAMPLES[split][:n]])
        found[split] = WordTexts(texts, labels, *read_spans(MODEL, texts)).all_or_none(False)
    return found


def accuracy(train, classes=("negative", "positive")):
    retrainer = retrainer_of(train)
    return retrainer.accuracies([(parts(), 0)], "unknown", classes, lambda _: None)


def test_the_accuracy_is_that_of_the_trained_model_whatever_the_order_of_its_classes():
    whole = parts()
    model = train_counts(list(whole["train"].source.texts), whole["train"].source.labels.tolist(), 0)
    scores = np.array(model(list(whole["test"].source.texts)))
    by_hand = (scores.argmax(axis=1) == whole["test"].source.labels).mean()
    assert accuracy(train_counts) == [by_hand]
    assert by_hand > 0.9

    def turned(texts, labels, seed):
        own = train_counts(texts, labels, seed)
        return heedful.wrap(lambda some: np.array(own(some))[:, ::-1].tolist(), classes=["positive", "negative"])

    assert accuracy(turned) == [by_hand]


def test_what_the_function_does_wrong_is_a_sentence():
    with pytest.raises(BadInput, match="has 2 outputs and the labels 3 classes; return one output for each class"):
        accuracy(train_counts, ("a", "b", "c"))
    with pytest.raises(BadInput, match=r"The function that trains failed with ZeroDivisionError: division by zero\.$"):
        accuracy(lambda texts, labels, seed: 1 / 0)
    with pytest.raises(BadInput, match="train must be a function of .texts, labels, seed. .*; 7 was given"):
        retrainer_of(7)
    with pytest.raises(Unsupported, match=r"trained elsewhere; give ROAR a function .*model=model\)"):
        retrainer_of(heedful.wrap(train_counts(["a", "b"], [0, 1], 0)))
    with pytest.raises(BadInput, match="Only the paper's model is trained on the mean vector"):
        retrainer_of(train_counts).imputation("mean")
    with pytest.raises(BadInput, match="at_once must be a whole number of at least 1; 0 was given"):
        SingleLayerRetrainer(MODEL, RECIPE, 0)


def test_a_changed_function_or_recipe_is_another_claim():
    assert retrainer_of(train_counts).claim() != retrainer_of(lambda texts, labels, seed: None).claim()
    one, slower = (SingleLayerRetrainer(MODEL, replace(RECIPE, learning_rate=rate)).claim() for rate in (1e-2, 1e-3))
    assert one != slower


@pytest.mark.parametrize(("imputation", "number"), [("mean", GONE), ("unknown", GONE), ("replace:film", None)])
def test_the_words_of_the_paper_s_model_are_replaced_by_number(imputation, number):
    retrainer, whole = SingleLayerRetrainer(MODEL, RECIPE), parts(5)["train"].source
    changed = whole.replaced(np.concatenate([np.arange(n) for n in whole.lengths]), "remove", 0.2)
    number = VOCABULARY.index["film"] if number is None else number
    for text, row in zip(whole.texts, retrainer._ids(changed, imputation), strict=True):
        assert row.tolist() == [0, number, number, *VOCABULARY.ids(text.split()[2:])]
    assert [replacement_word(name) for name in ("unknown", "delete", "replace:x:y")] == ["[UNK]", "", "x:y"]
    # The unknown word in a text is the unknown word of the model.
    assert MODEL.encode("great [UNK]").ids[2] == UNK


def test_a_model_of_another_kind_is_trained_from_new_weights():
    from heedful.models.classic.classifier import Classic
    from heedful.models.classic.network import ClassicConfig, initial_classic

    config = ClassicConfig(encoder="average", d_e=8)
    model = Classic(initial_classic(config, len(VOCABULARY), 0), VOCABULARY, Planted.classes)
    from heedful.models.fitting.fit import FitRecipe

    retrainer = retrainer_of(model, FitRecipe(n_epochs=6, batch_size=10, learning_rate=5e-2))
    before = model(["great film"]).tolist()
    (reached,) = retrainer.accuracies([(parts(), 1)], "unknown", Planted.classes, lambda _: None)
    assert reached > 0.9
    assert model(["great film"]).tolist() == before
    assert retrainer.explained is model


def test_the_numbers_of_texts_that_are_gone_are_not_those_of_others():
    retrainer, seen = SingleLayerRetrainer(MODEL, RECIPE), set()
    for number in range(50):
        # The memory of the last texts is free again, so that the next ones may have their address.
        source = parts(3 + number % 5)["train"].source
        seen.add(id(source))
        assert len(retrainer._whole(source)) == 3 + number % 5
    assert len(seen) < 50
