import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.models.attention_edits import given, only, permuted, uniform
from heedful.models.attention_hook import still
from heedful.models.recording import record
from tests.families import BOTH, build, texts_for

FAMILIES = ["bert", "gpt2", "llama", "t5", "vit", "transformer", "classic", "encoder", "torch"]


def encoded(family):
    model = build(family)
    return model, [model.encode(texts_for(family)[1])]


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_sum_to_one_and_a_few_rows_are_rows_of_the_whole(family):
    model, documents = encoded(family)
    for call in record(model, documents).calls:
        maps = call.maps()
        assert torch.allclose(maps.sum(dim=-1), torch.ones(()).double())
        assert torch.allclose(call.rows(torch.tensor([0])), maps[:, :, :1])
        assert torch.allclose(maps @ call.v, call.output(), atol=1e-12)
        r = torch.rand(1, maps.shape[2], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        assert torch.allclose(call.pulled(r), torch.einsum("bs,bhst->bht", r, maps), atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_given_back_unchanged_changes_nothing(family):
    model, documents = encoded(family)
    maps = [call.maps() for call in record(model, documents).calls]
    assert np.allclose(model.edited(documents, given(maps)), model.logits(documents), atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_edited_attention_changes_the_output(family):
    model, documents = encoded(family)
    own = model.logits(documents)
    for edit in (uniform, permuted(0)):
        assert np.abs(model.edited(documents, edit) - own).max() > 1e-6
    assert np.allclose(model.logits(documents), own, atol=0)


def test_uniform_attention_is_uniform_over_what_can_be_seen():
    model, documents = encoded("gpt2")
    call = record(model, documents).calls[0]
    n = call.q.shape[2]
    flat = uniform(0, call.maps())
    expected = torch.ones(n, n).tril() / torch.arange(1, n + 1)[:, None]
    assert torch.allclose(flat, expected.double().expand_as(flat))


def test_permuted_attention_deals_out_the_same_weights():
    model, documents = encoded("gpt2")
    call = record(model, documents).calls[0]
    maps = call.maps()
    dealt = permuted(1)(0, maps)
    assert torch.allclose(dealt.sort(dim=-1).values, maps.sort(dim=-1).values)
    assert ((dealt > 0) == (maps > 0)).all()
    assert not torch.allclose(dealt, maps)
    assert torch.equal(permuted(1)(0, maps), dealt)


def test_an_edit_of_some_heads_leaves_the_others_alone():
    model, documents = encoded("bert")
    calls = record(model, documents).calls
    edit = only(uniform, layers=[1], heads=[2])
    assert torch.equal(edit(0, calls[0].maps()), calls[0].maps())
    changed = (edit(1, calls[1].maps()) != calls[1].maps()).flatten(2).any(dim=-1)[0]
    assert changed.tolist() == [False, False, True, False]


def test_maps_that_do_not_fit_are_refused():
    model, documents = encoded("bert")
    with pytest.raises(BadInput, match="has the shape|have the shape"):
        model.edited(documents, given([torch.ones(1, 4, 2, 2)] * 3))
    with pytest.raises(BadInput, match="1 maps were given, but the model has more"):
        model.edited(documents, given([record(model, documents).calls[0].maps()]))


@pytest.mark.parametrize("family", BOTH)
def test_encoder_decoder_and_cross_attention_are_distinguished(family):
    model, documents = encoded(family)
    kinds = [call.kind for call in record(model, documents).calls]
    assert kinds == ["source", "source", "self", "cross", "self", "cross"]


@pytest.mark.parametrize(
    "edit", [uniform, permuted(3), only(permuted(3), layers=[1])], ids=["uniform", "permuted", "only"]
)
@pytest.mark.parametrize("family", ["bert", "mistral", "bart"])
def test_an_edit_can_be_used_again_and_a_batch_is_its_texts_alone(family, edit):
    model = build(family)
    documents = [model.encode(text) for text in texts_for(family)]
    together = model.edited(documents, edit)
    assert np.allclose(model.edited(documents, edit), together, atol=0)
    for document, row in zip(documents, together, strict=True):
        assert np.allclose(model.edited([document], edit)[0], row, atol=1e-10)


def test_a_small_network_runs_on_one_core_and_the_number_of_threads_is_restored(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    model, before = build("bert"), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with still(model.network):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        monkeypatch.setattr("heedful.models.attention_hook.SMALL", 10)
        with still(model.network):
            assert torch.get_num_threads() == 2
        monkeypatch.undo()
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        with still(model.network):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
