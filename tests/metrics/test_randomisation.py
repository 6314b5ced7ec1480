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
from tests.metrics.thinned import TEXT, trial_of


@pytest.mark.parametrize("method", ["leave-one-out", "gradient-l1", "lime-exact", "attention-mean"])
def test_it_is_the_rank_correlation_with_the_explanation_of_a_scrambled_model(tiny, method):
    found = []
    for seed in range(6):
        trial = trial_of(tiny, method)
        index = trial.explanation.target.index
        other = heedful.explain(scrambled(tiny, seed), TEXT, method, target=index).scores
        rho = spearmanr(np.abs(trial.scores), np.abs(other)).statistic
        found.append(measure(Randomisation(seed=seed), trial))
        assert found[-1] == pytest.approx(max(0.0, rho), abs=1e-12)
    assert min(found) < 0.5
    assert len(set(found)) > 1


def test_what_does_not_look_at_the_model_does_not_notice(tiny):
    assert measure(Randomisation(), trial_of(tiny, "random", seed=3)) == pytest.approx(1.0)


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart", "vit", "transformer", "torch"])
def test_models_of_every_family_can_be_scrambled_once_for_all_trials(family):
    trial = trial_of(build(family), "gradient-l2", texts_for(family)[1])
    assert 0 <= measure(Randomisation(), trial) <= 1
    (kept,) = trial.doubles.values()
    assert kept.fingerprint != build(family).fingerprint
    measure(
        Randomisation(), replace(trial_of(build(family), "gradient-l1", texts_for(family)[0]), doubles=trial.doubles)
    )
    assert list(trial.doubles.values()) == [kept]


def test_without_weights_or_without_an_order_there_is_no_number(tiny):
    with pytest.raises(Unsupported, match="no weights to scramble"):
        measure(Randomisation(), trial_of(heedful.wrap(lambda texts: [[len(text)] for text in texts]), "random"))
    trial = trial_of(tiny, "random")
    equal = replace(trial.explanation, scores=np.ones_like(trial.scores))
    with pytest.raises(Unsupported, match="all scores are equal"):
        measure(Randomisation(), replace(trial, explanation=equal))
