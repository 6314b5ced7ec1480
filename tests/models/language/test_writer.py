import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.models.attention_hook import still
from heedful.models.language.bpe import learn_byte_pairs
from heedful.models.language.gpt2 import Gpt2Config, initial_gpt2
from heedful.models.language.writer import Writer
from tests.families import CORPUS, TEXTS, build

HOSTILE = [
    *TEXTS,
    "a filmé 日本 😀 good  \n",
    " x  y \t\n z ",
    "",
    "   ",
    "\ud800 half",
    "don't we'll I'M",
    "e\u0301 ²Ⅷ",
    "a " * 90,
]


def writer(starts=True):
    vocabulary = learn_byte_pairs(CORPUS, 330)
    return Writer(initial_gpt2(Gpt2Config(330, 24, 8, 2, 2, 16), 0).double().eval(), vocabulary, starts)


@pytest.mark.parametrize("text", HOSTILE)
def test_documents_and_logits_are_those_of_the_hugging_face_model(text):
    ours, theirs = build("own-gpt2").encode(text), build("gpt2").encode(text)
    assert (ours.text, ours.pieces, ours.spans, ours.notes) == (theirs.text, theirs.pieces, theirs.spans, theirs.notes)
    assert ours.ids.tolist() == theirs.ids.tolist()
    assert ours.words.tolist() == theirs.words.tolist()
    if len(ours.ids):
        assert np.abs(build("own-gpt2").logits([ours]) - build("gpt2").logits([theirs])).max() < 1e-11


def test_names_of_tokens_are_those_of_the_hugging_face_model():
    ours, theirs = build("own-gpt2"), build("gpt2")
    assert ours.classes == theirs.classes
    names = [model.target_names(model.encode(TEXTS[0])) for model in (ours, theirs)]
    assert [names[0].shown(n) for n in range(330)] == [names[1].shown(n) for n in range(330)]
    for name in ("good", " good", "!", "id:8", "Ġgood", "nothing like it"):
        assert names[0].meanings(name) == names[1].meanings(name)


@torch.no_grad()
def test_masks_with_a_common_prefix_get_the_logits_of_a_whole_pass():
    model = build("own-gpt2")
    documents = [model.encode(f"{TEXTS[1]} {word}") for word in ("bad", "good", "very", "the", "a")]
    e = model.embed(documents)
    hidden = torch.zeros(e.shape[:2], dtype=torch.bool)
    hidden[:, 11] = True
    for some in (None, hidden):
        together = model.forward(e, documents, some)
        own = [None if some is None else some[:1, : len(d.ids)] for d in documents]
        alone = [model.forward(model.embed([d]), [d], mask) for d, mask in zip(documents, own, strict=True)]
        assert torch.allclose(together, torch.cat(alone), atol=1e-11)


def test_a_text_may_begin_behind_the_token_that_ends_texts():
    model = writer()
    document = model.encode("the film")
    assert document.ids[0] == model.vocabulary.special[0]
    assert document.words.tolist()[0] == -1
    assert document.word_texts == ("the", "film")
    assert model([""]).shape == (1, 330)
    assert not np.array_equal(model(["good"]), writer(False)(["good"]))


def test_a_long_text_is_truncated_with_a_note():
    document = writer().encode("good " * 50)
    assert len(document.ids) == 24
    assert document.notes[0].kind == "truncated"


@torch.no_grad()
def test_a_text_that_fills_the_model_cannot_go_on():
    model = writer()
    with still(model.network):
        prefix = model.read(model.encode("good " * 50))
        with pytest.raises(BadInput, match="at most 24 tokens"):
            model.go_on(prefix, torch.tensor([3]))


def test_output_that_ends_within_a_character_is_spelt_and_stands_behind_the_text():
    model = writer()
    first, *rest = model.vocabulary.encode("é")
    document = model.continued(model.encode("good"), [first, *rest, model.vocabulary.special[0]])
    assert document.text == "goodé"
    assert document.words.tolist()[-1] == -1
    assert model.spell([first]) == "�"


def test_a_replacing_word_must_be_one_token():
    model = build("own-gpt2")
    assert model.classes[model.word_id("good")].strip() == "good"
    with pytest.raises(BadInput, match="not one token"):
        model.word_id("unforgettable plots")
