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


FAMILIES = ["transformer", "torch", "bert", "gpt2", "t5", "vit", "single-layer"]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_says_in_one_line_what_it_is(tiny, family):
    model = tiny if family == "single-layer" else build(family)
    line = model.description
    assert repr(model) == f"<{line}>"
    assert len(repr(model)) <= 300
    assert "\n" not in line
    assert f"{model.fingerprint};" in line
    assert f"returns {model.returns} of {len(model.classes):,} " in line
    for offer in ("attention", "gradients", "masks"):
        assert (offer in line.partition("offers ")[2].partition(";")[0]) == (offer in model.offers)


def test_a_long_description_is_cut_and_says_what_is_not_offered():
    model = heedful.wrap(lambda texts: [[1.0 + len(text), 2.0] for text in texts], classes=["a" * 200, "b" * 200])
    assert "no attention, no gradients: Only its outputs are used." in model.description
    model.withheld = {"attention": "long " * 100}
    assert len(repr(model)) <= 300
    assert repr(model).endswith("…>")


class Estimator:
    """A class with the name of scikit-learn's."""


BaseEstimator = type("BaseEstimator", (Estimator,), {})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            lambda: build("bert").network,
            r"BertForSequenceClassification was given. Wrap it: heedful.wrap\(model, tokeni",
        ),
        (lambda: build("torch").network, r"Encoder was given. Wrap it: heedful.wrap\(model, tokenizer\)"),
        (BaseEstimator, r"BaseEstimator was given. Wrap it: heedful.wrap\(model\)"),
        (lambda: len, r"Wrap it: heedful.wrap\(model\)"),
        (lambda: "paper", r"'paper' was given. Load a model by its name: heedful.load\('paper'\)"),
        (lambda: "a fine film", "Texts come second"),
        (lambda: 3, "heedful.load or heedful.wrap; int was given.$"),
    ],
)
def test_what_is_not_a_model_is_told_how_to_become_one(given, sentence):
    with pytest.raises(BadInput, match=sentence):
        check_model(given())
