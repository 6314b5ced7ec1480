from collections import Counter

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.evaluation.probes.deceived import Deceived, deception_loss, is_one_of, masses, most_attended
from heedful.evaluation.probes.retraining import retrained
from heedful.models.fitting.batch import run_batch
from heedful.models.fitting.fit import FitRecipe
from tests.evaluation.probes.models import (
    TEXTS,
    Stopped,
    count_trainings,
    model_of,
    own_attention,
    sharp,
    trained_inquiry,
    values,
)

WORDS = frozenset({"good", "dull", "unbelievable"})
QUICK = Deceived(words="Good dull", n_epochs=1, learning_rate=1e-2)


def test_tokens_of_a_word_are_found_in_any_case():
    document = model_of("bert").encode("Good unbelievable film")
    chosen = is_one_of(document, WORDS)
    pieces = [piece for piece, one in zip(document.pieces, chosen, strict=True) if one]
    assert pieces[0].lower() == "good"
    assert "".join(piece.removeprefix("##") for piece in pieces[1:]) == "unbelievable"
    assert not chosen[[0, -1]].any()


@pytest.mark.parametrize("kind", ["classic", "single-layer"])
def test_the_loss_is_that_of_pruthi_by_hand(kind):
    model = model_of(kind, n_classes=2)
    documents = [model.encode(text) for text in TEXTS]
    rows, labels = torch.tensor([4, 0, 1]), torch.tensor([1, 0, 1])
    some = [documents[row] for row in rows]
    for penalty in (0.0, 0.5):
        loss = deception_loss(documents, WORDS, penalty)
        expected = []
        for document, label in zip(some, labels.tolist(), strict=True):
            logits, alpha = model.logits([document])[0], model.attention([document])[0, -1]
            hidden = [place for place, piece in enumerate(document.pieces) if piece in WORDS]
            kept = 1 - alpha[:, hidden].sum(axis=1)
            expected.append(np.logaddexp.reduce(logits) - logits[label] - penalty * np.log(kept).mean())
        batch = run_batch(model, rows, some, labels, loss)
        assert loss(batch).item() == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("kind", ["classic", "single-layer"])
def test_masses_and_the_words_with_most_attention_are_those_by_hand(kind):
    model = model_of(kind)
    documents = [model.encode(text) for text in TEXTS]
    totals, expected = Counter(), []
    for document in documents:
        alpha, is_word = own_attention(model, document)
        row = (alpha[:, is_word] / alpha[:, is_word].sum(axis=1, keepdims=True)).mean(axis=0)
        words = document.text.split()
        expected.append(sum(weight for word, weight in zip(words, row, strict=True) if word in WORDS))
        for word, weight in zip(words, row.tolist(), strict=True):
            totals[word] += weight
    assert masses(model, documents, WORDS) == pytest.approx(expected)
    assert most_attended(model, documents, 3) == {word for word, _ in totals.most_common(3)}


def test_the_numbers_are_those_of_both_models():
    inquiry = trained_inquiry(sharp())
    texts, words = inquiry.training(), frozenset({"good", "dull"})
    found = values(QUICK.measure(inquiry))
    model = retrained(inquiry, "own", FitRecipe(1, learning_rate=1e-2), deception_loss(texts.documents, words, 1.0))
    assert found["Attention to the words (dull good)"] == pytest.approx(
        np.mean(masses(model, texts.test_documents, words))
    )
    right = model.logits(texts.test_documents).argmax(axis=1) == texts.test_labels
    assert found["Accuracy"] == pytest.approx(right.mean())
    shares = []
    for text in TEXTS:
        scores = np.abs(heedful.explain(model, text, "leave-one-out").scores)
        chosen = np.isin(text.split(), ["good", "dull"])
        shares.append(scores[chosen].sum() / scores.sum())
    assert found["Share of the scores of leave-one-out"] == pytest.approx(np.mean(shares), abs=1e-6)


def test_a_long_training_hides_the_words_that_are_not_needed():
    probe = Deceived(words="the a an was", n_epochs=30, penalty=5.0, learning_rate=1e-1)
    findings = probe.measure(trained_inquiry(sharp())).findings
    assert findings[0].value.value < 0.1 * findings[0].null.value


def test_a_killed_run_resumes_after_the_last_finished_training(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        count_trainings(patched, most=1)
        with pytest.raises(Stopped):
            QUICK.measure(trained_inquiry(sharp(), tmp_path))
    done = count_trainings(monkeypatch)
    resumed = QUICK.measure(trained_inquiry(sharp(), tmp_path))
    assert len(done) == 1
    assert resumed == QUICK.measure(trained_inquiry(sharp()))


def test_bad_settings_and_models_are_refused():
    for settings in ({"n_words": 0}, {"penalty": 0.0}):
        with pytest.raises(BadInput, match="deceived"):
            Deceived(**settings)
    with pytest.raises(Unsupported, match="trained elsewhere"):
        QUICK.measure(trained_inquiry(model_of("bert")))
