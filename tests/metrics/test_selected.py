from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.metrics import measure
from heedful.metrics.selected import KeptAccuracy, KeptPrediction
from tests.metrics.linear import GOLD, Noisy, evaluations, linear, texts


@pytest.mark.parametrize("k", [1, 3, 5, 100])
def test_the_prediction_is_that_of_the_text_with_all_other_words_replaced(k):
    model = linear()
    for evaluation in evaluations(Noisy())[:10]:
        words = evaluation.explanation.document.units("word")
        kept = set(np.argsort(-np.abs(evaluation.scores), kind="stable")[:k].tolist())
        alone = " ".join(word if i in kept else "unknown" for i, word in enumerate(words))
        own, short = (int(model([text]).argmax()) for text in (" ".join(words), alone))
        assert measure(KeptPrediction(n_kept=k), evaluation) == (own == short)
        for label in (0, 1):
            assert measure(KeptAccuracy(n_kept=k), replace(evaluation, label=label)) == (short == label)


def test_a_report_has_the_accuracy_from_the_strongest_words_against_the_labels():
    labelled = [(text, int(linear()([text]).argmax()) if i % 2 else 0) for i, text in enumerate(texts()[:8])]
    names = ["kept-accuracy", "kept-prediction"]
    report = heedful.trust(linear(), labelled, "leave-one-out", names, gold=GOLD, n_kept=20, progress=None)
    for document, (text, label) in zip(report.documents, labelled, strict=True):
        own = int(linear()([text]).argmax())
        assert document.values["leave-one-out"] == {"kept-accuracy": float(own == label), "kept-prediction": 1.0}


def test_wrong_settings_and_labels_are_refused():
    evaluation = evaluations(Noisy())[0]
    with pytest.raises(BadInput, match="needs n_kept ≥ 1"):
        KeptPrediction(n_kept=0)
    with pytest.raises(Unsupported, match="none of the model's classes"):
        measure(KeptAccuracy(), replace(evaluation, label=2))
    with pytest.raises(Unsupported, match="has no label"):
        measure(KeptAccuracy(), replace(evaluation, label=None))
