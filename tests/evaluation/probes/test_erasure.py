from itertools import combinations

import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.evaluation.probes.erasure import Erasure, exact_minimum, flipped
from heedful.evaluation.probes.last_attention import last_attention
from tests.evaluation.probes.models import TEXTS, inquiry_of, model_of, own_attention, sharp

HEURISTICS = ["by attention", "by the slope of the decision in the weight", "by slope × attention"]


def flips_without(model, document, sets):
    """Whether another class wins without the attention to each set of words, in one pass of edited maps."""
    alpha, is_word = own_attention(model, document)
    places, weights = np.flatnonzero(is_word), []
    for some in sets:
        row = alpha.copy()
        row[:, places[list(some)]] = 0
        left = row.sum(axis=1, keepdims=True)
        weights.append(row / left if (left > 1e-9).all() else alpha)
    last = len(model.attention([document])[0]) - 1

    def edit(layer, maps):
        return maps if layer < last else torch.from_numpy(np.stack(weights))[:, :, None].expand_as(maps)

    return other_wins(model.edited([document] * len(sets), edit), model.logits([document])[0])


def other_wins(logits, own):
    """Whether the class that won has less than another; a tie is no change."""
    if len(own) == 1:
        return np.sign(own[0]) * logits[:, 0] < -1e-9
    return logits.max(axis=1) > logits[:, own.argmax()] + 1e-9


def brute_force(model, document):
    """The least number of words without whose attention the decision flips; None if there is none."""
    n = int(own_attention(model, document)[1].sum())
    for size in range(1, n + 1):
        if flips_without(model, document, [*combinations(range(n), size)]).any():
            return size
    return None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_exact_minimum_is_that_of_all_subsets_and_no_order_needs_fewer(n_classes):
    found = []
    for seed in range(3):
        model = sharp(seed, n_classes=n_classes, encoder=["average", "convolution", "bilstm"][seed % 3])
        for text in TEXTS[1:5]:
            inquiry = inquiry_of(model, [text])
            last, least = inquiry.attention(0), brute_force(model, inquiry.documents[0])
            n, smallest = int(last.is_word.sum()), exact_minimum(last)
            found.append(least)
            assert n <= 9
            assert (smallest is None) == (least is None)
            if smallest is not None:
                assert len(smallest) == least
                assert flips_without(model, last.document, [smallest.tolist()])[0]
            numbers = {f.what.partition(", ")[2]: f.value.value for f in Erasure().measure(inquiry).findings[1:]}
            assert numbers["the exact minimum"] == (1.0 if least is None else pytest.approx(least / n))
            assert all(numbers[name] >= numbers["the exact minimum"] for name in HEURISTICS)
    assert None in found
    assert sum(least is not None for least in found) > 4
    assert max(filter(None, found)) > 1


@pytest.mark.parametrize("kind", ["single-layer", "single-logit", "torch"])
def test_the_largest_weight_is_erased_as_by_hand_and_the_others_in_turn(kind):
    model = model_of(kind)
    inquiry = inquiry_of(model, TEXTS[:4])
    top, other = [], []
    for document in inquiry.documents:
        last = last_attention(model, document)
        alpha, is_word = own_attention(model, document)
        order = np.argsort(-alpha[:, is_word].mean(axis=0), kind="stable")
        alone = np.eye(len(order), dtype=bool)[order]
        flips = flips_alone(model, document, alone, last)
        top.append(flips[0])
        other.append(flips[1:].mean())
    finding = Erasure(n_random=100).measure(inquiry).findings[0]
    assert finding.value.value == pytest.approx(np.mean(top))
    assert finding.null.value == pytest.approx(np.mean(other))


def flips_alone(model, document, alone, last):
    if last.n_read == 1:
        return flips_without(model, document, [np.flatnonzero(row) for row in alone])
    logits = []
    for row in alone:
        kept = torch.from_numpy(np.where(row, 0.0, 1.0))

        def edit(layer, maps, kept=kept):
            return maps if layer < last.layer else maps * kept / (maps * kept).sum(dim=-1, keepdim=True)

        logits.append(model.edited([document], edit)[0])
    return other_wins(np.stack(logits), model.logits([document])[0])


def test_the_words_of_an_order_are_erased_until_the_decision_flips():
    model = model_of("single-layer")
    inquiry = inquiry_of(model)
    needed = []
    for document in inquiry.documents:
        alpha, is_word = own_attention(model, document)
        order = np.argsort(-alpha[:, is_word].mean(axis=0), kind="stable").tolist()
        sets = [order[:size] for size in range(1, len(order) + 1)]
        flips = np.flatnonzero(flips_without(model, document, sets))
        needed.append(1.0 if not len(flips) else (flips[0] + 1) / len(order))
    result = Erasure().measure(inquiry)
    (found,) = [f.value.value for f in result.findings if f.what.endswith("by attention")]
    assert found == pytest.approx(np.mean(needed))
    assert np.mean(needed) < 1
    assert not any("exact" in finding.what for finding in result.findings)


def test_a_tie_is_no_flip_and_no_decision_is_left_without_attention():
    model = sharp()
    last = last_attention(model, model.encode(TEXTS[0]))
    everything = np.ones((1, last.is_word.sum()), dtype=bool)
    assert not flipped(last, everything).any()
    with torch.no_grad():
        model.network.W_c.weight.zero_()
    even = last_attention(model, model.encode(TEXTS[0]))
    assert not flipped(even, np.eye(len(even.tokens), dtype=bool)).any()
    assert exact_minimum(even) is None


def test_one_word_and_bad_settings():
    result = Erasure().measure(inquiry_of(sharp(), ["good", "film"]))
    assert result.answer == "unknown"
    assert "No text has two words" in result.why
    with pytest.raises(BadInput, match="n_random"):
        Erasure(n_random=0)
