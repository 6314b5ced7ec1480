import pytest

import heedful
from heedful.errors import BadInput, UnknownName
from heedful.evaluation.choose import FEW_MASKS, choose_members
from heedful.evaluation.sample import draw
from heedful.explainers.lime import Lime
from heedful.metrics.removal import Deletion
from tests.families import build

SAMPLE = draw(["a good film", "a bad film"], None, "test", 0)


def test_default_methods_are_neither_opt_in_nor_slow_and_fit_the_model(tiny):
    explainers, metrics = choose_members(tiny, None, None, False, SAMPLE, {})
    catalogue = heedful.methods()
    assert set(explainers) == {
        name for name, kind in catalogue.items() if not kind.opt_in and not kind.slow and kind.needs <= tiny.offers
    }
    assert all(metric.default and not metric.wants & {"gold", "rationale", "twin"} for metric in metrics)
    assert any("gold" in metric.wants for metric in choose_members(tiny, ["lime"], None, True, SAMPLE, {})[1])


def test_masks_are_few_where_each_costs_a_pass(tiny):
    explainers, _ = choose_members(build("bert"), ["lime"], ["gini"], False, SAMPLE, {})
    assert explainers["lime"].n_samples == FEW_MASKS
    chosen, _ = choose_members(build("bert"), ["lime"], ["gini"], False, SAMPLE, {"n_samples": 70})
    assert chosen["lime"].n_samples == 70
    assert choose_members(tiny, ["lime"], ["gini"], False, SAMPLE, {})[0]["lime"].n_samples == Lime().n_samples


def test_settings_reach_names_of_either_kind_and_objects_keep_theirs(tiny):
    explainers, (deletion, gini) = choose_members(
        tiny, {"mine": Lime(n_samples=50), "lime": "lime"}, [Deletion(n_steps=3), "gini"], False, SAMPLE, {"seed": 9}
    )
    assert (explainers["mine"].n_samples, explainers["mine"].seed, explainers["lime"].seed) == (50, 0, 9)
    assert (deletion.n_steps, gini.name) == (3, "gini")


def test_wrong_names_are_refused(tiny):
    with pytest.raises(UnknownName, match="metric"):
        choose_members(tiny, ["lime"], ["lime"], False, SAMPLE, {})
    with pytest.raises(UnknownName, match="method"):
        choose_members(tiny, ["gini"], ["gini"], False, SAMPLE, {})
    with pytest.raises(BadInput, match="is the control"):
        choose_members(tiny, {"random": "lime"}, ["gini"], False, SAMPLE, {})
