import numpy as np
import pytest
from scipy.stats import spearmanr

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.models.altered import scrambled
from tests.families import build
from tests.metrics.linear import linear, texts

TEXTS = texts()


def test_exact_weights_of_a_linear_model_indicate_its_confidence_and_random_scores_do_not():
    exact = heedful.diagnose(linear(), TEXTS, "leave-one-out", n=30)
    random = heedful.diagnose(linear(), TEXTS, "random", n=30)
    assert exact.confidence_gain.low > 0 > random.confidence_gain.low
    assert exact.confidence_error.value < random.confidence_error.value


def test_the_confidence_is_predicted_from_saliency_distances_without_the_text_s_own_fold():
    model, result = linear(), heedful.diagnose(linear(), TEXTS, "leave-one-out", n=30)
    p = np.array([(np.exp(z) / np.exp(z).sum()).max() for z in model(TEXTS)])
    # With two classes all three numbers are the one distance, and f(∅) = 0: it is twice the logit.
    distance = np.abs(np.diff(model(TEXTS), axis=1)[:, 0])
    errors = []
    for i in range(30):
        rest = [j for j in range(30) if j % 5 != i % 5]
        slope, bias = np.polyfit(distance[rest], p[rest], 1)
        errors.append(abs(np.clip(slope * distance[i] + bias, 0, 1) - p[i]))
    assert result.confidence_error.value == pytest.approx(np.mean(errors), abs=1e-9)


def test_consistency_over_pairs_of_texts_is_spearman_s_of_both_differences():
    def function(some):
        rows = np.array([[len(text), text.count("w1") / 3] for text in some]) / 9
        return np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)

    model, some = heedful.wrap(function), TEXTS[:10]
    result = heedful.diagnose(model, some, "leave-one-out", n=10, unit="type")
    scores = [heedful.explain(model, text, "leave-one-out", unit="type") for text in some]
    acts, gaps = [], []
    for i in range(10):
        for j in range(i + 1, 10):
            a, b = (
                dict(zip(e.units, e.scores / np.linalg.norm(e.scores), strict=True)) for e in (scores[i], scores[j])
            )
            gaps.append(1 - sum(a[word] * b[word] for word in a if word in b))
            acts.append(np.abs(function(some)[i] - function(some)[j]).mean())
    assert result.dataset_consistency.value == pytest.approx(spearmanr(acts, gaps).statistic, abs=1e-6)


def test_two_models_are_compared_on_every_text_and_other_sizes_are_refused():
    model = build("bert")
    some = [
        f"the {word} was {other}" for word in ("film", "plot", "story", "actor") for other in ("good", "bad", "dull")
    ]
    result = heedful.diagnose(model, some, "gradient-l1", other=scrambled(model), n=12)
    assert -1 <= result.rationale_consistency.value <= 1
    assert result.rationale_consistency.low < result.rationale_consistency.high
    assert not result.notes
    same = heedful.diagnose(model, some, "gradient-l1", other=model, n=12)
    assert np.isnan(same.rationale_consistency.value)
    assert "There is no rationale consistency: between the two models" in same.notes[0]
    three = heedful.wrap(lambda some: [[0.2, 0.3, 0.5]] * len(some))
    with pytest.raises(Unsupported, match="same architecture"):
        heedful.diagnose(linear(), TEXTS, "leave-one-out", other=three, n=12)


@pytest.mark.parametrize(("given", "sentence"), [({"n": 5}, "10 texts"), ({"method": "nothing"}, "no method")])
def test_wrong_arguments_are_refused(given, sentence):
    with pytest.raises(BadInput, match=sentence):
        heedful.diagnose(linear(), TEXTS, **given)
