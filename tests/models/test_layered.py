import numpy as np

from heedful.generation.as_model import continuation
from heedful.models.layered import padded, root_of
from tests.families import TEXTS, build


def test_attention_that_is_handed_back_unchanged_changes_nothing():
    model = build("bert")
    documents = [model.encode(TEXTS[0])]
    assert np.allclose(model.edited(documents, lambda _, maps: maps), model.logits(documents), atol=1e-12)


def test_rows_are_padded_on_the_right():
    numbers, is_token = padded([np.array([3, 4]), np.array([5])], 9)
    assert numbers.tolist() == [[3, 4], [5, 9]]
    assert is_token.tolist() == [[True, True], [True, False]]


def test_the_root_of_a_derived_model_is_the_model_whose_network_it_is():
    base = build("gpt2")
    written = continuation(base)
    assert root_of(written) is root_of(base) is base
    assert written.network is base.network
    assert (written.replacement_id, written.ragged) == (base.replacement_id, base.ragged)
