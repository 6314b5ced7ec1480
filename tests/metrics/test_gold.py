from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Evaluation, measure
from heedful.metrics.gold import GoldPrecision, GoldRecall
from heedful.models.deaf import heard_units
from heedful.models.question import ask
from heedful.perturb.document_values import DocumentValues
from tests.families import build
from tests.metrics.masked_text import evaluation_of

TEXT = "the film was good and bad but not dull"
SCORES = [0.1, -3.0, 0.2, 2.0, -0.3, 1.0, 0.4, -0.9, 0.05]


def on(gold, scores=SCORES):
    model = heedful.wrap(lambda texts: [[0.0, float(len(text))] for text in texts])
    return replace(evaluation_of(model, TEXT, scores), gold=np.array([word in gold for word in TEXT.split()]))


@pytest.mark.parametrize(
    ("gold", "k", "recall"),
    [
        ({"film", "good", "bad"}, 3, 1.0),
        ({"film", "good", "dull"}, 3, 2 / 3),
        # One of four is named: more gold words than named ones cannot all be found.
        ({"film", "was", "dull", "and"}, 2, 1 / 4),
        ({"dull"}, 8, 0.0),
        ({"dull", "the"}, 8, 1 / 2),
    ],
)
def test_recall_is_the_share_of_known_words_that_are_named(gold, k, recall):
    """Lecture, chapter 10.2: true positives over true positives and false negatives."""
    assert measure(GoldRecall(k=k), on(gold)) == pytest.approx(recall)
    named = {word for _, word in sorted(zip(np.abs(SCORES), TEXT.split(), strict=True))[-k:]}
    true_positives, false_negatives = len(gold & named), len(gold - named)
    assert recall == true_positives / (true_positives + false_negatives)


def test_the_lecture_s_example():
    """Gold features 1, 3 and 5, named features 3, 4 and 5: two of three."""
    gold, scores = {"the", "was", "and"}, [0.1, 0.2, 3, 2, 4, 0, 0, 0, 0]
    assert measure(GoldPrecision(), on(gold, scores)) == pytest.approx(2 / 3)
    assert measure(GoldRecall(k=3), on(gold, scores)) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("gold", "precision"), [({"film", "good"}, 1.0), ({"film", "bad"}, 0.5), ({"the", "film", "dull"}, 1 / 3)]
)
def test_precision_selects_as_many_units_as_there_are_gold_units(gold, precision):
    assert measure(GoldPrecision(), on(gold)) == pytest.approx(precision)


@pytest.mark.parametrize("family", ["bert", "gpt2", "transformer", "torch", "single-layer", "function"])
def test_what_is_left_of_a_deaf_model_of_any_family_is_found_by_leaving_one_out(family, tiny):
    def counted(texts):
        return [[0.0, sum(len(set(word)) for word in text.split() if word.isalpha()) / 9] for text in texts]

    whole = heedful.wrap(counted) if family == "function" else tiny if family == "single-layer" else build(family)
    model = heedful.deaf(whole, ["good", "bad"])
    text = "the plot was very good , but not very bad and a good bad plot"
    question = ask(model, [text])
    gold = heard_units(model, question.documents[0], "word")
    assert gold.sum() == 4
    explanation = heedful.explain(model, text, "leave-one-out")
    evaluation = Evaluation(question, explanation, DocumentValues(question, "word"), gold=gold)
    assert measure(GoldPrecision(), evaluation) == 1.0
    assert measure(GoldRecall(), evaluation) == 1.0


def test_texts_in_which_nothing_can_be_missed_or_found_are_refused():
    with pytest.raises(Unsupported, match="contains none of the words"):
        measure(GoldRecall(k=3), on(set()))
    with pytest.raises(Unsupported, match="select fewer than all"):
        measure(GoldRecall(), on({"good"}))
    with pytest.raises(Unsupported, match="select fewer than all"):
        measure(GoldPrecision(), on(set(TEXT.split())))
    with pytest.raises(BadInput, match="k ≥ 1"):
        measure(GoldRecall(k=0), on({"good"}))
    with pytest.raises(Unsupported, match="needs the words that the model uses"):
        measure(GoldPrecision(), replace(on({"good"}), gold=None))
