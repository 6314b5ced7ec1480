import numpy as np

from heedful.models.layered import padded
from tests.families import TEXTS, build


def test_attention_that_is_handed_back_unchanged_changes_nothing():
    model = build("bert")
    documents = [model.encode(TEXTS[0])]
    assert np.allclose(model.edited(documents, lambda _, maps: maps), model.logits(documents), atol=1e-12)


def test_rows_are_padded_on_the_right():
    numbers, is_token = padded([np.array([3, 4]), np.array([5])], 9)
    assert numbers.tolist() == [[3, 4], [5, 9]]
    assert is_token.tolist() == [[True, True], [True, False]]
