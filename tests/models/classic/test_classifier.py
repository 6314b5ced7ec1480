import numpy as np
import pytest
import torch

import heedful
from heedful.document import SPECIAL, Pair
from heedful.errors import BadInput, Unsupported
from heedful.models.altered import Movable, scrambled
from heedful.models.attention_edits import uniform
from heedful.models.twins.twin import twin
from tests.models.classic.models import KINDS, PAIRS, TEXTS, classic

GOOD = heedful.Target(1, "good")


@pytest.mark.parametrize("pairs", [False, True], ids=["text", "pair"])
@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_a_text_alone_gives_the_same_as_in_a_batch_of_longer_ones(encoder, attention, pairs):
    model, texts = classic(encoder, attention, pairs), PAIRS if pairs else TEXTS
    assert np.allclose(model(texts), np.concatenate([model([text]) for text in texts]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_a_deleted_word_is_a_text_without_it_and_a_replaced_one_a_text_with_another(encoder, attention):
    model = classic(encoder, attention)
    document = model.encode("a good film")
    keep = np.array([[True, True, False, True], [True, False, False, False]])
    assert model.masked(document, GOOD, keep, "delete") == pytest.approx(model(["a film", ""])[:, 1])
    assert model.masked(document, GOOD, keep, "replace") == pytest.approx(model(["a xyz film", "x y z"])[:, 1])
    assert model.masked(document, GOOD, keep[:1], "replace:bad") == pytest.approx(model(["a bad film"])[:, 1])
    with pytest.raises(BadInput, match="vocabulary"):
        model.masked(document, GOOD, keep, "replace:unheard")


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_a_hidden_word_gets_no_attention_and_the_others_share_it(encoder, attention):
    model = classic(encoder, attention)
    document, without = model.encode("a good film"), model.encode("a xyz film")
    hidden = model.masked(document, GOOD, np.array([[True, True, False, True]]), "mask")
    w = {name: weight.detach().numpy() for name, weight in model.network.named_parameters()}
    alpha = model.maps(without)[0, 0, 0] * [1, 1, 0, 1]
    with torch.no_grad():
        h, _ = model.network.first(model.embed([without]), torch.tensor([4]))
    f = w["W_c.weight"] @ (alpha / alpha.sum() @ h[0].numpy()) + w["W_c.bias"]
    assert hidden == pytest.approx(f[1:2])


def test_only_a_text_without_words_is_read_from_its_special_token():
    model = classic()
    assert model.maps(model.encode(""))[0, 0, 0].tolist() == [1.0]
    document = model.encode("good film")
    nothing = model.masked(document, GOOD, np.array([[True, False, False]]), "mask")
    assert np.isfinite(nothing).all()
    assert model.maps(document)[0, 0, 0, 0] == 0


def test_edited_attention_is_the_mean_of_the_states():
    model = classic()
    document = model.encode(TEXTS[0])
    with torch.no_grad():
        h, _ = model.network.first(model.embed([document]), torch.tensor([len(document.ids)]))
        expected = model.network.W_c(h[0, 1:].mean(dim=0)).numpy()
    assert model.edited([document], uniform)[0] == pytest.approx(expected)


def test_a_pair_is_read_as_two_texts_with_their_own_words_and_spans():
    model = classic(pairs=True)
    document = model.encode(Pair("The film", "a, good"))
    assert document.text == "The film\na, good"
    assert document.pieces == ("[cls]", "the", "film", "[cls]", "a", ",", "good")
    assert document.segments.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert document.words.tolist() == [SPECIAL, 0, 1, SPECIAL, 2, 3, 4]
    assert document.word_texts == ("The", "film", "a", ",", "good")
    deleted = model.masked(document, GOOD, np.array([[True, False, True, True, True, True, False]]), "delete")
    assert deleted == pytest.approx(model([Pair("film", "a,")])[:, 1])


def test_a_text_for_a_model_of_pairs_and_the_reverse_are_refused():
    with pytest.raises(BadInput, match=r"give heedful\.Pair"):
        classic(pairs=True).encode("good film")
    with pytest.raises(BadInput, match="a pair was given"):
        classic().encode(Pair("good", "film"))


def test_a_long_text_is_cut_with_a_note_and_each_text_of_a_pair_for_itself():
    long = "good film " * 20
    assert len(classic().encode(long).ids) == 12
    document = classic(pairs=True).encode(Pair(long, long))
    assert len(document.ids) == 24
    assert [note.kind for note in document.notes] == ["truncated", "truncated"]


def test_attention_times_values_are_shares_of_the_logits():
    model = classic("average", "dot")
    shares = heedful.explain(model, TEXTS[0], "value-norms")
    assert (shares.scores > 0).all()
    rows = model.attention([model.encode(TEXTS[0])])
    assert rows.sum(axis=-1) == pytest.approx(1)


@pytest.mark.parametrize("pairs", [False, True], ids=["text", "pair"])
def test_a_comparison_is_drawn_with_the_one_query(pairs, tmp_path):
    c = heedful.compare(classic(pairs=pairs), (PAIRS if pairs else TEXTS)[0], ["attention-mean", "gradient-l2"])
    c.save(tmp_path / "page.html")
    assert '"queries": ["query"]' in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(BadInput, match="no such attention"):
        heedful.heads(classic(), TEXTS[0])


def test_changed_copies_work_and_a_twin_is_refused():
    model = classic()
    assert model.fingerprint != scrambled(model).fingerprint
    deaf = heedful.deaf(model, ["good"])
    assert np.allclose(deaf(["a good film"]), model(["xy good zw"]))
    document, movable = model.encode("good film"), Movable(model)
    assert np.allclose(movable.moved(document, np.zeros((2, 6))).logits([document]), model(["good film"]))
    with pytest.raises(Unsupported, match="no twin"):
        twin(model)


def test_the_description_names_the_model():
    assert "bilstm with tanh attention over pairs" in repr(classic(pairs=True))
    assert "offers attention, gradients, masks" in repr(classic())
