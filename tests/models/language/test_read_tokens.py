import pytest
import torch

import heedful
from heedful.document import SPECIAL
from heedful.errors import Unsupported
from heedful.models.language.activations import find_sites, replace_at
from heedful.models.language.read_tokens import special_ids, watched_tokens
from tests.families import PAIR, TEXTS, build
from tests.models.language.test_writer import writer


def test_special_tokens_are_those_of_no_text_wherever_they_stand():
    assert {*special_ids(build("bert"))} == {-1, 0, 2, 3, 4}
    assert {*special_ids(build("encoder"))} == {-1, 0, 2, 3, 4}
    assert {*special_ids(build("transformer"))} == {-1, 0}
    assert {*special_ids(build("gpt2"))} == {-1, 0}
    assert {*special_ids(writer())} == {-1, *writer().vocabulary.special}


def places_of(model, documents):
    """Where the layers see tokens of a text."""
    seen = []
    with watched_tokens(model) as places:
        hook = replace_at(find_sites(model, "residual")[1], lambda site, x: seen.append(places(x)) or x)
        with torch.no_grad():
            model.forward(model.embed(documents), documents)
        hook.remove()
    return seen[-1]


@pytest.mark.parametrize("family", ["bert", "encoder", "own-gpt2", "llama", "transformer", "torch"])
def test_layers_see_the_tokens_of_every_text_of_a_batch(family):
    model = build(family)
    for texts in [TEXTS] if model.ragged else [[text] for text in TEXTS]:
        documents = [model.encode(text) for text in texts]
        for row, document in zip(places_of(model, documents), documents, strict=True):
            n = len(document.ids)
            assert row[:n].tolist() == (document.words != SPECIAL).tolist()
            assert not row[n:].any()


def test_both_texts_of_a_pair_are_seen():
    model = build("bert")
    document = model.encode(PAIR)
    assert places_of(model, [document])[0].tolist() == (document.words != SPECIAL).tolist()


def test_a_model_whose_layers_read_no_known_tokens_is_refused():
    model = build("bert")
    with watched_tokens(model) as places:
        with pytest.raises(Unsupported, match="which tokens"):
            places(torch.zeros(1, 4, 16))
        model.embed([model.encode(TEXTS[0])])
        with pytest.raises(Unsupported, match="which tokens"):
            places(torch.zeros(1, 40, 16))
    with pytest.raises(Unsupported, match="no table"), watched_tokens(build("vit")):
        pass


def test_an_unknown_word_is_a_token_of_the_text():
    model = build("bert")
    document = model.encode("the film § good")
    assert not document.known.all()
    assert places_of(model, [document])[0, 1:-1].all()
    assert heedful.load("paper").encode("a").words[0] == SPECIAL
