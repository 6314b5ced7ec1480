import pytest

import heedful
from heedful.errors import BadInput, UnknownName
from heedful.evaluation.choose import FEW_MASKS, choose_members
from heedful.evaluation.sample import draw
from heedful.explainers.lime import Lime
from heedful.metrics.removal import Deletion
from tests.families import build

SAMPLE = draw(["a good film", "a bad film"], None, "test", 0)


SIX = ["attention-mean", "gradient-x-input", "integrated-gradients", "lime", "shapley-sampled", "leave-one-out"]
OPT_IN = {"attention", "lrp", "relevance-attention"}
EXACT = {"lime": "lime-exact", "shapley-sampled": "shapley-exact"}


def test_default_methods_are_one_for_each_idea_that_the_model_offers_and_the_control(tiny):
    explainers, metrics = choose_members(tiny, None, None, False, SAMPLE, {})
    assert list(explainers) == [*(EXACT.get(name, name) for name in SIX), "random"]
    assert list(choose_members(build("bert"), None, None, False, SAMPLE, {})[0]) == [*SIX, "random"]
    function = heedful.wrap(lambda texts: [[len(text), 1.5] for text in texts])
    assert list(choose_members(function, None, None, False, SAMPLE, {})[0]) == [*SIX[3:], "random"]
    assert set(choose_members(tiny, "all", None, False, SAMPLE, {})[0]) == set(heedful.methods()) - OPT_IN
    # The metrics of the three verdicts that need nothing but the model.
    assert {metric.name for metric in metrics} == {
        *("deletion", "insertion", "comprehensiveness", "sufficiency", "evidence-against")
    }
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
