import numpy as np
import pytest

import heedful
from heedful.explainers import configure
from heedful.explainers.run import run_explainer
from heedful.metrics import Evaluation, measure
from heedful.metrics.invariance import ImplementationInvariance
from heedful.models.question import ask
from heedful.models.twins.twin import twin
from heedful.perturb.document_values import DocumentValues
from tests.families import TEXTS, build

TEXT = "a very good film , but the plot was not good"


def moved(model, method, text=TEXT, **settings):
    question, explainer = ask(model, [text]), configure(method, settings)
    explanation = run_explainer(explainer, question)[0]
    return measure(
        ImplementationInvariance(),
        Evaluation(question, explanation, DocumentValues(question, "word"), explainer, twin=twin(model)),
    )


def apart(one, other):
    return np.linalg.norm(one / np.linalg.norm(one) - other / np.linalg.norm(other))


@pytest.mark.parametrize("method", ["gradient-mean", "gradient-l2"])
def test_it_is_the_distance_between_the_explanations_of_two_equal_models(tiny, method):
    other = twin(tiny)
    target = int(tiny([TEXT])[0].argmax())
    ours, theirs = (heedful.explain(model, TEXT, method, target=target).scores for model in (tiny, other))
    assert moved(tiny, method) == pytest.approx(apart(ours, theirs), rel=1e-9)
    assert moved(tiny, method) > 0.01


@pytest.mark.parametrize("method", ["lime-exact", "gradient-x-input", "leave-one-out", "attention-mean"])
def test_what_depends_on_the_function_alone_stays(tiny, method):
    assert moved(tiny, method) < 1e-9


def test_the_twin_is_explained_with_another_seed(tiny):
    ours, theirs = (heedful.explain(tiny, TEXT, "random", seed=seed).scores for seed in (4, 5))
    assert moved(tiny, "random", seed=4) == pytest.approx(apart(ours, theirs), rel=1e-12)


@pytest.mark.parametrize("family", ["bert", "gpt2", "transformer", "torch"])
def test_layered_models_have_twins_too(family):
    assert moved(build(family), "leave-one-out", TEXTS[1]) < 1e-9
    assert moved(build(family), "random", TEXTS[1]) > 0.5
