from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import HeedfulError, Unsupported
from heedful.explainers import MaskingExplainer
from heedful.explainers.planning import configure_for
from heedful.explainers.run import run_explainer
from heedful.generation.attribute import attribute
from heedful.generation.continuation import Continuation
from heedful.generation.written import fixed
from heedful.models.question import Question, Wanted
from heedful.perturb.masks import subsets
from heedful.target import Target
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 12, 7, 20]
CONTEXT_FREE = {"closed-form", "exact"}


def written(family, n=len(OUTPUT)):
    model = build(family)
    return model, model.continued(model.encode(PROMPT), OUTPUT[:n])


def shortened(document, n):
    """The same text, of which the model reads only the first tokens."""
    columns = {name: getattr(document, name)[:n] for name in ("ids", "pieces", "spans", "words", "known", "segments")}
    return replace(document, **columns)


def tokens_of(document):
    """Every token of the output by itself."""
    return tuple(str(n) for n in range(len(OUTPUT))), tuple((n,) for n in range(len(OUTPUT)))


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5", "bart"])
@torch.no_grad()
def test_values_are_log_probabilities_of_the_next_token_step_by_step(family):
    model, document = written(family)
    rows = Continuation(model, *tokens_of(document)).logits([document])
    for place, number in enumerate(OUTPUT):
        _, before = written(family, place)
        logits = model.logits([before])[0]
        assert rows[0, place] == pytest.approx(logits[number] - np.logaddexp.reduce(logits), abs=1e-10)
    assert Continuation(model).logits([document])[0, 0] == pytest.approx(rows.sum(), abs=1e-10)


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
@pytest.mark.parametrize("method", sorted(heedful.methods()))
def test_every_method_explains_a_token_as_it_explains_the_next_token_of_what_was_written_before(family, method):
    """The oracle is the model without `Continuation`: it reads only what was written before and predicts the token."""
    model, document = written(family)
    explainer = configure_for(model, method, {"unit": "word"}, 64)
    if not explainer.needs <= model.offers:
        pytest.skip(reason="the method is for models that pool by attention once")
    masking = isinstance(explainer, MaskingExplainer)
    table = (
        attribute(model, PROMPT, OUTPUT, method, n_samples=64)
        if masking and "n_samples" in vars(explainer)
        else (attribute(model, PROMPT, OUTPUT, method))
    )
    place = 2
    before = shortened(document, len(document.ids) - len(OUTPUT) + place)
    target = Target(OUTPUT[place], "it", None, "log-probability", "logits")
    question = Question(model, (fixed(before) if masking else before,), Wanted(target, None, "log-probability"))
    (expected,) = run_explainer(explainer, question)
    scores = table.scores[place]
    assert scores[: len(expected.scores)] == pytest.approx(expected.scores, abs=1e-8)
    assert scores[len(expected.scores) :] == pytest.approx(0.0, abs=1e-12)
    assert table.explanations[place].output == pytest.approx(expected.output, abs=1e-10)
