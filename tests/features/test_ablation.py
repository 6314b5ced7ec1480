from dataclasses import replace

import numpy as np
import pytest

from heedful.errors import BadInput
from heedful.features.ablation import Ablation, effect
from heedful.statistics.intervals import mean_intervals
from tests.families import TEXTS, build
from tests.features.random_dictionaries import random_dictionary

ALL = [*TEXTS, "a bad dull plot", "very good", "the actor was bright", "an unforgettable story"]
LABELS = ["good", "bad", "good", "bad", "good", "good", "neutral"]


def measured(**settings):
    model = build("encoder")
    dictionary = random_dictionary(model, width=40, k=4)
    return model, dictionary, effect(dictionary, [3, 17], ALL, LABELS, "good", n_random=6, progress=None, **settings)


def test_every_run_is_the_model_without_the_features():
    model, dictionary, result = measured()
    plain = model(ALL)
    assert np.allclose(result.outputs[0], plain[:, 1])
    for run, removed in enumerate([(3, 17), *result.random], start=1):
        with dictionary.ablate(removed):
            logits = model(ALL)
        assert np.allclose(result.outputs[run], logits[:, 1])
        assert result.accuracy[run] == np.mean([model.classes[n] for n in logits.argmax(axis=1)] == np.array(LABELS))


def test_changes_are_means_over_texts_beside_the_mean_of_the_random_sets():
    _, _, result = measured()
    own, others = result.outputs[1] - result.outputs[0], (result.outputs[2:] - result.outputs[0]).mean(axis=0)
    changes = result.changes("output")
    for change, values in zip(changes[:2], (own, others), strict=True):
        low, high = mean_intervals(values[None])
        assert tuple(change) == pytest.approx((values.mean(), low[0], high[0]))
    means = np.abs((result.outputs[1:] - result.outputs[0]).mean(axis=1))
    assert changes[2].value == pytest.approx(means[0] - means[1:].mean())
    assert result.p_value("output") == pytest.approx((1 + (means[1:] >= means[0]).sum()) / 7)
    content = result.as_dict()
    low, high = mean_intervals(own[None])
    assert content["output"]["change"] == pytest.approx([own.mean(), low[0], high[0]])
    assert content["output"]["random"][0] == pytest.approx(others.mean())
    assert (content["features"], content["n_random"], content["n_texts"]) == ([*result.features], 6, len(own))
    assert set(content["accuracy"]) == {"change", "random", "more", "p"}


def test_random_sets_have_other_features_of_nearly_the_same_density():
    _, dictionary, result = measured()
    density = dictionary.density.numpy()
    rank = np.argsort(np.argsort(np.abs(density[:, None] - density[[3, 17]]), axis=0), axis=0)
    for some in result.random:
        assert len(set(some)) == 2
        assert not {3, 17} & set(some)
        assert all(rank[feature, place] <= 22 for place, feature in enumerate(some))
    assert measured()[2].random == result.random
    assert measured(seed=1)[2].random != result.random


def ablation_of(means, features=(4,), right=None):
    noise = np.random.default_rng(0).normal(size=(len(means), 30))
    sets = tuple((10 + number,) for number in range(len(means) - 2))
    return Ablation(features, sets, "the logit of good", noise + np.array(means)[:, None], right)


def test_the_verdict_says_whether_the_features_change_more_than_random_ones():
    strong = ablation_of([0.0, -3.0, *[0.1, -0.1] * 10])
    assert strong.changes()[2].low > 0
    assert strong.verdict.startswith("Removing the feature changes the logit of good more than removing random ones: -")
    assert strong.verdict.endswith("without 20 random sets (p = 0.048).")
    right = strong.outputs[[0, 0, *range(2, 22)]] > 0
    weak = ablation_of([0.0, -3.0, *[0.1, -0.1] * 10], (1, 2), right)
    assert "Removing 2 features does not change accuracy measurably more" in weak.verdict
    assert repr(weak) == f"<{weak.verdict}>"
    few = ablation_of([0.0, -3.0, 0.1, -0.1])
    assert few.verdict.endswith("without 2 random sets, too few for a verdict; 19 are needed.")


def test_random_sets_that_cancel_each_other_are_no_proof():
    cancelling = ablation_of([0.0, -3.0, *[3.0, -3.0] * 10])
    assert abs(cancelling.changes()[1].value) < 0.5
    assert "does not change the logit of good measurably more" in cancelling.verdict


def test_a_set_drawn_as_the_random_ones_seldom_matters_more():
    n_more = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        outputs = rng.normal(size=(22, 1)) + rng.normal(size=(22, 60))
        outputs[0] = 0.0
        verdict = Ablation((0,), ((1,),) * 20, "good", outputs, None).verdict
        n_more += "more than removing random ones: " in verdict and "not change" not in verdict
    assert n_more <= 20


def test_without_a_target_the_output_is_that_of_the_predicted_class():
    model = build("encoder")
    result = effect(random_dictionary(model), [1, 2], ALL, n_random=1, progress=None)
    assert result.target == "the output of the predicted class"
    assert np.allclose(result.outputs[0], model(ALL).max(axis=1))
    assert result.accuracy is None


def test_requests_that_make_no_sense_are_refused():
    dictionary = random_dictionary(build("encoder"))
    for features, labels, settings, message in [
        ([], None, {}, "1 to 6 features"),
        (range(7), None, {}, "1 to 6 features"),
        ([99], None, {}, "features 0 to 11"),
        ([1], ["good"], {}, "one label for each of 7 texts"),
        ([1], [*LABELS[:-1], None], {}, "no label"),
        ([1], [*LABELS[:-1], "fine"], {}, "must be a class"),
        ([1], None, {"n_random": 0}, "from 1 to 10,000; 0 was given"),
    ]:
        with pytest.raises(BadInput, match=message):
            effect(dictionary, features, ALL, labels, progress=None, **settings)
    with pytest.raises(BadInput, match="no texts"):
        effect(dictionary, [1], [], progress=None)
    unknown = replace(dictionary, density=dictionary.density * 0)
    with pytest.raises(BadInput, match=r"dictionary\.measured"):
        effect(unknown, [1], ALL, progress=None)
    without_labels = effect(dictionary, [1], ALL, False, n_random=1, progress=None)
    assert without_labels.right is None
    for number in (without_labels.changes, without_labels.p_value):
        with pytest.raises(BadInput, match='of is "output"'):
            number("accuracy")
