import pytest
import torch

from heedful.generation import measure as module
from heedful.generation.measure import Measure, quantities


@pytest.fixture
def logits():
    return torch.randn(3, 5, 11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def of_each(logits, ids, compute):
    rows = [
        [compute(*pair, place) for place, pair in enumerate(zip(*row, strict=True))]
        for row in zip(logits, ids, strict=True)
    ]
    return torch.stack([torch.stack(row) for row in rows])


def kl(reference):
    def compute(row, _, place):
        p = row.softmax(dim=0)
        return (p * (p / reference[place].exp()).log()).sum()

    return compute


def entropy(row, _, __):
    p = row.softmax(dim=0)
    return -(p * p.log()).sum()


def test_every_quantity_is_its_definition(logits):
    ids = torch.randint(11, (3, 5), generator=torch.Generator().manual_seed(1))
    reference = torch.randn(5, 11, generator=torch.Generator().manual_seed(2), dtype=torch.float64).log_softmax(dim=-1)
    definitions = {
        Measure(): lambda row, wanted, _: row.softmax(dim=0)[wanted].log(),
        Measure("logit"): lambda row, wanted, _: row[wanted],
        Measure("entropy"): entropy,
        Measure("kl", reference): kl(reference),
    }
    for measure, compute in definitions.items():
        assert torch.allclose(quantities(measure, logits, ids), of_each(logits, ids, compute), atol=1e-12)


def test_the_reference_of_later_positions_is_theirs(logits):
    ids = torch.zeros(3, 5, dtype=torch.long)
    reference = torch.randn(5, 11, dtype=torch.float64).log_softmax(dim=-1)
    all_of_them = quantities(Measure("kl", reference), logits, ids)
    assert torch.allclose(quantities(Measure("kl", reference), logits[:, 3:], ids[:, 3:], first=3), all_of_them[:, 3:])


@pytest.mark.parametrize("name", ["log-probability", "entropy"])
def test_reading_a_few_logits_at_once_changes_nothing(logits, name, monkeypatch):
    ids = torch.zeros(3, 5, dtype=torch.long)
    whole = quantities(Measure(name), logits, ids)
    monkeypatch.setattr(module, "_CELLS", 22)
    assert torch.equal(quantities(Measure(name), logits, ids), whole)
    rows = logits.requires_grad_()
    (slopes,) = torch.autograd.grad(quantities(Measure(name), rows, ids).sum(), rows)
    assert torch.isfinite(slopes).all()
