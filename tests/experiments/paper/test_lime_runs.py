"""LIME on many documents at once is LIME: its answers, its law of masks, its line, and its mean."""

from math import comb

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

import heedful
from heedful.errors import BadInput
from heedful.experiments.paper.lime_runs import (
    FORMS,
    LAWS,
    draw_masks,
    lime_games,
    lime_runs,
    moments,
    ridge_coefficients,
    theorem,
)
from heedful.perturb.surrogate import kernel
from heedful.target import Target
from tests.conftest import tiny_model

TEXTS = (
    "the film was good , the plot was not .",
    "a dull film !",
    # Longer than the 15 words that the tiny model reads, and with a word it does not know.
    "very very bad : the unheard-of story was bad , and the actor was not very good , but bright and bright again",
)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def documents_of(model):
    return [model.encode(text) for text in TEXTS]


def answers_of(game):
    return dict(zip(LAWS, (game.deleted, game.replaced), strict=True))


@pytest.mark.parametrize("law", LAWS)
def test_values_are_the_models_own_on_masked_texts(tiny, law):
    for document, game in zip(documents_of(tiny), lime_games(tiny, documents_of(tiny), 1, torch.float64), strict=True):
        keep = draw_masks(len(game.kept), 2, 40, rng())
        outputs = answers_of(game)[law](keep).flatten().numpy()
        words, texts = document.word_keys, []
        number = {key: index for index, key in enumerate(document.units("type"))}
        for mask in keep.flatten(0, 1).numpy():
            there = [mask[number[word]] for word in words]
            kept = [word if stays else "nevermet" for word, stays in zip(words, there, strict=True)]
            texts.append(" ".join(w for w, stays in zip(kept, there, strict=True) if stays or law == "replace"))
        np.testing.assert_allclose(outputs, tiny.predict(texts)[:, 1], atol=1e-9, rtol=0)


@pytest.mark.parametrize("law", LAWS)
def test_on_the_papers_model_values_are_those_that_lime_uses(paper, law):
    text = (
        "what a waste of time : the plot is awful , the cast is bored and the end is worse . but the music is great !"
    )
    document = paper.encode(text * 12)
    assert len(document.ids) == 256
    (game,) = lime_games(paper, [document], 1, torch.float64)
    keep = draw_masks(len(game.kept), 1, 60, rng())
    holder = document.unit_of("type")
    tokens = keep[0].numpy()[:, holder] | (holder < 0)
    expected = paper.masked(document, Target(1, "positive"), tokens, law)
    np.testing.assert_allclose(answers_of(game)[law](keep)[0].numpy(), expected, atol=1e-9, rtol=0)


def test_masks_follow_limes_law():
    d, n = 4, 60_000
    keep = draw_masks(d, 1, n, rng(3))[0].numpy()
    assert keep[0].all()
    gone = ~keep[1:]
    assert gone.any(axis=1).all()
    codes, counts = np.unique(gone @ (1 << np.arange(d)), return_counts=True)
    sizes = np.array([bin(code).count("1") for code in codes.tolist()])
    expected = (n - 1) / d / np.array([comb(d, size) for size in sizes])
    assert len(codes) == 2**d - 1
    # Pearson's statistic over 15 sets; 99.9 % of such draws stay below 36.1.
    assert ((counts - expected) ** 2 / expected).sum() < 36.1


def test_the_regression_is_scikit_learns(tiny):
    (game,) = lime_games(tiny, documents_of(tiny)[:1], 1, torch.float64)
    keep = draw_masks(len(game.kept), 2, 300, rng())
    values = game.deleted(keep), game.replaced(keep)
    coefficients = ridge_coefficients(moments(keep, *values)[None])[0].numpy()
    for law, answers in enumerate(values):
        for run, (masks, y) in enumerate(zip(keep.numpy(), answers.numpy(), strict=True)):
            line = Ridge(alpha=1.0).fit(masks.astype(float), y, sample_weight=kernel(masks, 25.0))
            np.testing.assert_allclose(coefficients[law, run], line.coef_, atol=1e-9, rtol=0)


