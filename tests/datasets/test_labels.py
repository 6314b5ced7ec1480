import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import LabelEncoder

from heedful.datasets.labels import class_numbers, present
from heedful.errors import BadInput

CLASSES = ("negative", "positive")
STARS = ("1", "2", "3", "4", "5")


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ([1, 0, -1, None], (1, 0, None, None)),
        ([True, False, True, False], (1, 0, 1, 0)),
        (["1", "0.0", "", "1.0"], (1, 0, None, 1)),
        (["Positive", "NEGATIVE ", "positive", np.nan], (1, 0, 1, None)),
        ([np.int64(1), np.float64(0), pd.NA, 1], (1, 0, None, 1)),
    ],
)
def test_labels_are_classes_by_number_or_name(labels, numbers):
    assert class_numbers(labels, CLASSES) == numbers
    assert class_numbers([label for label in labels if present(label) is not None], CLASSES) == tuple(
        number for number in numbers if number is not None
    )


@pytest.mark.parametrize("kind", [int, float, str, np.int64])
def test_numbers_of_stars_are_names_if_all_labels_are(kind):
    given = [1, 3, 5, 2]
    expected = LabelEncoder().fit(STARS).transform([str(n) for n in given])
    assert class_numbers([*map(kind, given)], STARS) == tuple(expected)
    assert class_numbers([*map(kind, [0, 1, 4])], STARS) == (0, 1, 4)


@pytest.mark.parametrize(("label", "hint"), [("positiv", "did you mean 'positive'"), (2, "got 2"), (0.5, "got 0.5")])
def test_a_label_of_no_class_is_refused_with_its_row(label, hint):
    with pytest.raises(BadInput, match=rf"row 2: the label must be a class .* \(negative, positive\); {'.*' + hint}"):
        class_numbers([1, label], CLASSES)


def test_numbers_with_names_of_their_own_are_matched_by_name():
    assert class_numbers([0, 1, None], CLASSES, ("Positive", "Negative")) == (1, 0, None)
    assert class_numbers([0, 1, None], CLASSES, ("good", "bad")) == (0, 1, None)
    assert class_numbers([1, 3], STARS, ("one", "two", "three", "four", "five")) == (1, 3)
    with pytest.raises(BadInput, match="the data have 3 classes and the model 2"):
        class_numbers([0, 1], CLASSES, ("a", "b", "c"))


def test_labels_of_a_model_with_one_output_are_refused():
    assert class_numbers([None, None], ("toxic",)) == (None, None)
    with pytest.raises(BadInput, match="a single output, so labels are not classes of it. Without labels"):
        class_numbers([0, 0], ("toxic",))
