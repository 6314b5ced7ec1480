import pytest
import torch

from heedful.errors import BadInput
from heedful.models.attention_maps.operators import combined, looks_of
from heedful.models.question import ask
from tests.families import build, texts_for


@pytest.mark.parametrize(
    ("how", "result"),
    [("mean", [2.0, 3.5]), ("sum", [4.0, 7.0]), ("max", [3.0, 5.0]), ("product", [3.0, 10.0]), (-1, [3.0, 5.0])],
)
def test_values_are_combined_along_the_axis(how, result):
    assert combined(torch.tensor([[1.0, 2.0], [3.0, 5.0]]), how, 0, "head").tolist() == result


def test_a_number_that_does_not_exist_is_named():
    with pytest.raises(BadInput, match="There is no layer 2; the model has 2"):
        combined(torch.zeros(2, 3), 2, 0, "layer")


def test_the_rows_of_padding_have_no_weight_and_those_of_words_have():
    looks = looks_of(ask(build("bert"), texts_for("bert")))
    lengths = [len(build("bert").encode(text).ids) for text in texts_for("bert")]
    assert looks.real.sum(dim=1).tolist() == lengths
    assert looks.readout.argmax(dim=1).tolist() == [0, 0, 0]
