"""The beginning that all rows of a batch have in common, which is read once."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.models.attention_hook import is_heard

_FEWEST_ROWS = 4
_WORTHWHILE = 8


def shared_length(
    network: nn.Module,
    embeddings: Float[Tensor, "batch token d_e"],
    seen: Bool[Tensor, "batch token"] | None,
    most: int,
) -> int:
    """The length of the batch's common prefix if caching it pays; 0 if attention is recorded or gradients flow.

    At most `most` tokens are shared, since positions whose logits are wanted are read after the prefix.
    """
    if len(embeddings) < _FEWEST_ROWS or torch.is_grad_enabled() or is_heard(network):
        return 0
    equal = (embeddings == embeddings[:1]).all(dim=2).all(dim=0)
    if seen is not None:
        # A position that is hidden in some text, or past the end of a shorter text, is not shared.
        equal &= seen.all(dim=0)
    n_shared = min(int(equal.long().cumprod(dim=0).sum()), most)
    return n_shared if n_shared >= _WORTHWHILE else 0
