"""Metrics against the package `quantus`, and infidelity against captum's, under the same absence.

Quantus knows pictures and tables, so the model is put before it as a function of a presence vector: 1 is a word that is
there, 0, its baseline, one that is gone. docs/parity.md says where the numbers are the same and why not elsewhere.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from captum.metrics import infidelity
from torch import nn

from heedful.metrics import measure
from heedful.metrics.compactness import Entropy, Gini
from heedful.metrics.complexity import EffectiveComplexity
from heedful.metrics.gold import GoldPrecision, GoldRecall
from heedful.metrics.infidelity import Infidelity
from heedful.metrics.monotonicity import LooCorrelation, Monotonicity
from heedful.metrics.removal import Deletion, EvidenceAgainst, EvidenceFor
from heedful.metrics.sensitivity import NonSensitivity
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of, masked_text, sets_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import quantus

TEXT = "good film was not bad but very dull and a bright story"
SCORES = np.random.default_rng(0).standard_normal(12)
HOLES = {"replace": "neverseen", "delete": None}


class Presence(nn.Module):
    """The logits of a text with only those words that are present, each masked text spelt out and read anew."""

    def __init__(self, model, text, hole):
        super().__init__()
        self.model, self.text, self.hole = model, text, hole

    def forward(self, present):
        rows = present.flatten(1) > 0.5
        texts = [masked_text(self.text, set(row.nonzero().flatten().tolist()), self.hole) for row in rows]
        return torch.from_numpy(self.model(texts))


def theirs(metric, model, scores, text=TEXT, hole="neverseen", softmax=False, shape=(1, -1), marked=None):
    """The metric's answer for one explanation of one text, at class 1."""
    marks = {} if marked is None else {"s_batch": np.array(marked, dtype=bool).reshape(1, *shape)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (result,) = metric(
            model=Presence(model, text, hole).eval(),
            x_batch=np.ones((1, len(scores))).reshape(1, *shape),
            y_batch=np.array([1]),
            a_batch=np.array(scores, dtype=float).reshape(1, *shape),
            softmax=softmax,
            channel_first=True,
            **marks,
        )
    return result


def over(heights):
    """The mean height of a curve by trapezoids, one step a word."""
    return float(np.mean((np.array(heights[1:]) + np.array(heights[:-1])) / 2))


def test_sparseness_is_the_gini_index(tiny):
    value = measure(Gini(), evaluation_of(tiny, TEXT, SCORES))
    assert value == pytest.approx(theirs(quantus.Sparseness(), tiny, SCORES), abs=1e-6)


def test_complexity_is_the_entropy(tiny):
    value = measure(Entropy(), evaluation_of(tiny, TEXT, SCORES))
    assert value == pytest.approx(theirs(quantus.Complexity(), tiny, SCORES), abs=1e-6)


@pytest.mark.parametrize("absence", HOLES)
def test_monotonicity_correlation_is_the_same(tiny, absence):
    metric = quantus.MonotonicityCorrelation(nr_samples=1, perturb_baseline=0.0)
    expected = theirs(metric, tiny, SCORES, hole=HOLES[absence])
    assert measure(Monotonicity(absences=absence), evaluation_of(tiny, TEXT, SCORES)) == pytest.approx(
        expected, abs=1e-6
    )


@pytest.mark.parametrize("absence", HOLES)
def test_the_faithfulness_estimate_by_ranks_is_the_correlation_with_leave_one_out(tiny, absence):
    metric = quantus.FaithfulnessEstimate(similarity_func=quantus.correlation_spearman, perturb_baseline=0.0)
    expected = theirs(metric, tiny, SCORES, hole=HOLES[absence])
    assert measure(LooCorrelation(absence=absence), evaluation_of(tiny, TEXT, SCORES)) == pytest.approx(
        expected, abs=1e-6
    )


@pytest.mark.parametrize("absence", HOLES)
@pytest.mark.parametrize("of", ["target", "probability"])
def test_pixel_flipping_is_the_curve_of_deletion(tiny, absence, of):
    flipped = theirs(
        quantus.PixelFlipping(perturb_baseline=0.0), tiny, SCORES, hole=HOLES[absence], softmax=of == "probability"
    )
    whole = Presence(tiny, TEXT, None)(torch.ones(1, 12))[0]
    whole = float((whole.softmax(dim=0) if of == "probability" else whole)[1])
    ours = Deletion(absence=absence, n_steps=12, evidence="for", measure_of=of)
    # Their curve begins when one word is gone.
    assert measure(ours, evaluation_of(tiny, TEXT, SCORES)) == pytest.approx(whole - over([whole, *flipped]), abs=1e-6)


def test_steps_of_several_words_are_the_same(tiny):
    flipped = theirs(quantus.PixelFlipping(features_in_step=3, perturb_baseline=0.0), tiny, SCORES)
    whole = float(tiny([TEXT])[0, 1])
    ours = measure(EvidenceFor(n_steps=4), evaluation_of(tiny, TEXT, SCORES))
    assert ours == pytest.approx(whole - over([whole, *flipped]), abs=1e-6)


@pytest.mark.parametrize(("order", "metric", "sign"), [("morf", EvidenceFor, 1), ("lerf", EvidenceAgainst, -1)])
def test_region_perturbation_is_evidence_for_and_from_the_other_end_against(tiny, order, metric, sign):
    lost = theirs(quantus.RegionPerturbation(patch_size=1, order=order, perturb_baseline=0.0), tiny, SCORES)
    assert len(lost) == 12
    ours = measure(metric(n_steps=12), evaluation_of(tiny, TEXT, SCORES))
    assert ours == pytest.approx(sign * over([0.0, *lost]), abs=1e-6)


def test_selectivity_of_single_words_is_the_same_curve(tiny):
    curve = theirs(quantus.Selectivity(patch_size=1, perturb_baseline=0.0), tiny, SCORES)
    whole = float(tiny([TEXT])[0, 1])
    ours = measure(EvidenceFor(n_steps=12), evaluation_of(tiny, TEXT, SCORES))
    assert ours == pytest.approx(whole - over([whole, *curve]), abs=1e-6)


def test_on_the_sets_of_quantus_our_outputs_give_its_infidelity(tiny):
    # Patches of one pixel go one after the other and stay gone: the sets are the beginnings of the text.
    result = theirs(
        quantus.Infidelity(perturb_patch_sizes=[1], n_perturb_samples=1, perturb_baseline=0.0),
        tiny,
        SCORES,
        shape=(1, 1, 12),
    )
    values = evaluation_of(tiny, TEXT, SCORES).values
    gone = np.tri(12, dtype=bool)
    lost = values.whole() - values(~gone)
    assert result == pytest.approx(np.mean((gone @ SCORES - lost) ** 2), abs=1e-6)
    assert result != pytest.approx(measure(Infidelity(scaling="none"), evaluation_of(tiny, TEXT, SCORES)), rel=0.01)


@pytest.mark.parametrize("absence", HOLES)
@pytest.mark.parametrize(("scaling", "normalize"), [("none", False), ("optimal", True)])
def test_on_the_same_sets_infidelity_is_captum_s(tiny, absence, scaling, normalize):
    evaluation = evaluation_of(tiny, TEXT, SCORES)
    ours = measure(Infidelity(absence=absence, n_sets=30, scaling=scaling, seed=1), evaluation)
    sets = sets_of(evaluation, absence)
    # With this seed none is drawn twice, so that what was asked says how often each counts.
    assert len(sets) == 30
    gone = torch.tensor([[float(place in some) for place in range(12)] for some in sets], dtype=torch.float64)
    result = infidelity(
        Presence(tiny, TEXT, HOLES[absence]),
        lambda present: (gone, present - gone),
        torch.ones(1, 12, dtype=torch.float64),
        torch.from_numpy(SCORES)[None],
        target=1,
        n_perturb_samples=len(sets),
        normalize=normalize,
    )
    assert ours == pytest.approx(float(result), abs=1e-6)


def test_faithfulness_correlation_is_another_measure_on_other_sets(tiny):
    # Their chance is the global state, so their sets can be drawn again.
    state = np.random.get_state()
    np.random.seed(0)
    result = theirs(
        quantus.FaithfulnessCorrelation(nr_runs=40, subset_size=4, perturb_baseline=0.0, return_aggregate=False),
        tiny,
        SCORES,
    )
    np.random.seed(0)
    gone = np.zeros((40, 12), dtype=bool)
    for row in gone:
        row[np.random.choice(12, 4, replace=False)] = True
    np.random.set_state(state)
    values = evaluation_of(tiny, TEXT, SCORES).values
    lost = values.whole() - values(~gone)
    assert result == pytest.approx(np.corrcoef(gone @ (SCORES / np.abs(SCORES).max()), lost)[0, 1], abs=1e-6)


def test_effective_complexity_of_quantus_does_not_evaluate_the_model(tiny):
    scores = SCORES.copy()
    scores[3:6] = 0
    other, words = linear(), " ".join(f"w{number}" for number in range(12))
    # It counts the scores that are not zero.
    assert theirs(quantus.EffectiveComplexity(), tiny, scores) == 9
    assert theirs(quantus.EffectiveComplexity(), other, scores, words) == 9
    ours = [measure(EffectiveComplexity(), evaluation_of(*asked, scores)) for asked in ((tiny, TEXT), (other, words))]
    assert ours[0] != ours[1]


def test_their_monotonicity_of_arya_et_al_is_true_of_every_explanation(tiny):
    # The words are never put back onto the baseline, so the curve that must rise is flat.
    for scores in (SCORES, -SCORES, np.arange(12.0)):
        assert theirs(quantus.Monotonicity(perturb_baseline=0.0), tiny, scores)


def test_non_sensitivity_counts_the_same_units_where_effects_are_there_or_not():
    # w0 … w9 have a weight, the others none.
    words, scores = [f"w{number}" for number in (0, 3, 9, 20, 21, 22, 23)], [0.5, 0.0, -1.0, 0.0, 2.0, 0.0, -0.3]
    text = " ".join(words)
    result = theirs(quantus.NonSensitivity(perturb_baseline=0.0), linear(), scores, text)
    assert result == 3
    assert measure(NonSensitivity(), evaluation_of(linear(), text, scores)) == result


def test_relevance_rank_accuracy_is_gold_precision_and_top_k_intersection_gold_recall(tiny):
    gold = np.isin(np.arange(12), [0, 3, 4, 7, 10])
    marked = replace(evaluation_of(tiny, TEXT, SCORES), gold=gold)
    rank = theirs(quantus.RelevanceRankAccuracy(abs=True), tiny, SCORES, marked=gold)
    assert 0 < rank < 1
    assert measure(GoldPrecision(), marked) == pytest.approx(rank, abs=1e-6)
    for k in (1, 3, 5, 8):
        top = theirs(quantus.TopKIntersection(k=k, abs=True), tiny, SCORES, marked=gold)
        # Theirs is over k, recall over the number of gold units.
        assert measure(GoldRecall(k=k), marked) == pytest.approx(top * k / 5, abs=1e-6)
