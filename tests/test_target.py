import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.target import ClassNames, Target, check_request, check_returns, check_scale, resolve_target

CLASSES = ClassNames(("negative", "positive", "neutral"))
LOGITS = np.array([0.1, 0.2, 0.9])


def test_nothing_means_the_predicted_class():
    assert resolve_target(None, None, CLASSES, LOGITS) == Target(2, "neutral", returns="logits")


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
    with pytest.raises(BadInput, match="linear in the model's outputs"):
        target.weights(3)


def test_a_scale_or_request_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match="no scale 'odds'"):
        check_scale("odds")
    with pytest.raises(BadInput, match="leave `against` out"):
        check_request(Target(0, "negative"), 1, CLASSES)
    check_request("positive", "negative", CLASSES)


SHARES = np.array([0.2, 0.3, 0.5])


@pytest.mark.parametrize(
    ("returns", "row", "expected"),
    [
        ("logits", LOGITS, softmax(LOGITS)),
        ("logits", LOGITS[:1], expit(LOGITS[:1])),
        ("independent-logits", LOGITS, expit(LOGITS)),
        ("probabilities", SHARES, SHARES),
        ("probabilities", SHARES[:1], SHARES[:1]),
    ],
)
def test_probabilities_are_those_of_scipy_for_whatever_a_model_returns(returns, row, expected):
    names = ClassNames(CLASSES.classes[: len(row)])
    for index in range(len(row)):
        p, log_p, own = (
            resolve_target(index, None, names, row, scale, returns)
            for scale in ("probability", "log-probability", "logit")
        )
        assert p.of(row[None])[0] == pytest.approx(expected[index], abs=1e-12)
        assert log_p.of(row[None])[0] == pytest.approx(np.log(expected[index]), abs=1e-12)
        assert own.of(row[None])[0] == row[index] == own.weights(len(row)) @ row
        assert str(own) == f"the {'probability' if returns == 'probabilities' else 'logit'} of {names.classes[index]}"
    if len(row) > 1:
        contrast = resolve_target(1, 0, names, row, "probability", returns)
        assert contrast.of(row[None])[0] == pytest.approx(expected[1] - expected[0], abs=1e-12)


def test_scores_have_no_probability():
    target = resolve_target(1, None, CLASSES, LOGITS, returns="scores")
    assert str(target) == "the score of positive"
    assert target.of(LOGITS[None])[0] == 0.2
    for scale in ("log-probability", "probability"):
        with pytest.raises(Unsupported, match="not known whether this model returns logits"):
            resolve_target(1, None, CLASSES, LOGITS, scale, "scores")
        with pytest.raises(Unsupported, match="not known whether"):
            check_scale(scale, "scores")
    with pytest.raises(UnknownName, match="no kind of output 'odds'"):
        check_returns("odds")


def test_the_logarithm_of_a_probability_of_zero_is_refused():
    target = Target(0, "a", None, "log-probability", "probabilities")
    with pytest.raises(BadInput, match='is not a finite number; use scale="probability"'):
        target.of(np.array([[0.0, 1.0]]))
    assert target.of(np.array([[0.5, 0.5]]))[0] == np.log(0.5)
    # Another class may have it.
    assert Target(1, "b", None, "log-probability", "probabilities").of(np.array([[0.0, 1.0]]))[0] == 0.0


def test_a_name_of_two_classes_is_refused_with_both():
    names = ClassNames(["same", "other", "same"])
    with pytest.raises(BadInput) as error:
        resolve_target("same", None, names, np.log(SHARES))
    assert str(error.value) == (
        "'same' may mean 'same' (number 2, probability 0.5) or 'same' (number 0, probability 0.2); give one of these "
        "names, or its number (an int, or id:NUMBER)."
    )
    assert resolve_target(2, None, names, LOGITS).index == 2


def test_a_number_that_is_the_name_of_another_class_is_refused():
    stars = ClassNames(("1", "2", "3"))
    row = np.array([2.0, 0.0, 1.0])
    with pytest.raises(BadInput, match=r"1 may mean '1' \(number 0, .*or '2' \(number 1, .*give the name as a string"):
        resolve_target(1, None, stars, row)
    assert resolve_target("1", None, stars, row).index == 0
    assert resolve_target(3, None, stars, row).index == 2, "there is no class number 3, so it is the name"
    assert resolve_target(-1, None, ClassNames(("-1", "1")), row[:2]).index == 0
    assert resolve_target(1, None, ClassNames(("0", "1")), row[:2]).index == 1
    assert resolve_target(Target(1, "2"), None, stars, row).index == 1, "a Target has the number itself"
    with pytest.raises(BadInput, match="no class '2'"):
        resolve_target("2", None, ClassNames(("1", "3", "5")), row)
    assert resolve_target("2", None, ClassNames(("bad", "good", "none")), row).index == 2


def test_a_target_in_words_is_read_once():
    contrast = resolve_target(0, 1, ClassNames([" ball", "car"]), np.zeros(2))
    assert str(contrast) == "the logit of ' ball' − car"
    assert str(Target(0, "score 0", returns="scores")) == "score 0"
    assert str(Target(0, "sad", returns="scores")) == "the score of sad"
