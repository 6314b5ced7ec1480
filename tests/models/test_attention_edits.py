import pytest
import torch

from heedful.errors import BadInput
from heedful.models.attention_edits import given, only, permuted, uniform


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
