"""Our LIME against the official package, on the model written head by head, over many seeds."""

import numpy as np
import pytest
import torch
from lime.lime_text import IndexedString, LimeTextExplainer

import heedful
from heedful.statistics.intervals import NORMAL_97_5
from tests.conftest import tiny_model
from tests.families import build
from tests.straightforward import Straightforward, basic_english

TEXTS = {
    "review": "the good film was not bad but the story was dull the good plot",
    "repeats": "very very dull and very bad film , bad actor , bad plot , but bright . bright !",
}
N_SEEDS, N_SAMPLES = 40, 400


def replacing(self, words_to_remove):
    """inverse_removing with `bow=True` that puts a word in the gaps, as the paper's text says; the package deletes."""
    gone = {position for word in words_to_remove for position in self.positions[word]}
    return "".join("UNKWORDZ" if i in gone else piece for i, piece in enumerate(self.as_list))


def official(plain, text, words, seed, bow):
    explainer = LimeTextExplainer(random_state=seed, bow=bow, split_expression=basic_english)
    explanation = explainer.explain_instance(
        text, lambda texts: plain.predict(texts, 500), labels=(1,), num_features=len(words), num_samples=N_SAMPLES
    )
    scores = dict(explanation.local_exp[1])
    return [scores[index] for index in range(len(words))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("absence", "unit", "bow"), [("delete", "type", True), ("replace", "type", True), ("replace", "word", False)]
)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_means_over_seeds_agree_within_three_standard_errors_on_every_word(monkeypatch, text, absence, unit, bow):
    model = tiny_model(T_max=20)
    if absence == "replace" and bow:
        monkeypatch.setattr(IndexedString, "inverse_removing", replacing)
    words = model.encode(text).units(unit)
    theirs = np.array([official(Straightforward(model), text, words, seed, bow) for seed in range(N_SEEDS)])
    for design in ("independent", "stratified"):
        asked = {"target": 1, "unit": unit, "absence": absence, "n_samples": N_SAMPLES, "design": design}
        mine = np.array([heedful.explain(model, text, "lime", seed=seed, **asked).scores for seed in range(N_SEEDS)])
        error = np.sqrt((mine.var(axis=0, ddof=1) + theirs.var(axis=0, ddof=1)) / N_SEEDS)
        distance = np.abs(mine.mean(axis=0) - theirs.mean(axis=0)) / error
        assert distance.max() < 3, (design, dict(zip(words, distance.round(2), strict=True)))
        # The test has power: the words' coefficients differ by far more than three standard errors.
        assert np.ptp(mine.mean(axis=0)) > 20 * error.max()


@pytest.mark.slow
def test_intervals_are_as_wide_as_the_official_package_scatters():
    model = tiny_model(T_max=20)
    plain = Straightforward(model)
    text = TEXTS["review"]
    asked = {"target": 1, "unit": "type", "absence": "delete", "n_samples": N_SAMPLES, "design": "independent"}
    ours = heedful.explain(model, text, "lime", **asked)
    theirs = np.array([official(plain, text, ours.units, seed, True) for seed in range(N_SEEDS)])
    ratio = ours.error / (NORMAL_97_5 * theirs.std(axis=0, ddof=1))
    assert 0.8 < np.median(ratio) < 1.25


@pytest.mark.slow
@pytest.mark.parametrize(("absence", "unit", "bow"), [("delete", "type", True), ("replace", "word", False)])
def test_means_agree_on_a_hugging_face_model(absence, unit, bow):
    model = build("bert")
    network, tokenizer = model.network, model.tokenizer
    # Every word is one token, so that one [MASK] in the package's string is one in ours.
    text = "the film was good but not very bright and the plot was a bad story"
    n_seeds, n_samples = 30, 300

    def predict(texts):
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        with torch.no_grad():
            return network(**batch).logits.numpy()

    mine, theirs = [], []
    for seed in range(n_seeds):
        asked = {"target": 1, "unit": unit, "absence": absence, "n_samples": n_samples, "seed": seed}
        mine.append(heedful.explain(model, text, "lime", **asked))
        explainer = LimeTextExplainer(random_state=seed, bow=bow, split_expression=str.split, mask_string="[MASK]")
        scores = explainer.explain_instance(text, predict, labels=(1,), num_features=99, num_samples=n_samples)
        theirs.append([score for _, score in sorted(scores.local_exp[1])])
    ours, theirs = np.array([explanation.scores for explanation in mine]), np.array(theirs)
    error = np.sqrt((ours.var(axis=0, ddof=1) + theirs.var(axis=0, ddof=1)) / n_seeds)
    distance = np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / error
    assert distance.max() < 3.5, dict(zip(mine[0].units, distance.round(2), strict=True))
    assert np.ptp(ours.mean(axis=0)) > 20 * error.max()
