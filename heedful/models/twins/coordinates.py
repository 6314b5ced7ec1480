"""A table of word vectors in other coordinates, followed by the inverse map."""

from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@final
class OtherCoordinates(nn.Module):
    """Vectors e′ = e · factor + shift from `table`, mapped back to e by this module: what follows is unchanged.

    Explainers see e′, since the table gives it. Factors are ½, 1 and 2, so they lose nothing to rounding; the shift is
    half the standard deviation of the table. Without a shift a method that is linear in e could not change.
    """

    factor: Tensor
    shift: Tensor

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        old = table.weight.detach()
        factor = 2.0 ** (torch.arange(old.shape[1], device=old.device) % 3 - 1)
        first = torch.zeros(1, dtype=torch.long, device=old.device)
        before = table(first)[0].detach()
        # A new weight: in a language model the old one may also compute the logits, and there it must not change.
        table.weight = nn.Parameter(old * factor.to(old) + old.std() / 2, table.weight.requires_grad)
        self.table = table
        self.register_buffer("factor", factor.to(before))
        # Some tables scale what they look up, and the shift with it.
        self.register_buffer("shift", (table(first)[0] - before * factor.to(before)).detach())

    def forward(self, ids: Int[Tensor, "batch _"]) -> Float[Tensor, "batch _ d_e"]:
        """The vectors e of the tokens."""
        return (self.table(ids) - self.shift) / self.factor


def word_table(tower: Any) -> Any:
    """The table of word vectors of a Hugging Face model, in the coordinates that explainers see."""
    table = tower.get_input_embeddings()
    return table.table if isinstance(table, OtherCoordinates) else table
