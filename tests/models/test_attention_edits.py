import pytest
import torch

from heedful.errors import BadInput
from heedful.models.attention_edits import erased, given, nothing, only, permuted, uniform


def maps():
    seen = torch.ones(3, 3).tril()
    rows = torch.rand(1, 2, 3, 3, generator=torch.Generator().manual_seed(0)) * seen
    return rows / rows.sum(dim=-1, keepdim=True)


def test_uniform_attention_is_equal_over_the_keys_that_are_seen():
    expected = torch.tensor([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3] * 3])
    assert torch.allclose(uniform(0, maps()), expected.expand(1, 2, 3, 3))


def test_a_permutation_keeps_each_rows_weights_and_what_is_hidden():
    before, after = maps(), permuted(1)(0, maps())
    assert torch.allclose(before.sort(dim=-1).values, after.sort(dim=-1).values)
    assert torch.equal(before == 0, after == 0)
    assert torch.equal(after, permuted(1)(0, maps()))


def test_an_edit_of_some_layers_and_heads_leaves_the_others():
    edit = only(uniform, layers=[1], heads=[0])
    assert torch.equal(edit(0, maps()), maps())
    assert torch.equal(edit(1, maps())[:, 1], maps()[:, 1])
    assert torch.allclose(edit(1, maps())[:, 0], uniform(1, maps())[:, 0])
    with pytest.raises(BadInput, match="more attention layers"):
        given([maps()])(1, maps())


def test_erased_tokens_get_nothing_and_the_others_their_shares():
    before, after = maps(), erased([1])(0, maps())
    assert not after[..., 1].any()
    assert torch.allclose(after.sum(dim=-1), torch.ones(1, 2, 3))
    assert torch.allclose(after[..., 2, 0], before[..., 2, 0] / (before[..., 2, 0] + before[..., 2, 2]))
    # The first query attends to the first token alone.
    assert torch.equal(erased([0])(0, maps())[..., 0, :], before[..., 0, :])
    for tokens in ([], [3], [-1]):
        with pytest.raises(BadInput, match="numbers from 0 to 2"):
            erased(tokens)(0, maps())


def test_the_paper_s_model_without_a_head_or_a_word_is_that_of_its_formula(tiny):
    document = tiny.encode("good film not dull")
    with torch.no_grad():
        e = tiny.embed([document])
        alpha, net = tiny.network.attention(e)[0], tiny.network
        w = torch.stack([(e[0] @ net.W_v[h].T + net.b_v[h]) @ net.W_l[h].T for h in range(3)])
        less = alpha.clone()
        less[:, 2] = 0
        f = torch.einsum("ht,htc->hc", less / less.sum(dim=1, keepdim=True), w).mean(dim=0)
        heads = torch.einsum("ht,htc->hc", alpha, w)
    assert torch.allclose(torch.from_numpy(tiny.edited([document], erased([2]))[0]), f, atol=1e-12)
    without = torch.from_numpy(tiny.edited([document], only(nothing, heads=[0]))[0])
    assert torch.allclose(without, heads[1:].sum(dim=0) / 3, atol=1e-12)
