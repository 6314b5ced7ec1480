from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.models.budget import Budget, bytes_of
from heedful.models.question import MaskValues, ask
from heedful.perturb.sweep import Interrupted, Sweep, spread_copies
from tests.families import network_of

TEXT = "good film good story"


def test_a_unit_s_tokens_go_together_and_cls_stays(tiny):
    sweep = Sweep(ask(tiny, [TEXT], "positive"), 0, "type", "delete")
    value = sweep(np.array([[False, True, True]]))
    assert np.allclose(value, tiny(["film story"])[0, 1], atol=1e-12)


LONG = "good film was very bad but bright and not dull"


def test_portions_change_nothing_and_equal_masks_are_evaluated_once(tiny):
    keep = np.random.default_rng(0).random((50, 10)) < 0.5
    keep[30:] = keep[:20]
    progress = []
    few = Budget(memory=32 * 11 * 2, watch=lambda done, goal: progress.append((done, goal)))
    whole = Sweep(ask(tiny, [LONG], "positive"), 0, "word", "replace")
    parts = Sweep(ask(tiny, [LONG], "positive", budget=few), 0, "word", "replace")
    assert np.allclose(parts(keep), whole(keep), atol=1e-14)
    assert parts.n_masks == whole.n_masks == len(np.unique(keep, axis=0)) == 30
    assert progress == [(16, 30), (30, 30)]


def test_a_stopped_sweep_keeps_what_was_evaluated(tiny):
    def stop(done, _):
        if done >= 20:
            raise KeyboardInterrupt

    keep = np.random.default_rng(0).random((50, 10)) < 0.5
    whole = Sweep(ask(tiny, [LONG], "positive"), 0, "word", "replace")(keep)
    sweep = Sweep(ask(tiny, [LONG], "positive", budget=Budget(memory=32 * 11 * 2, watch=stop)), 0, "word", "replace")
    with pytest.raises(Interrupted) as stopped:
        sweep(keep)
    evaluated = stopped.value.evaluated
    assert 20 <= evaluated.sum() < 50
    assert np.allclose(stopped.value.values[evaluated], whole[evaluated], atol=1e-14)


SURE = {"n_samples": "auto", "until": "signs", "confidence": 0.999999, "tolerance": 1e-9, "budget": 10_000}
RUNS = [("lime", {}, 1500), ("shapley-sampled", {}, 1500), ("sobol", {}, 1500), ("lime", SURE, 60)]


@pytest.mark.parametrize(("method", "settings", "masks"), [*RUNS, ("shapley-sampled", SURE, 60)])
def test_a_stopped_run_gives_a_valid_explanation(paper, method, settings, masks):
    text = " ".join(paper.vocabulary.words[100:130])

    def stop(done, _):
        if done >= masks:
            raise KeyboardInterrupt

    few = {"memory": 32 * 31 * 5, "target": 1}
    whole = heedful.explain(paper, text, method, **few, **settings)
    part = heedful.explain(paper, text, method, progress=stop, **few, **settings)
    assert "Stopped by the user after" in part.notes[-1]
    assert masks <= part.facts["masks"] < whole.facts["masks"]
    assert (part.error > 0).all()
    assert np.median(part.error) > np.median(whole.error)
    inside = np.abs(part.scores - whole.scores) <= np.hypot(part.error, whole.error)
    assert inside.mean() > 0.8


@pytest.mark.slow
def test_masks_evaluated_before_a_stop_are_a_fair_sample(paper):
    rng = np.random.default_rng(3)
    text = " ".join(rng.choice(paper.vocabulary.words[2:3000], size=24))

    def stop(done, _):
        if done >= 300:
            raise KeyboardInterrupt

    truth = heedful.explain(paper, text, "lime-exact", target=1)
    settings = {"target": 1, "progress": stop, "memory": 32 * 25 * 5}
    explanations = [heedful.explain(paper, text, "lime", seed=seed, **settings) for seed in range(150)]
    scores = np.array([explanation.scores for explanation in explanations])
    inside = np.array([np.abs(explanation.scores - truth.scores) <= explanation.error for explanation in explanations])
    off = (scores.mean(axis=0) - truth.scores) / (scores.std(axis=0, ddof=1) / np.sqrt(len(scores)))
    assert np.abs(off).max() < 4.5
    assert 0.92 <= inside.mean() <= 0.98
    assert inside.mean(axis=0).min() > 0.88


def test_a_run_stopped_at_once_gives_nothing(tiny):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        heedful.explain(tiny, LONG, "lime", n_samples=500, progress=stop, memory=32 * 11)


@pytest.mark.parametrize(("size", "n_bytes"), [("2GB", 2e9), ("500 MB", 5e8), ("1.5g", 1.5e9), (1000, 1000)])
def test_sizes_are_read_as_people_write_them(size, n_bytes):
    assert bytes_of(size) == n_bytes


@pytest.mark.parametrize("size", ["much", "-2GB", "0", ""])
def test_other_sizes_are_refused(size):
    with pytest.raises(BadInput, match="2GB"):
        bytes_of(size)


def test_half_precision_is_used_where_it_moves_little_and_noted():
    network, tokenizer = network_of("bert")
    model, text = heedful.wrap(network.float(), tokenizer), "a very bad film , but not dull"
    full, half = (heedful.explain(model, text, "leave-one-out", target=1, half=half) for half in (False, True))
    assert not full.notes
    used = "Half precision was used" in half.notes[-1]
    assert used or "Half precision was not used" in half.notes[-1]
    assert (np.abs(half.scores - full.scores).max() > 0) == used
    assert np.abs(half.scores - full.scores).max() <= 0.1 * np.abs(full.scores).max()


def test_a_question_with_stored_values_evaluates_no_mask_twice(tiny):
    plain, storing = ask(tiny, [LONG], "positive"), replace(ask(tiny, [LONG], "positive"), mask_values=MaskValues())
    keep = np.random.default_rng(0).random((40, 10)) < 0.5
    expected = Sweep(plain, 0, "word", "replace")(keep)
    assert np.array_equal(Sweep(storing, 0, "word", "replace")(keep[:30]), expected[:30])
    again = Sweep(storing, 0, "word", "replace")
    assert np.array_equal(again(keep), expected)
    assert storing.mask_values.n_evaluated == len(np.unique(keep, axis=0)) == again.n_masks
    assert storing.mask_values.n_requested == len(np.unique(keep[:30], axis=0)) + again.n_masks
    deleted = Sweep(storing, 0, "word", "delete")(keep)
    assert np.array_equal(deleted, Sweep(plain, 0, "word", "delete")(keep))


def test_copies_are_spread_over_the_masks_and_keep_what_is_held():
    keep = np.eye(23, dtype=bool)
    copies = spread_copies(keep, np.arange(23.0), held=[5])
    places = [int(copy.value) for copy in copies]
    assert (len(places), places[0], places[-1]) == (10, 0, 22)
    for place, copy in zip(places, copies, strict=True):
        assert {number for number, kept in enumerate(copy.kept) if kept == "1"} == {place, 5}
    assert spread_copies(keep[:0], np.zeros(0)) == ()
