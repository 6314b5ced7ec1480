import torch
from torch import nn

from heedful.models.twins.coordinates import OtherCoordinates, word_table
from tests.families import build


def test_the_table_has_other_vectors_and_the_module_gives_the_old_ones():
    torch.manual_seed(0)
    table, ids = nn.Embedding(20, 7).double(), torch.arange(20)[None]
    before, tied = table(ids).detach(), table.weight
    module = OtherCoordinates(table)
    torch.testing.assert_close(module(ids), before, rtol=0, atol=1e-14)
    inner = table(ids).detach()
    assert not torch.allclose(inner, before)
    # Differences between words do not depend on the shift; their ratios are the factors.
    torch.testing.assert_close(
        (inner[0, 1:] - inner[0, :-1]) / (before[0, 1:] - before[0, :-1]),
        torch.tensor([0.5, 1, 2, 0.5, 1, 2, 0.5]).double().expand(19, 7),
    )
    torch.testing.assert_close(tied, before[0])


def test_a_table_that_scales_what_it_looks_up_is_undone_too():
    class Scaled(nn.Embedding):
        def forward(self, input):
            return super().forward(input) * 4.0

    torch.manual_seed(0)
    table, ids = Scaled(20, 6).double(), torch.arange(20)[None]
    before = table(ids).detach()
    torch.testing.assert_close(OtherCoordinates(table)(ids), before, rtol=0, atol=1e-13)


def test_the_word_table_of_a_network_is_the_one_explainers_see():
    network = build("bert").network
    assert word_table(network) is network.bert.embeddings.word_embeddings
