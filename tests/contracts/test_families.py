"""Laws that bind every explainer on every family of models: one text at a time or many, and any unit."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest

import heedful
from tests.families import BOTH, FAMILIES, PAIR, build, texts_for

SAMPLED = {"banzhaf-sampled", "lime", "shapley-sampled", "sobol", "slalom"}
BUDGETED = {"anchors", "hierarchical-shapley"}
FEW = ["bert", "gpt2", "bart", "vit"]
"""The families that sampling methods are tried on: they ask a model hundreds of questions, and all the same way."""
SHAPES = [*FEW, "transformer", "classic", "encoder", "torch"]
"""One family of every class of models."""
OFFERED = {"masks", "gradients", "attention", "layers"}
SENTENCES = "good film . bad plot , bad !"
REFUSED = {"relevance-attention": BOTH}
"""What a method says it cannot explain."""


SPECIFIC = {
    "attention-mean",
    "gradient-x-input",
    "gradient-attention",
    "relevance-attention",
    "lrp",
    "value-norms",
    "optimus",
}
"""Methods that read what differs between families of one class: names of modules, heads, scaled embeddings."""


def pairs(families):
    return [
        pytest.param(family, method, id=f"{family}-{method}")
        for method, member in sorted(heedful.methods().items())
        for family in families
        if member.needs <= OFFERED
        and family not in REFUSED.get(method, [])
        and (method not in SAMPLED | BUDGETED or family in FEW)
        and (family in SHAPES or method in SPECIFIC)
    ]


def explained(family, texts, method, **settings):
    if method in SAMPLED:
        settings["n_samples"] = 200
    if method in BUDGETED:
        settings["budget"] = 200
    if method == "integrated-gradients" and family not in ("bert", "gpt2"):
        # With weights as loud as these the line from nothing is so rough that up to 256 steps would be taken.
        settings["n_steps"] = 16
    return heedful.explain(build(family), texts, method, **settings)


@cache
def alone(family, number, method):
    return explained(family, texts_for(family)[number], method)


def largest(family, number, method):
    """A layer norm makes gradient-mean zero but for rounding, so it is measured by the gradient's length."""
    return np.abs(alone(family, number, "gradient-l1" if method == "gradient-mean" else method).scores).max()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_offers_all_but_what_the_paper_s_model_alone_has(family):
    assert build(family).offers - {"text"} == OFFERED


@pytest.mark.parametrize(("family", "method"), pairs(FAMILIES))
def test_a_batch_of_ragged_texts_is_as_many_batches_of_one(family, method):
    texts = texts_for(family)[1:]
    together = explained(family, texts, method)
    assert len(together) == len(texts)
    for number, explanation in enumerate(together, start=1):
        lone, close = alone(family, number, method), 1e-6 * largest(family, number, method)
        assert explanation.document.pieces == lone.document.pieces
        assert explanation.target == lone.target
        assert explanation.output == pytest.approx(lone.output, rel=1e-9)
        assert np.abs(explanation.scores - lone.scores).max() <= close
        assert explanation.facts.keys() == lone.facts.keys()
        apart = set(lone.document.pieces) & lone.facts.keys()
        assert all(abs(explanation.facts[piece] - lone.facts[piece]) <= close for piece in apart)
        assert (explanation.error is None) == (lone.error is None)
        if explanation.error is not None and lone.error is not None:
            assert np.abs(explanation.error - lone.error).max() <= close


@pytest.mark.parametrize(("family", "method"), pairs(SHAPES))
def test_the_same_call_gives_the_same_bytes(family, method):
    first, second = alone(family, 2, method), alone.__wrapped__(family, 2, method)
    assert first.scores.tobytes() == second.scores.tobytes()
    assert str(first.as_dict()) == str(second.as_dict())


@pytest.mark.parametrize(("family", "method"), pairs(SHAPES))
def test_every_unit_has_one_finite_score(family, method):
    text = {"bart": heedful.Pair(SENTENCES, "a bad"), "vit": texts_for("vit")[1]}.get(family, SENTENCES)
    document = build(family).encode(text)
    for unit in ["patch"] if family == "vit" else ["token", "word", "type", "sentence"]:
        explanation = explained(family, text, method, unit=unit)
        assert explanation.unit == unit
        assert len(explanation.scores) == len(explanation.units) == document.n_units(unit) > 0
        assert np.isfinite(explanation.scores).all()
        assert explanation.signed or (explanation.scores >= 0).all()
        assert explanation.error is None or (np.isfinite(explanation.error) & (explanation.error >= 0)).all()


@pytest.mark.parametrize("family", ["bert", "albert"])
@pytest.mark.parametrize("method", ["attention-mean", "gradient-l1", "rollout", "leave-one-out"])
def test_texts_and_pairs_may_share_a_batch_in_any_order(family, method):
    for given in ([texts_for(family)[1], PAIR], [PAIR, texts_for(family)[1]]):
        for text, explanation in zip(given, explained(family, given, method), strict=True):
            alone = explained(family, text, method)
            assert np.abs(explanation.scores - alone.scores).max() <= 1e-6 * np.abs(alone.scores).max()


@pytest.mark.parametrize("family", SHAPES)
@pytest.mark.parametrize("method", ["attention-mean", "value-norms"])
def test_a_copy_of_a_model_explains_as_the_model_does(family, method):
    copied = heedful.explain(deepcopy(build(family)), texts_for(family)[2], method)
    assert copied.scores.tobytes() == alone(family, 2, method).scores.tobytes()
