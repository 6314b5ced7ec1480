import numpy as np
import pytest
import torch

import heedful
from heedful.document import SPECIAL
from heedful.errors import BadInput, Unsupported
from heedful.generation.as_model import continuation
from heedful.generation.continuation import Continuation, Foil
from heedful.models.altered import Movable, copied, scrambled, tables
from heedful.models.attention_hook import still
from heedful.models.classic.classifier import Classic
from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.recording import Recordable
from heedful.models.single_layer import SingleLayer
from heedful.models.transformer import Transformer
from tests.conftest import tiny_model
from tests.families import CHANGEABLE, TEXTS, VISION, answers, asked, build, split, texts_for

ALL = [*CHANGEABLE, "single-layer"]
READERS = [family for family in ALL if family not in VISION]


def model_of(family):
    return tiny_model() if family == "single-layer" else build(family)


def given(family):
    return TEXTS[1] if family == "single-layer" else texts_for(family)[1]


def rebuilt(model, network):
    """A model made from the beginning around a network."""
    if isinstance(model, SingleLayer | Transformer | EncoderClassifier | Classic):
        return type(model)(network, model.vocabulary, model.classes)
    if model is build("torch"):
        return heedful.wrap(network, split, classes=model.classes)
    return heedful.wrap(network, model.processor if model.network.main_input_name != "input_ids" else model.tokenizer)


def bits(model):
    return {name: weight.detach().clone() for name, weight in model.network.state_dict().items()}


def unchanged(model, before):
    return all(torch.equal(weight, before[name]) for name, weight in model.network.state_dict().items())


@pytest.mark.slow
@pytest.mark.parametrize("family", ALL)
def test_a_scrambled_copy_uses_the_scrambled_weights_everywhere(family):
    model, text = model_of(family), given(family)
    weights, fingerprint, old = bits(model), model.fingerprint, answers(model, text)
    copy = scrambled(model)
    assert isinstance(copy, Recordable)
    fresh = copied(model).network
    fresh.load_state_dict(copy.network.state_dict())
    new, anew = answers(copy, text), answers(rebuilt(model, fresh), text)
    for way, message in new.items():
        np.testing.assert_array_equal(message, anew[way])
        assert not np.allclose(message, old[way]), way
    assert copy.fingerprint not in (fingerprint, None)
    assert unchanged(model, weights)
    assert model.fingerprint == fingerprint


@pytest.mark.parametrize("family", ALL)
def test_scrambling_permutes_every_tensor_within_itself(family):
    model = model_of(family)
    copy = scrambled(model)
    assert isinstance(copy, Recordable)
    after = dict(copy.network.named_parameters())
    assert after.keys() == dict(model.network.named_parameters()).keys()
    for name, weight in model.network.named_parameters():
        assert torch.equal(weight.flatten().sort().values, after[name].flatten().sort().values)
        assert weight.unique().numel() < 3 or not torch.equal(weight, after[name])


def test_scrambling_depends_on_the_seed(tiny):
    assert scrambled(tiny, 0).fingerprint == scrambled(tiny, 0).fingerprint != scrambled(tiny, 1).fingerprint
    with pytest.raises(BadInput, match="The seed must be a whole number ≥ 0"):
        scrambled(tiny, -1)


def test_functions_and_bags_have_no_weights_to_scramble():
    for model in (heedful.wrap(lambda texts: [[len(text)] for text in texts]), heedful.Bag([1.0, 2.0], [1.0, -1.0])):
        with pytest.raises(Unsupported, match="has no weights"):
            scrambled(model)


