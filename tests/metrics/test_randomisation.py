from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

import heedful
from heedful.errors import Unsupported
from heedful.metrics import measure
from heedful.metrics.randomisation import Randomisation
from heedful.models.altered import scrambled
from tests.families import build, texts_for
from tests.metrics.masked_text import TEXT, evaluation_by


@pytest.mark.parametrize("method", ["leave-one-out", "gradient-l1", "lime-exact", "attention-mean"])
def test_it_is_the_rank_correlation_with_the_explanation_of_a_scrambled_model(tiny, method):
    rows = []
    for seed in range(6):
        evaluation = evaluation_by(tiny, method)
        index = evaluation.explanation.target.index
        other = heedful.explain(scrambled(tiny, seed), TEXT, method, target=index).scores
        rho = spearmanr(np.abs(evaluation.scores), np.abs(other)).statistic
        rows.append(measure(Randomisation(seed=seed), evaluation))
        assert rows[-1] == pytest.approx(max(0.0, rho), abs=1e-12)
    assert min(rows) < 0.5
    assert len(set(rows)) > 1


def test_scores_independent_of_the_model_do_not_change(tiny):
    assert measure(Randomisation(), evaluation_by(tiny, "random", seed=3)) == pytest.approx(1.0)


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart", "vit", "transformer", "torch"])
def test_models_of_every_family_are_scrambled_once_for_all_evaluations(family):
    evaluation = evaluation_by(build(family), "gradient-l2", texts_for(family)[1])
    assert 0 <= measure(Randomisation(), evaluation) <= 1
    (kept,) = evaluation.altered_models.values()
    assert kept.fingerprint != build(family).fingerprint
    measure(
        Randomisation(),
        replace(
            evaluation_by(build(family), "gradient-l1", texts_for(family)[0]), altered_models=evaluation.altered_models
        ),
    )
    assert list(evaluation.altered_models.values()) == [kept]


def test_without_weights_or_without_an_order_there_is_no_number(tiny):
    with pytest.raises(Unsupported, match="no weights to randomise"):
        measure(Randomisation(), evaluation_by(heedful.wrap(lambda texts: [[len(text)] for text in texts]), "random"))
    evaluation = evaluation_by(tiny, "random")
    equal = replace(evaluation.explanation, scores=np.ones_like(evaluation.scores))
    with pytest.raises(Unsupported, match="all scores are equal"):
        measure(Randomisation(), replace(evaluation, explanation=equal))
