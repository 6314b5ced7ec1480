import pytest
import torch
from torch import nn

from heedful.models.recording import record
from heedful.models.twins.heads import heads_of
from tests.families import build, texts_for


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "gpt2", "llama", "t5", "bart", "vit", "torch"])
def test_heads_give_the_values_that_the_hook_records(family):
    model = build(family)
    document = model.encode(texts_for(family)[0])
    calls = record(model, [document]).calls
    places = list(heads_of(model.network, {call.module: call.v.shape[-1] for call in calls}))
    assert len(places) == len({call.module for call in calls})
    for (heads, _), call in zip(places, {call.module: call for call in calls}.values(), strict=True):
        assert heads.W[0].shape[:2] == (call.q.shape[1], call.q.shape[-1])
        # The heads of keys and values may be fewer, and the hook repeats them.
        values = heads.W[2].repeat_interleave(heads.group, 0).flatten(0, 1).double()
        v = (call.v - heads.b[2].repeat_interleave(heads.group, 0)[:, None]).transpose(1, 2).flatten(2)[0].double()
        # v = x W_v^T: every row of v lies in the column space of W_v, and least squares finds x without a residual.
        x = torch.linalg.lstsq(values, v.T).solution
        torch.testing.assert_close(values @ x, v.T, rtol=0, atol=1e-5)


def test_written_heads_are_read_again_and_compute_the_same():
    torch.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, batch_first=True).double()
    x = torch.randn(3, 5, 8).double()
    before = module(x, x, x)[0]
    ((heads, write),) = heads_of(module, {})
    write(heads.taken(torch.tensor([1, 0])))
    ((flipped, _),) = heads_of(module, {})
    torch.testing.assert_close(flipped.W[0], heads.W[0].flip(0))
    torch.testing.assert_close(module(x, x, x)[0], before)