@pytest.mark.parametrize("family", READERS)
def test_a_moved_model_says_what_the_model_says_to_moved_embeddings(family):
    model, text = model_of(family), given(family)
    weights = bits(model)
    document = model.encode(text)
    movable = Movable(model)
    numbers, vectors = movable.rows(document)
    shift = 0.3 * np.random.default_rng(0).standard_normal(vectors.shape)
    moved = movable.moved(document, shift)
    with torch.no_grad(), still(model.network):
        e, gone = model.embed([document]), model.absent([document])
        change = moved.embed([document]) - e
        expected = model.forward(e + change, [document]).numpy()
        keep = np.random.default_rng(1).random((1, len(document.ids))) < 0.5
        keep |= document.words == SPECIAL
        there = torch.ones(e.shape[1], dtype=torch.bool)
        there[: keep.shape[1]] = torch.from_numpy(keep[0])
        thinned = model.forward(torch.where(there[:, None], e + change, gone), [document]).numpy()
    # Some tables scale what they give, by the same factor for every word.
    row_of = {number: place for place, number in enumerate(numbers.tolist())}
    scale = None
    for token, number in enumerate(document.ids.tolist()):
        if number in row_of and document.words[token] != SPECIAL:
            ratio = change[0, token].numpy() / shift[row_of[number]]
            scale = ratio.mean() if scale is None else scale
            np.testing.assert_allclose(ratio, scale, rtol=1e-6)
    assert scale is not None
    assert set(numbers.tolist()) <= set(document.ids.tolist())
    np.testing.assert_allclose(moved([text]), expected, rtol=1e-9, atol=1e-9)
    values = moved.masked(document, asked(model), keep, "replace")
    np.testing.assert_allclose(values, thinned[:, asked(model).index], rtol=1e-9, atol=1e-9)
    new, old = answers(moved, text), answers(model, text)
    assert all(not np.allclose(new[way], old[way]) for way in new)
    assert moved.fingerprint != model.fingerprint
    assert unchanged(model, weights)


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart", "torch", "single-layer"])
def test_what_was_moved_for_one_text_is_moved_back_for_the_next(family):
    model, text = model_of(family), given(family)
    document, movable = model.encode(text), Movable(model)
    _, vectors = movable.rows(document)
    first = movable.moved(document, np.ones_like(vectors)).fingerprint
    moved = movable.moved(document, np.zeros_like(vectors))
    assert moved.fingerprint != first
    np.testing.assert_array_equal(movable.rows(document)[1], vectors)
    np.testing.assert_array_equal(moved([text]), model([text]))


def test_the_unknown_token_is_never_moved(tiny):
    document = tiny.encode("an unheard of film , unheard of")
    numbers, _ = Movable(tiny).rows(document)
    assert [tiny.vocabulary.words[number] for number in sorted(numbers)] == ["film", "an", ","]


def test_a_picture_has_no_words_to_move():
    with pytest.raises(Unsupported, match="no table of word vectors"):
        Movable(build("vit"))


def test_a_copy_shares_what_it_reads_texts_with_and_keeps_the_names_of_its_tokens():
    model = build("gpt2")
    assert len(model.classes) > 0
    copy = copied(model)
    assert copy.tokenizer is model.tokenizer
    assert vars(copy)["classes"] is model.classes
    assert "fingerprint" not in vars(copy)
    assert copy.fingerprint == model.fingerprint


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_copy_of_what_was_written_runs_the_copied_network(family):
    base = build(family)
    model = continuation(base, 4)
    document = model.encode("the film was good")
    weights, before = bits(base), model.logits([document])
    copy = scrambled(model)
    fresh = scrambled(base)
    np.testing.assert_array_equal(copy.logits([document]), Continuation(fresh).logits([document]))
    assert copy.base.network is copy.network is not base.network
    assert copy.base.tokenizer is base.tokenizer
    assert copy.fingerprint == fresh.fingerprint != model.fingerprint
    assert (
        copy.encode("the film was good").ids.tolist() == continuation(fresh, 4).encode("the film was good").ids.tolist()
    )
    assert unchanged(base, weights)
    np.testing.assert_array_equal(model.logits([document]), before)


def test_the_values_at_masks_of_a_copy_are_its_own_and_so_are_those_of_the_text_it_is_compared_with():
    base = build("gpt2")
    document, other = (continuation(base, 4).encode(text) for text in ("the film was good", "a bad plot"))
    model, keep = Continuation(base), np.ones((1, len(document.ids)), dtype=bool)
    model.foil = Foil(Continuation(base), other, (-1,) * len(other.ids))
    target = heedful.Target(0, "", None, "log-probability", "log-probabilities")
    (value,) = model.masked(document, target, keep, "replace")
    (anew,) = scrambled(model).masked(document, target, keep, "replace")
    fresh = Continuation(scrambled(base))
    assert anew == pytest.approx(fresh.logits([document])[0, 0] - fresh.logits([other])[0, 0], abs=1e-10)
    assert model.masked(document, target, keep, "replace") == value != anew


def test_moved_word_vectors_reach_what_was_written():
    base = build("gpt2")
    model = continuation(base, 4)
    document = model.encode("the film was good")
    movable = Movable(model)
    shift = 0.3 * np.random.default_rng(0).standard_normal(movable.rows(document)[1].shape)
    alone = Movable(base)
    expected = Continuation(alone.moved(document, shift)).logits([document])
    moved = movable.moved(document, shift)
    np.testing.assert_array_equal(moved.logits([document]), expected)
    assert not np.allclose(expected, model.logits([document]))
    assert moved.fingerprint != model.fingerprint


def test_a_table_that_the_output_shares_is_not_changed():
    with pytest.raises(Unsupported, match="shares its table"):
        tables(build("own-gpt2"))
