import json

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.evaluation.disagreement import explain_disagreement
from heedful.evaluation.disagreement.causes import TERM_OF
from heedful.models.question import ask
from tests.evaluation.disagreement.planted import asked
from tests.families import TEXTS, build

TEXT = "good film , not dull ! a very bad plot"


def test_figure_1s_most_attended_word_is_there_because_its_heads_cancel(paper):
    question, explanations = asked(paper, "attention based explanations are popular but questionable")
    attention = explanations[0]
    assert attention.top(1)[0][0] == "popular"
    disagreement = explain_disagreement(question, explanations)
    assert [cause.name for cause in disagreement.of(4)] == ["heads cancel"]


def test_everything_goes_into_json_and_terms_are_written_once(tiny):
    disagreement = explain_disagreement(*asked(tiny, TEXT))
    kept = json.loads(json.dumps(disagreement.as_dict()))
    assert kept["exact"] is True
    assert [cause["name"] for cause in kept["causes"]] == [cause.name for cause in disagreement.causes]
    for method, names in kept["accounts"].items():
        again = np.sum([kept["terms"][name] for name in names], axis=0)
        assert np.allclose(again, np.sum(list(disagreement.accounts[method].values()), axis=0), atol=1e-12)
    assert list(kept["terms"]).count("value") == 1
    assert len(kept["pairs"]) == 10


def test_the_same_call_gives_the_same(tiny):
    first, second = (explain_disagreement(*asked(tiny, TEXT)).as_dict() for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_asking_leaves_the_model_as_it_was():
    model = build("bert")
    before = model.fingerprint
    network = model.network
    asking = [weight.requires_grad for weight in network.parameters()]
    explain_disagreement(*asked(model, TEXTS[0], ["attention-mean", "leave-one-out"], None))
    assert [weight.requires_grad for weight in network.parameters()] == asking
    assert not network.training
    assert heedful.wrap(network, model.tokenizer).fingerprint == before


def test_every_cause_has_a_term_and_a_largest_comes_first(tiny):
    disagreement = explain_disagreement(*asked(tiny, TEXT))
    sizes = [cause.size for cause in disagreement.causes]
    assert sizes == sorted(sizes, reverse=True)
    assert {cause.name for cause in disagreement.causes} <= set(TERM_OF)


def test_what_does_not_belong_together_is_refused(tiny):
    question, explanations = asked(tiny, TEXT)
    with pytest.raises(BadInput, match="one text; this one has 2"):
        explain_disagreement(ask(tiny, [TEXT, "good"]), explanations)
    with pytest.raises(BadInput, match="No explanations were given"):
        explain_disagreement(question, [])
    other = asked(tiny, "good film", ["leave-one-out"])[1]
    with pytest.raises(BadInput, match="differ in text, target or unit"):
        explain_disagreement(question, [*explanations, *other])
    against = asked(tiny, TEXT, ["leave-one-out"], target="negative")[1]
    with pytest.raises(BadInput, match="differ in text, target or unit"):
        explain_disagreement(question, [*explanations, *against])
    coarse = asked(tiny, TEXT, ["leave-one-out"], unit="sentence")[1]
    with pytest.raises(BadInput, match="differ in text, target or unit"):
        explain_disagreement(question, [*explanations, *coarse])


def test_a_comparison_says_why_its_methods_differ(tiny):
    comparison = heedful.compare(tiny, TEXT, target="positive", n_samples=50)
    assert comparison.causes is not None
    assert comparison.causes.exact
    assert comparison.causes.explanations == comparison.explanations
    assert comparison.as_dict()["causes"] == comparison.causes.as_dict()
    assert heedful.compare(tiny, TEXT, "leave-one-out").causes is None


def test_a_comparison_on_a_deep_model_evaluates_no_mask_for_its_causes(monkeypatch):
    model = build("bert")
    asked_for = []
    masked = type(model).masked
    monkeypatch.setattr(type(model), "masked", lambda self, *a: asked_for.append(len(a[2])) or masked(self, *a))
    comparison = heedful.compare(model, TEXTS[1], ["attention-mean", "gradient-x-input"])
    assert asked_for == []
    assert not comparison.causes.exact
    assert comparison.causes.notes == (
        "No units were removed, so no diagnosis was tested; add leave-one-out to test them.",
    )
