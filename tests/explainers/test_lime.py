import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.perturb.surrogate import kernel

TEXT = "good film , good story . not dull !"


def test_seeds_differ_within_their_intervals(tiny):
    runs = [heedful.explain(tiny, TEXT, "lime", seed=seed, design="independent") for seed in range(20)]
    scores = np.array([run.scores for run in runs])
    assert scores.std(axis=0).min() > 0
    assert np.mean(np.abs(scores - scores.mean(axis=0)) <= [run.error for run in runs]) > 0.9


def test_a_sharp_kernel_leaves_little_to_learn_from(tiny):
    wide, sharp = (heedful.explain(tiny, TEXT, "lime", kernel_width=width) for width in (25.0, 3.0))
    assert sharp.facts["effective_samples"] < wide.facts["effective_samples"] / 5


def test_deletion_and_replacement_are_different_questions(tiny):
    replace, delete = (heedful.explain(tiny, TEXT, "lime", absence=absence) for absence in ("replace", "delete"))
    assert np.abs(replace.scores - delete.scores).max() > 5 * replace.error.max()


@pytest.mark.parametrize(("text", "unit"), [("good", "word"), ("good good", "type"), ("good film", "sentence")])
def test_one_unit_is_too_few(tiny, text, unit):
    with pytest.raises(BadInput, match=f"lime needs at least 2 {unit}s; the document has 1."):
        heedful.explain(tiny, text, "lime", unit=unit)


def test_a_penalty_larger_than_the_intervals_has_a_note(tiny):
    short = heedful.explain(tiny, "good film", "lime")
    free = heedful.explain(tiny, "good film", "lime", ridge=0.0)
    assert short.facts["penalty_shift"] == pytest.approx(np.abs(short.scores - free.scores).max(), rel=1e-6)
    assert short.notes[0].kind == "inexact"
    assert free.notes == ()
    assert "The ridge penalty shifts scores" in heedful.compare(tiny, "good film", ["lime"])._repr_html_()


@pytest.mark.parametrize(("design", "least"), [("independent", 13), ("stratified", 25)])
def test_too_few_samples_for_the_words_are_refused(tiny, design, least):
    asked = {"text": "good film was very bad but bright and not dull", "method": "lime", "design": design}
    with pytest.raises(BadInput, match=f"lime needs at least {least} samples for 10 words"):
        heedful.explain(tiny, **asked, n_samples=least - 1)
    heedful.explain(tiny, **asked, n_samples=least)


def test_all_masks_of_a_short_text_are_evaluated_so_the_seed_does_not_matter(tiny):
    one, two = (heedful.explain(tiny, TEXT, "lime", seed=seed) for seed in (0, 1))
    assert (one.scores == two.scores).all()
    assert (one.error == 0).all()
    exact = heedful.explain(tiny, TEXT, "lime-exact")
    assert np.allclose(one.scores, exact.scores, atol=1e-9)


def test_a_penalised_intercept_is_equation_16_over_every_mask(tiny):
    text = "the good film was bad"
    ours = heedful.explain(tiny, text, "lime", target=1, intercept="penalised", ridge=30.0, n_samples=1000)
    document = tiny.encode(text)
    keep = (np.arange(32)[:, None] >> np.arange(5)) & 1 == 1
    size = keep.sum(axis=1)
    f = tiny.masked(document, ours.target, np.hstack([np.ones((32, 1), dtype=bool), keep]), "replace")
    # Every mask once: 999 samples of sizes 0 to 4, spread evenly, and the whole text.
    mass = np.where(size == 5, 1.0, 999 / 5 / np.bincount(size)[size]) * kernel(keep, 25.0)
    x = np.hstack([np.ones((32, 1)), keep])
    theirs = np.linalg.solve(x.T @ (x * mass[:, None]) + 30.0 * np.eye(6), x.T @ (mass * f))
    np.testing.assert_allclose(ours.scores, theirs[1:], atol=1e-9)
    free = heedful.explain(tiny, text, "lime", target=1, ridge=30.0, n_samples=1000)
    assert np.abs(free.scores - ours.scores).max() > 1e-4


def test_a_surrogate_that_fits_badly_is_noted():
    """A function that is 1 only if an odd number of words stays has no linear part."""
    odd = heedful.wrap(lambda texts: [[text.count("w") % 2, 0.5] for text in texts])
    poor = heedful.explain(odd, "w w w w w w w w", "lime")
    assert any("of the variance over masks" in note for note in poor.notes)
    linear = heedful.explain(heedful.wrap(lambda t: [[float(x.count("w")), 0.5] for x in t]), "w w w w w w", "lime")
    assert not any("of the variance over masks" in note for note in linear.notes)
