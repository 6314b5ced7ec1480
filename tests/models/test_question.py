from dataclasses import replace

import numpy as np

from heedful.models.budget import Budget
from heedful.models.question import Wanted, ask
from heedful.models.readout import counted_forwards
from tests.families import TEXTS, build


def test_recording_gradient_and_logits_cost_two_passes_in_total():
    model = build("bert")
    with counted_forwards(model.network) as passes:
        question = ask(model, TEXTS[:1])
        _ = question.gradient, question.gradient, question.recording, question.attention, question.logits
        other = replace(question, budget=Budget(memory=10**9))
        _ = other.gradient, other.recording, other.targets
    assert len(passes) == 2


def test_what_was_computed_is_kept_where_it_holds_and_only_there(tiny):
    question = ask(tiny, ["good film", "bad plot"], "positive")
    pooling = question.pooling("mask")
    assert question.pooling("mask") is pooling
    assert replace(question, budget=Budget(memory=1)).pooling("mask") is pooling
    negative = replace(question, wanted=Wanted("negative"))
    assert np.array_equal(negative.logits, question.logits)
    assert negative.pooling("mask") is not pooling
    (second,) = question.only([1]).documents
    assert second is question.documents[1]
    assert question.only([0, 1]).pooling("mask") is pooling
    assert np.array_equal(question.only([1]).logits, question.logits[1:])


def test_values_at_masks_are_those_of_the_model_and_pool_once(tiny, monkeypatch):
    question = ask(tiny, ["good film bad plot"], "positive")
    document, (target,) = question.documents[0], question.targets
    keep = np.random.default_rng(0).random((6, len(document.ids))) < 0.5
    keep[:, 0] = True
    expected = {absence: tiny.masked(document, target, keep, absence) for absence in ("replace", "mask", "delete")}
    n_pooled, pooling = [], type(tiny).pooling

    def counted(self, *inputs):
        n_pooled.append(None)
        return pooling(self, *inputs)

    monkeypatch.setattr(type(tiny), "pooling", counted)
    for _ in range(3):
        for absence, values in expected.items():
            assert np.array_equal(question.masked(0, keep, absence), values)
    assert len(n_pooled) == 2
