"""Laws that bind every explainer."""

import subprocess
import sys
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import heedful
from heedful.document import UNITS
from heedful.explainers import Explainer, MaskingExplainer
from heedful.explainers import methods as all_methods

METHODS = sorted(heedful.methods())
TEXTS = ["good film , good story . not dull !", "the plot was bad", "very very very bright " * 9, "a film and zzz"]


@pytest.mark.parametrize("method", METHODS)
def test_a_member_is_a_final_frozen_dataclass_that_says_what_it_is(method):
    member = heedful.methods()[method]
    assert issubclass(member, MaskingExplainer) == ("masks" in member.needs)
    contracts = member.__mro__[1 : member.__mro__.index(Explainer) + 1]
    assert {kind.__module__ for kind in contracts} == {"heedful.explainers"}, "methods never inherit from each other"
    assert getattr(member, "__final__", False)
    assert is_dataclass(member)
    assert member.__dataclass_params__.frozen
    assert member.name == method
    assert len((member.__doc__ or "").splitlines()[0]) <= 80
    assert all(field.default is not None for field in fields(member))


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit not in ("passage", "patch")])
@pytest.mark.parametrize("method", METHODS)
def test_every_unit_has_one_finite_score(tiny, method, unit):
    explanation = heedful.explain(tiny, TEXTS[0], method, unit=unit)
    assert len(explanation.scores) == len(explanation.units) == tiny.encode(TEXTS[0]).n_units(unit)
    assert np.isfinite(explanation.scores).all()
    assert explanation.unit == unit
    assert explanation.signed or (explanation.scores >= 0).all()
    assert explanation.error is None or (explanation.error >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_batch_of_n_is_n_batches_of_one(tiny, paper, method):
    # Longer than the model reads; where every sample is a row of a fit, long enough to be of another length.
    n_times = 8 if "masks" in heedful.methods()[method].needs else 40
    long = "a truly wonderful film with a terrible ending " * n_times
    for model, texts in ((tiny, TEXTS), (paper, [*TEXTS, long])):
        together = heedful.explain(model, texts, method)
        for text, explanation in zip(texts, together, strict=True):
            alone = heedful.explain(model, text, method)
            scale = np.abs(alone.scores).max()
            assert np.abs(explanation.scores - alone.scores).max() <= 1e-12 * scale
            assert explanation.target == alone.target
            assert explanation.output == pytest.approx(alone.output, rel=1e-12)
            assert (explanation.error is None) == (alone.error is None)
            if explanation.error is not None and alone.error is not None:
                assert np.allclose(explanation.error, alone.error, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_call_gives_the_same_bytes(paper, method):
    first, second = (heedful.explain(paper, TEXTS[0], method) for _ in range(2))
    assert first.scores.tobytes() == second.scores.tobytes()
    assert str(first.as_dict()) == str(second.as_dict())


NOTHING_LEFT = """
import random, numpy as np, torch, heedful
model = heedful.load("paper")
texts = ["a good film , not dull", "the plot was bad"]

def state():
    modules = list(model.network.modules())
    hooks = [len(m._forward_hooks) + len(m._backward_hooks) + len(m._forward_pre_hooks) for m in modules]
    chance = (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())
    weights = [(w.grad is None, w.requires_grad, float(w.detach().sum())) for w in model.network.parameters()]
    return chance, hooks, weights, torch.is_grad_enabled(), model.network.training, torch.get_num_threads()

before = state()
for method in heedful.methods():
    heedful.explain(model, texts, method)
    with torch.no_grad():
        heedful.explain(model, texts[0], method)
        assert not torch.is_grad_enabled()
    assert state() == before, method
print("unchanged", len(heedful.methods()))
"""


@pytest.mark.slow
def test_nothing_is_left_changed():
    # In a process of its own: the type checks that the tests switch on draw random numbers themselves.
    run = subprocess.run([sys.executable, "-c", NOTHING_LEFT], capture_output=True, text=True)
    assert run.stdout.split() == ["unchanged", str(len(METHODS))], run.stderr


@pytest.mark.parametrize("method", METHODS)
def test_the_output_is_the_target_s_value(tiny, method):
    logits = tiny([TEXTS[0]])[0]
    explanation = heedful.explain(tiny, TEXTS[0], method, target="positive", against="negative")
    assert explanation.output == pytest.approx(logits[1] - logits[0])
    assert heedful.explain(tiny, TEXTS[0], method).target.index == int(logits.argmax())


NOT_LINEAR = {"random", "slalom"}
"""slalom fits each target importances of its own."""


@pytest.mark.parametrize("method", [m for m in METHODS if heedful.methods()[m].signed and m not in NOT_LINEAR])
def test_a_contrast_is_the_difference_of_two_explanations(tiny, method):
    contrast = heedful.explain(tiny, TEXTS[0], method, target=1, against=0).scores
    one, other = (heedful.explain(tiny, TEXTS[0], method, target=target).scores for target in (1, 0))
    assert np.allclose(contrast, one - other, atol=1e-10)


def test_places_in_rankings_of_methods_are_unique():
    kinds = all_methods().values()
    for places in (
        [kind.joint_rank for kind in kinds if kind.joint_rank is not None],
        [kind.summary_group for kind in kinds if kind.summary_group is not None],
    ):
        assert len(set(places)) == len(places)
