"""The search of Jain & Wallace for attention far from the model's own that gives the same output: gradient ascent."""

from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_NOISE, _PENALTY = 3.0, 500.0


@final
class Ascent(NamedTuple):
    """How long the search is; the defaults are the authors'."""

    n_starts: int = 5
    n_steps: int = 500
    rate: float = 0.01


def ascend(
    shares: Float[np.ndarray, "text word"],
    gain: Float[np.ndarray, "text classes word"],
    logits: Float[np.ndarray, "text classes"],
    epsilon: float,
    search: Ascent,
    seed: int,
) -> Float[np.ndarray, "text start word"]:
    """The attention that each start ends at, for one head of each text; words beyond the end of a text have share 0.

    Adam on log-attention from the model's own plus N(0, 3²), with the loss −JSD + 500 · max(0, TVD − ε), less the mean
    divergence between the starts, as in the authors' code (AttentionExplanation, `AdversaryMulti`).
    Differs from the code: the output is known as a linear function of the attention, so no network is run.
    """
    rng = torch.Generator().manual_seed(seed)
    p, g, z = (torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)) for x in (shares, gain, logits))
    hidden = (p == 0)[:, None]
    start = p.clamp(min=1e-12).log()[:, None] + _NOISE * torch.randn(len(p), search.n_starts, p.shape[1], generator=rng)
    parameters = start.requires_grad_()
    optimiser = torch.optim.Adam([parameters], lr=search.rate, amsgrad=True)
    for _ in range(search.n_steps):
        alpha = torch.softmax(parameters.masked_fill(hidden, -torch.inf), dim=-1)
        new = _outcomes(z[:, None] + torch.einsum("xcw,xsw->xsc", g, alpha - p[:, None]))
        change = (new - _outcomes(z)[:, None]).abs().sum(dim=-1) / 2
        loss = -_divergence(alpha, p[:, None]) + _PENALTY * (change - epsilon).clamp(min=0)
        if search.n_starts > 1:
            # Twice the mean over pairs would count each pair twice; a start does not differ from itself.
            apart = _divergence(alpha[:, :, None], alpha[:, None]).sum(dim=(1, 2))
            loss = loss - (apart / (search.n_starts * (search.n_starts - 1)))[:, None]
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
    final_shares = torch.softmax(parameters.detach().double().masked_fill(hidden, -torch.inf), dim=-1)
    return final_shares.numpy()


def _outcomes(logits: Tensor) -> Tensor:
    """The distribution over classes; of a single logit that of no and yes."""
    if logits.shape[-1] == 1:
        return torch.cat([torch.sigmoid(-logits), torch.sigmoid(logits)], dim=-1)
    return torch.softmax(logits, dim=-1)


def _divergence(one: Tensor, other: Tensor) -> Tensor:
    """The Jensen–Shannon divergence."""
    # entr has an infinite slope at 0.
    middle, *own = (torch.special.entr(x.clamp(min=1e-20)).sum(dim=-1) for x in ((one + other) / 2, one, other))
    return middle - (own[0] + own[1]) / 2
