import numpy as np
import pytest
import torch

from heedful.errors import BadInput, Unsupported
from heedful.evaluation.probes.retraining import retrained, word_attention
from heedful.evaluation.probes.trained_adversary import TrainedAdversary, adversary_loss, outputs
from heedful.models.fitting.batch import run_batch
from heedful.models.fitting.fit import FitRecipe
from tests.evaluation.probes.models import (
    Stopped,
    count_trainings,
    distribution,
    divergence,
    model_of,
    sharp,
    trained_inquiry,
)

QUICK = TrainedAdversary(n_epochs=1, learning_rate=1e-2)


@pytest.mark.parametrize("kind", ["classic", "single-layer"])
def test_the_loss_is_that_of_wiegreffe_and_pinter_by_hand(kind):
    model, other = model_of(kind), model_of(kind, seed=5)
    documents = trained_inquiry(model).training().documents
    own, rows = outputs(model, documents), [7, 2, 11]
    loss = adversary_loss(model, documents, own)(0.25)
    some = [documents[row] for row in rows]
    batch = run_batch(other, torch.tensor(rows), some, torch.zeros(3, dtype=torch.long), loss)
    expected = []
    for row, document in zip(rows, some, strict=True):
        change = np.abs(distribution(other.logits([document])[0]) - own[row]).sum() / 2
        new, old = (one.attention([document])[0, -1] for one in (other, model))
        seen = old > 0
        kl = [np.sum(a[s] * np.log(a[s] / b[s])) for a, b, s in zip(new, old, seen, strict=True)]
        expected.append(change - 0.25 * np.mean(kl))
    assert loss(batch).item() == pytest.approx(np.mean(expected))
    assert own[7] == pytest.approx(distribution(model.logits([documents[7]])[0]))


def test_the_numbers_are_those_of_the_adversary_that_keeps_the_decisions():
    inquiry = trained_inquiry(sharp())
    model, texts = inquiry.model, inquiry.training()
    own, base = outputs(model, texts.documents), word_attention(model, texts.documents)
    best = None
    for strength in (1e-3, 1e-2, 1e-1):
        loss = adversary_loss(model, texts.documents, own)(strength)
        adversary = retrained(inquiry, "own", FitRecipe(1, learning_rate=1e-2), loss)
        kept = (outputs(adversary, texts.documents).argmax(axis=1) == own.argmax(axis=1)).mean()
        far = np.mean(
            [divergence(*pair).mean() for pair in zip(word_attention(adversary, texts.documents), base, strict=True)]
        )
        worth = far if kept >= 0.95 else -strength
        if best is None or worth > best[0]:
            best = worth, strength, adversary
    _, strength, adversary = best
    p, q = (np.stack([distribution(row) for row in one.logits(inquiry.documents)]) for one in (adversary, model))
    both = zip(word_attention(adversary, inquiry.documents), word_attention(model, inquiry.documents), strict=True)
    result = QUICK.measure(inquiry)
    first, change, kept = result.findings
    assert first.what.endswith(f"λ = {strength:g}")
    assert first.value.value == pytest.approx(np.mean([divergence(*pair).mean() for pair in both]), abs=1e-6)
    assert change.value.value == pytest.approx(np.abs(p - q).sum(axis=1).mean() / 2)
    assert kept.value.value == pytest.approx((p.argmax(axis=1) == q.argmax(axis=1)).mean())


def test_a_killed_run_resumes_after_the_last_finished_training(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        count_trainings(patched, most=2)
        with pytest.raises(Stopped):
            QUICK.measure(trained_inquiry(sharp(), tmp_path))
    done = count_trainings(monkeypatch)
    resumed = QUICK.measure(trained_inquiry(sharp(), tmp_path))
    # λ = 0.1; and λ = 0, as no adversary keeps the decisions.
    assert len(done) == 2
    assert resumed == QUICK.measure(trained_inquiry(sharp()))


def test_bad_settings_and_models_are_refused():
    with pytest.raises(BadInput, match="n_epochs"):
        TrainedAdversary(n_epochs=0)
    with pytest.raises(Unsupported, match="trained elsewhere"):
        QUICK.measure(trained_inquiry(model_of("bert")))
