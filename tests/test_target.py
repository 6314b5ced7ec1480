import numpy as np
import pytest
import torch

from heedful.errors import BadInput, UnknownName
from heedful.target import Target, check_request, check_scale, resolve_target

CLASSES = ("negative", "positive", "neutral")
LOGITS = np.array([0.1, 0.2, 0.9])


def test_nothing_means_the_predicted_class():
    assert resolve_target(None, None, CLASSES, LOGITS) == Target(2, "neutral")


@pytest.mark.parametrize("request_", [1, "1", "positive"])
def test_a_class_is_named_by_number_or_name(request_):
    assert resolve_target(request_, None, CLASSES, LOGITS).index == 1


def test_a_contrast_weighs_two_logits():
    target = resolve_target("positive", "negative", CLASSES, LOGITS)
    assert target.weights(3) @ LOGITS == pytest.approx(0.2 - 0.1)
    assert target.name == "positive − negative"


def test_a_missing_class_is_named():
    with pytest.raises(UnknownName, match="no class 'positve'; did you mean 'positive'"):
        resolve_target("positve", None, CLASSES, LOGITS)
    with pytest.raises(BadInput, match="no class 7; the model's classes are 0 "):
        resolve_target(7, None, CLASSES, LOGITS)
    with pytest.raises(BadInput, match="no class -1"):
        resolve_target(Target(-1, "last"), None, CLASSES, LOGITS)
    with pytest.raises(BadInput, match="given twice"):
        resolve_target(1, "positive", CLASSES, LOGITS)


def test_a_log_probability_is_that_of_torch():
    expected = torch.log_softmax(torch.tensor(LOGITS), dim=-1)[1].item()
    target = resolve_target(1, None, CLASSES, LOGITS, "log-probability")
    assert target.of(LOGITS[None])[0] == pytest.approx(expected)
    single = Target(0, "toxic", scale="log-probability")
    assert single.of(np.array([[0.7]]))[0] == pytest.approx(torch.nn.functional.logsigmoid(torch.tensor(0.7)).item())
    with pytest.raises(BadInput, match="linear in the logits"):
        target.weights(3)


def test_a_scale_or_request_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match="no scale 'odds'"):
        check_scale("odds")
    with pytest.raises(BadInput, match="leave `against` out"):
        check_request(Target(0, "negative"), 1, CLASSES)
    check_request(" positive", "negative", (*CLASSES, " positive"))
