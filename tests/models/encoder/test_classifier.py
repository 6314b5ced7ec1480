import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput
from heedful.models.altered import scrambled
from heedful.models.readout import influence, reading_of
from heedful.models.twins.twin import twin
from tests.families import build

TEXT = "the film was not good , but the plot was bright"


@pytest.fixture(scope="module")
def model():
    return build("encoder")


def test_the_readout_is_what_probing_finds(model):
    document = model.encode(TEXT)
    assert influence(model, document, range(len(document.ids))).all()
    assert reading_of(model, document) == "all"
    assert np.allclose(model.readout([document]).numpy(), 1 / len(document.ids))


def test_a_deleted_word_is_a_text_without_it(model):
    document = model.encode("good film")
    keep = np.array([[True, False, True]])
    target = heedful.Target(1, "good")
    deleted = model.masked(document, target, keep, "delete")
    assert deleted == pytest.approx(model(["film"])[:, 1])
    replaced = model.masked(document, target, keep, "replace:bad")
    assert replaced == pytest.approx(model(["bad film"])[:, 1])


def test_a_hidden_word_is_neither_attended_to_nor_read(model):
    keep = np.array([[True, False, True]])
    target = heedful.Target(1, "good")
    hidden = [model.masked(model.encode(text), target, keep, "mask") for text in ("good film", "bad film")]
    assert np.allclose(*hidden, atol=1e-12)


def test_the_values_of_a_head_go_through_its_own_part_of_the_projection(model):
    from heedful.models.attention_hook import projection
    from heedful.models.recording import record

    call = record(model, [model.encode(TEXT)]).calls[0]
    layer = model.network.layers[0]
    out = torch.einsum("hqd,hde->qe", call.output()[0], projection(call))
    assert torch.allclose(out, call.output()[0].transpose(0, 1).flatten(1) @ layer.o_proj.weight.T, atol=1e-12)


def test_a_replacement_must_be_one_token(model):
    assert model.word_id("film") == model.encode("film").ids[1]
    for word in ("unforgettable", "€", ""):
        with pytest.raises(BadInput, match="not one token"):
            model.word_id(word)


def test_it_has_a_twin_and_can_be_deaf_and_scrambled(model):
    other = twin(model)
    assert np.allclose(other([TEXT]), model([TEXT]), atol=1e-9)
    assert other.fingerprint != model.fingerprint
    assert other.attention([model.encode(TEXT)]).shape[2] == 5, "one head is split into two"
    hears = heedful.deaf(model, ["good"])
    assert np.allclose(hears(["bad good"]), hears(["film good"]))
    assert not np.allclose(hears(["bad good"]), hears(["bad bad"]))
    assert not np.allclose(scrambled(model)([TEXT]), model([TEXT]))


def test_it_says_what_it_is(model):
    assert repr(model).startswith("<encoder of 3 layers × 4 heads ")
