"""Dependence of attention maps on the tokens: 0 if all sequences have the same map, 1 if maps are unrelated."""

from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput

_ROUNDING = 1e-12
"""Differences below this share of the squared maps are rounding in single precision."""


def token_dependence(maps: Float[Tensor, "batch query key"]) -> float:
    """The share of the deviation from uniform attention that differs between sequences.

        mean_{s≠t} ½ ‖A_s − A_t‖² / mean_s ‖A_s − 1/n_keys‖²

    It is 0 if all sequences have the same map. If the maps have nothing in common except that their rows sum to 1,
    their mean is uniform, and it is 1, up to random variation. If all maps are uniform, it is 0.

    The attention of a position to itself is large in positional and in semantic maps, since query and key are the same
    token. Maps with queries from one sequence and keys from another distinguish the two; ordinary maps do not.
    """
    n, _, width = maps.shape
    if n < 2:
        raise BadInput(f"Token dependence needs the maps of at least 2 sequences; {n} was given.")
    doubles = maps.double()
    # The sum of variances with n − 1 below is half the mean square distance of pairs.
    between = doubles.var(dim=0).sum()
    in_all = (doubles - 1 / width).square().sum(dim=(1, 2)).mean()
    negligible = _ROUNDING * doubles.square().sum(dim=(1, 2)).mean()
    return float(between / in_all) if in_all > negligible else 0.0
