import numpy as np
import pytest
from scipy import stats

from heedful.errors import BadInput, Unsupported
from heedful.evaluation.probes.retraining import correct, retrained, word_attention
from heedful.evaluation.probes.uniform_and_frozen import UniformAndFrozen
from heedful.models.attention_edits import uniform
from heedful.models.fitting.fit import FitRecipe
from tests.evaluation.probes.models import (
    LABELS,
    Stopped,
    count_trainings,
    divergence,
    inquiry_of,
    model_of,
    sharp,
    trained_inquiry,
)

QUICK = UniformAndFrozen(n_epochs=1, n_seeds=3, learning_rate=1e-2, start="scratch")


def test_the_numbers_are_those_of_models_trained_one_by_one():
    inquiry = trained_inquiry(sharp(encoder="bilstm"))
    texts = inquiry.training()

    def each_seed(**settings):
        recipes = [FitRecipe(1, learning_rate=1e-2, seed=seed) for seed in range(3)]
        return [retrained(inquiry, "scratch", recipe, **settings) for recipe in recipes]

    learned = each_seed()
    right = {"learned": [correct(model, texts) for model in learned]}
    right["uniform"] = [correct(model, texts, uniform) for model in each_seed(edit=uniform)]
    right["frozen"] = [correct(model, texts) for model in each_seed(frozen_attention=True)]
    attention = [word_attention(model, inquiry.documents) for model in learned]
    far = [
        [divergence(attention[a][text], attention[b][text]).mean() for text in range(6)]
        for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    found = {finding.what: finding.value for finding in QUICK.measure(inquiry).findings}
    for name, rows in right.items():
        each = np.mean(rows, axis=1)
        assert found[f"Accuracy with {name} attention, trained on 20 texts"].value == pytest.approx(each.mean())
        over = found[f"Accuracy with {name} attention, interval over 3 trainings"]
        assert over.value == pytest.approx(each.mean())
        if np.ptp(each):
            half = stats.t.ppf(0.975, 2) * each.std(ddof=1) / np.sqrt(3)
            assert (over.low, over.high) == pytest.approx((max(0, each.mean() - half), min(1, each.mean() + half)))
        else:
            assert np.isnan(over.low)
    assert any(np.ptp(np.mean(rows, axis=1)) for rows in right.values())
    assert found["Divergence of the attention of two seeds, of at most 0.693"].value == pytest.approx(np.mean(far))
    for name in ("uniform", "frozen"):
        lost = found[f"Accuracy lost with {name} attention"].value
        assert lost == pytest.approx(np.mean(right["learned"]) - np.mean(right[name]))


def test_a_killed_run_resumes_after_the_last_finished_training(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        done = count_trainings(patched, most=4)
        with pytest.raises(Stopped):
            QUICK.measure(trained_inquiry(sharp(), tmp_path))
        assert len(done) == 4
    done = count_trainings(monkeypatch)
    resumed = QUICK.measure(trained_inquiry(sharp(), tmp_path))
    assert [fitting.frozen_attention for fitting in done] == [False, True, False, False, True]
    assert repr(resumed) == repr(QUICK.measure(trained_inquiry(sharp())))


def test_one_training_has_no_interval_over_trainings():
    result = UniformAndFrozen(n_epochs=1, n_seeds=1).measure(trained_inquiry(sharp()))
    assert len(result.findings) == 5
    assert not any("trainings" in finding.what for finding in result.findings)


def test_a_model_that_is_trained_elsewhere_is_refused():
    with pytest.raises(BadInput, match="n_seeds"):
        UniformAndFrozen(n_seeds=0)
    with pytest.raises(Unsupported, match="give texts with labels"):
        QUICK.measure(inquiry_of(sharp(), labels=LABELS))
    with pytest.raises(Unsupported, match="trained elsewhere"):
        QUICK.measure(trained_inquiry(model_of("bert")))