def test_the_mean_of_many_runs_is_the_exact_value_under_replacement(paper):
    text = "the plot is a waste of time , but i liked the music and the end ."
    (scores,) = lime_runs(paper, [paper.encode(text)], [0], n_runs=60, n_samples=2000)
    exact = heedful.explain(paper, text, "lime-exact", target=1, unit="type", n_samples=2000).scores
    runs = scores[LAWS.index("replace")]
    error = np.linalg.norm(runs.std(axis=0, ddof=1)) / np.sqrt(60)
    # The squared distance in squared standard errors has mean 1 and, over 14 words, a spread of about 0.4.
    assert np.linalg.norm(runs.mean(axis=0) - exact) < 1.6 * error
    deleted = scores[LAWS.index("delete")]
    own = np.linalg.norm(deleted.std(axis=0, ddof=1)) / np.sqrt(60)
    assert np.linalg.norm(deleted.mean(axis=0) - exact) > 5 * own


@pytest.mark.parametrize("law", LAWS)
def test_runs_have_the_same_mean_as_lime(paper, law):
    text = "the plot is a waste of time , but i liked the music and the end ."
    (scores,) = lime_runs(paper, [paper.encode(text)], [0], n_runs=20, n_samples=1000)
    ours = scores[LAWS.index(law)]
    asked = {"target": 1, "unit": "type", "absence": law, "design": "independent", "n_samples": 1000}
    lime = np.array([heedful.explain(paper, text, "lime", seed=seed, **asked).scores for seed in range(20)])
    spread = np.linalg.norm(np.sqrt((ours.var(axis=0, ddof=1) + lime.var(axis=0, ddof=1)) / 20))
    assert np.linalg.norm(ours.mean(axis=0) - lime.mean(axis=0)) < 1.6 * spread
    assert 0.8 < np.linalg.norm(ours.std(axis=0)) / np.linalg.norm(lime.std(axis=0)) < 1.25


def test_numbers_do_not_depend_on_the_batch(tiny, monkeypatch):
    documents = documents_of(tiny) * 2
    together = lime_runs(tiny, documents, range(6), n_samples=200, precision=torch.float64)
    for number in (4, 0, 2):
        (alone,) = lime_runs(tiny, documents[number : number + 1], [number], n_samples=200, precision=torch.float64)
        np.testing.assert_allclose(alone, together[number], atol=1e-12)
    monkeypatch.setattr("heedful.experiments.paper.lime_runs._AT_ONCE", 2)
    for one, other in zip(
        together, lime_runs(tiny, documents, range(6), n_samples=200, precision=torch.float64), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-12)
    # The same text under another number, or another seed, gets other masks.
    assert np.abs(together[0] - together[3]).max() > 1e-6
    (other,) = lime_runs(tiny, documents[:1], [0], seed=1, n_samples=200, precision=torch.float64)
    assert np.abs(together[0] - other).max() > 1e-6


def test_the_same_call_gives_the_same_bytes_and_leaves_the_global_state(paper):
    documents = [paper.encode("a good film with a bad end .")]
    before = torch.get_rng_state()
    first, second = (lime_runs(paper, documents, [7], n_samples=300)[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert torch.equal(before, torch.get_rng_state())


def test_single_precision_moves_no_coefficient_by_a_ten_thousandth(paper):
    documents = [paper.encode("the plot is a waste of time , but i liked the awful music and the dull end ." * 5)]
    single, double = (
        lime_runs(paper, documents, [0], n_runs=2, precision=precision)[0]
        for precision in (torch.float32, torch.float64)
    )
    assert 0 < np.abs(single - double).max() < 1e-5


def test_the_theorem_is_the_explainers(paper, tiny):
    for model in (tiny, paper):
        predicted = theorem(model, documents_of(model))
        for text, scores in zip(TEXTS, predicted, strict=True):
            for form, row in zip(FORMS, scores, strict=True):
                expected = heedful.explain(model, text, "lime-theorem", target=1, unit="type", form=form).scores
                np.testing.assert_allclose(row, expected, atol=1e-12)


def test_a_text_of_one_distinct_word_is_refused(tiny):
    with pytest.raises(BadInput, match="at least 2 distinct words"):
        lime_runs(tiny, [tiny.encode("film film film")], [0])


def test_scores_beyond_single_precision_are_refused_and_double_takes_them():
    model = tiny_model(bias=False)
    with torch.no_grad():
        model.network.W_k *= 50
    documents = [model.encode("a film was good but dull .")]
    with pytest.raises(BadInput, match="too large for torch.float32"):
        lime_runs(model, documents, [0], n_samples=200)
    assert np.isfinite(lime_runs(model, documents, [0], n_samples=200, precision=torch.float64)[0]).all()


def test_a_model_that_is_not_padded_with_the_unknown_word_is_refused():
    model = tiny_model(padding="eos")
    with pytest.raises(BadInput, match="padded with \\[unk\\]"):
        theorem(model, [model.encode(TEXTS[0])])
