import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.target import Target
from tests.explainers.test_exact import forwards
from tests.theory.test_exact import brute_shapley


@pytest.mark.parametrize("unit", ["word", "type"])
def test_a_short_text_is_explained_without_sampling(tiny, unit):
    text = "good film was good but the plot was dull"
    z, f = forwards(tiny, text, unit, 1)
    explanation = heedful.explain(tiny, text, "shapley-sampled", target=1, unit=unit)
    assert np.allclose(explanation.scores, brute_shapley(z, f), atol=1e-9)
    assert (explanation.error == 0).all()


@pytest.mark.parametrize("absence", ["replace", "delete", "mask"])
@pytest.mark.parametrize("design", ["walks", "independent", "paired", "stratified"])
def test_scores_share_out_the_whole_difference(tiny, design, absence):
    text = "good film was very bad but bright and not dull"
    settings = {"target": 1, "design": design, "absence": absence, "n_samples": 100}
    explanation = heedful.explain(tiny, text, "shapley-sampled", **settings)
    empty = tiny.masked(tiny.encode(text), Target(1, "positive"), np.eye(1, 11, dtype=bool), absence)[0]
    assert explanation.scores.sum() == pytest.approx(explanation.output - empty, abs=1e-9)
    assert explanation.error.min() > 0


def test_one_word_gets_everything(tiny):
    explanation = heedful.explain(tiny, "good", "shapley-sampled", target=1)
    assert explanation.scores[0] == pytest.approx(explanation.output - tiny(["neverseen"])[0, 1], abs=1e-12)


def test_too_few_samples_are_refused(tiny):
    with pytest.raises(BadInput, match="shapley-sampled needs at least 34 samples for 10 words; n_samples is 30."):
        heedful.explain(tiny, "good film was very bad but bright and not dull", "shapley-sampled", n_samples=30)
