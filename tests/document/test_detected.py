import numpy as np
import pytest

import heedful
from heedful.errors import BadInput


def test_regions_are_named_by_number_unless_names_are_given():
    regions = heedful.Regions("a", np.ones((2, 3)), np.zeros((2, 4)))
    assert regions.names == ("region 1", "region 2")
    assert regions.features.dtype == np.float64


@pytest.mark.parametrize(
    ("features", "boxes", "names", "message"),
    [
        ([[1.0]], [[0.0] * 4] * 2, (), "1 regions need 1 boxes"),
        ([[1.0]], [[0.0] * 4], ("a", "b"), "1 names; got 1 and 2"),
        ([1.0], [[0.0] * 4], (), "features must be finite"),
        ([[float("nan")]], [[0.0] * 4], (), "features must be finite"),
        ([["x"]], [[0.0] * 4], (), "array of numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(features, boxes, names, message):
    with pytest.raises(BadInput, match=message):
        heedful.Regions("a", features, boxes, names)
