import numpy as np
import pytest

from heedful.errors import BadInput
from tests.families import TEXTS, build


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_every_model_of_texts_replaces_words_in_the_same_way(family):
    model = build(family)
    document = model.encode(TEXTS[0])
    table = model.network.get_input_embeddings()
    assert np.allclose(model.gone_vector(document, "mean").detach(), table.weight.mean(dim=0).detach(), atol=1e-12)
    assert not model.gone_vector(document, "zero").any()
    assert model.tokenizer.decode([model.word_id("good")]).strip() == "good"
    with pytest.raises(BadInput):
        model.word_id("unforgettable storytelling")


def test_a_model_that_writes_has_a_class_for_every_token():
    model = build("gpt2")
    assert len(model.classes) == model.network.config.vocab_size
    assert "tokens" in repr(model)
