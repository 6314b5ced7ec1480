import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.models import Attending, Differentiable, check_model, check_offers
from tests.families import build


def test_offers_follow_from_what_a_model_implements(tiny):
    function = heedful.wrap(lambda texts: [[float(len(text))] for text in texts])
    bag = heedful.Bag([1.0, 2.0], [3.0, 4.0], gone_scores=[0.0, 0.0], gone_values=[0.0, 0.0])
    assert function.offers == {"masks"}
    assert not isinstance(function, Differentiable | Attending)
    assert bag.offers == {"masks", "attention", "pooling"}
    assert build("bert").offers == {"masks", "gradients", "attention", "layers"}
    assert tiny.offers == {"masks", "gradients", "attention", "layers", "weights", "pooling"}


def test_what_is_missing_is_named_with_its_reason():
    function = heedful.wrap(lambda texts: [[float(len(text))] for text in texts])
    with pytest.raises(Unsupported, match="rollout needs attention, layers, which this model does not offer"):
        check_offers(function, {"layers", "attention", "masks"}, "rollout")
    function.withheld = {"masks": "It is closed today."}
    with pytest.raises(Unsupported, match="closed today"):
        check_offers(function, {"masks"}, "lime")
    with pytest.raises(BadInput, match="must be a model"):
        check_model("paper")
