from itertools import combinations
from math import factorial

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.features.units import importance
from heedful.statistics.intervals import mean_intervals
from tests.families import TEXTS, build
from tests.features.random_dictionaries import random_dictionary

FAMILIES = ("bert", "encoder", "gpt2", "own-gpt2")


def ablated(model, dictionary, document, removed):
    """The logits without some features."""
    if not removed:
        return model.logits([document])[0]
    with dictionary.ablate(removed):
        return model.logits([document])[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_mask_ablates_the_features_that_it_removes(family):
    model = build(family)
    dictionary = random_dictionary(model, k=4)
    units = dictionary.as_units()
    features = units.encode(TEXTS[1])
    n = len(features.ids)
    keep = np.random.default_rng(0).random((9, n)) < 0.5
    values = units.masked(features, heedful.Target(1, "1"), keep, "replace", at_once=4)
    document = model.encode(TEXTS[1])
    expected = [ablated(model, dictionary, document, features.ids[~row].tolist())[1] for row in keep]
    assert np.allclose(values, expected, atol=1e-5)
    assert np.allclose(units.logits([features]), model.logits([document]))


def test_units_are_the_active_features_by_what_they_contribute():
    model = build("encoder")
    dictionary = random_dictionary(model, k=3)
    every = dictionary.as_units(by="activation").encode(TEXTS[1])
    document = model.encode(TEXTS[1])
    from heedful.models.language.activations import find_sites, record_activations

    site = find_sites(model, "residual")[1]
    x = record_activations(model, [document], [site]).at[site][0, 1:]
    sums = dictionary.encode(x).sum(dim=0)
    assert every.ids.tolist() == sums.argsort(descending=True)[: int((sums > 0).sum())].tolist()
    assert every.word_texts[0] == f"feature {every.ids[0]}"
    two = dictionary.as_units(n=2, by="activation").encode(TEXTS[1])
    assert two.ids.tolist() == every.ids[:2].tolist()
    assert f"2 of {len(every.ids)} active features are units: the others always stay." in two.notes

    by_slope = dictionary.as_units().encode(TEXTS[1])
    first, second = np.argsort(-model.logits([document])[0])[:2]
    # The slope along a feature, from a step of a thousandth of it.
    sizes = []
    for number in by_slope.ids.tolist():
        added = torch.outer(dictionary.encode(x)[:, number], dictionary.W_dec[number]).to(x)

        def hook(module, inputs, added=added):
            out = inputs[0].clone()
            out[0, 1:] += 1e-4 * added
            return (out, *inputs[1:])

        handle = model.network.layers[1].register_forward_pre_hook(hook)
        moved = model.logits([document])[0] - model_logits_without(handle, model, document)
        sizes.append(abs(moved[first] - moved[second]))
    assert sizes == sorted(sizes, reverse=True)


def model_logits_without(handle, model, document):
    handle.remove()
    return model.logits([document])[0]


def test_shapley_values_of_features_are_those_of_every_subset():
    model = build("bert")
    dictionary = random_dictionary(model, k=2)
    units = dictionary.as_units(n=5)
    explanation = heedful.explain(units, TEXTS[0], "shapley-sampled", target=1)
    features, document = explanation.document.ids.tolist(), model.encode(TEXTS[0])
    n = len(features)
    value = {
        kept: ablated(model, dictionary, document, [f for f in features if f not in kept])[1]
        for size in range(n + 1)
        for kept in combinations(features, size)
    }
    scores = []
    for feature in features:
        others = [f for f in features if f != feature]
        scores.append(
            sum(
                factorial(size)
                * factorial(n - size - 1)
                / factorial(n)
                * (value[tuple(f for f in features if f in (*kept, feature))] - value[kept])
                for size in range(n)
                for kept in combinations(others, size)
            )
        )
    assert np.allclose(explanation.scores, scores, atol=1e-4)
    assert explanation.units[0] == f"feature {features[0]}"
    assert explanation.model == units.fingerprint != model.fingerprint


@pytest.mark.parametrize("method", ["lime", "leave-one-out", "banzhaf-sampled", "random"])
def test_methods_of_masks_explain_features(method):
    model = build("encoder")
    units = random_dictionary(model, k=4).as_units(n=6)
    explanation = heedful.explain(units, TEXTS[1], method, target="good")
    assert len(explanation.scores) == len(explanation.units) <= 6
    if method == "leave-one-out":
        document = model.encode(TEXTS[1])
        before = model.logits([document])[0, 1]
        each = [before - ablated(model, units.dictionary, document, [f])[1] for f in explanation.document.ids.tolist()]
        assert np.allclose(explanation.scores, each, atol=1e-5)


def test_features_of_what_a_model_wrote_explain_its_output():
    model = build("gpt2")
    units = random_dictionary(model).as_units(heedful.continuation(model, max_new=3), n=4)
    explanation = heedful.explain(units, TEXTS[0], "leave-one-out")
    with units.dictionary.ablate([int(explanation.document.ids[2])]):
        without = units.base.logits([units._behind[explanation.document].document])[0, 0]
    assert explanation.scores[2] == pytest.approx(explanation.output - without, abs=1e-5)


def test_importance_is_the_mean_over_texts_with_zero_where_a_feature_is_no_unit():
    model = build("encoder")
    units = random_dictionary(model, width=40, k=1).as_units(n=3)
    texts = [*TEXTS, "a bad dull plot", "very good", "the actor was bright", "an unforgettable story"]
    explanations = heedful.explain(units, texts, "leave-one-out", target="good", progress=None)
    table = importance(explanations)
    assert [row.mean_abs for row in table] == sorted((row.mean_abs for row in table), reverse=True)
    for row in table:
        scores = np.zeros(len(texts))
        for text, item in enumerate(explanations):
            own = item.document.ids == row.feature
            scores[text] = item.scores[own].sum()
        low, high = mean_intervals(np.abs(scores)[None], (0.0, np.inf))
        assert row.mean == pytest.approx(scores.mean())
        assert row.mean_abs == pytest.approx(np.abs(scores).mean())
        assert (row.abs_low, row.abs_high) == pytest.approx((low[0], high[0]), nan_ok=True)
        assert not row.abs_low < 0
        assert row.n_texts == sum(row.feature in item.document.ids for item in explanations)
    with pytest.raises(BadInput, match="one target"):
        importance([])
    fewer = heedful.explain(units.dictionary.as_units(model, 2), texts[0], "leave-one-out", target="good")
    with pytest.raises(BadInput, match="different dictionaries"):
        importance([*explanations, fewer])
    for model_of, unit in ((units, "sentence"), (model, "word")):
        others = heedful.explain(model_of, texts, "leave-one-out", target="good", unit=unit, progress=None)
        with pytest.raises(BadInput, match="whose units are features"):
            importance(others)


def test_requests_that_make_no_sense_are_refused():
    model = build("encoder")
    dictionary = random_dictionary(model)
    units = dictionary.as_units()
    with pytest.raises(BadInput, match="from 1 to 1,000; 0 was given"):
        dictionary.as_units(n=0)
    with pytest.raises(BadInput, match="belongs to the model"):
        dictionary.as_units(build("bert"))
    with pytest.raises(Unsupported, match="cannot be changed"):
        dictionary.as_units(heedful.wrap(lambda texts: [[0.2, 0.8] for _ in texts]))
    with pytest.raises(Unsupported, match="leave absence out"):
        heedful.explain(units, TEXTS[0], "leave-one-out", absence="delete")
    with pytest.raises(Unsupported, match="needs gradients"):
        heedful.explain(units, TEXTS[0], "gradient-x-input")
    with pytest.raises(BadInput, match="give the text"):
        units.logits([model.encode(TEXTS[0])])
    from dataclasses import replace

    silent = replace(dictionary, b_enc=dictionary.b_enc - 1e6).as_units()
    with pytest.raises(BadInput, match="No feature of the dictionary is active"):
        silent.encode(TEXTS[0])
