"""How far attention maps depend on the tokens: 0 is one map for every sequence, 1 maps unrelated between sequences."""

from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput

_ROUNDING = 1e-12
"""What is smaller, as a share of the squares of maps in single precision, is no difference."""


def token_dependence(maps: Float[Tensor, "batch query key"]) -> float:
    """The share of what sets maps apart from uniform attention that differs between sequences.

        mean_{s≠t} ½ ‖A_s − A_t‖² / mean_s ‖A_s − 1/n_keys‖²

    Where all sequences have one map, it is 0; where maps of different sequences have nothing in common but rows that
    sum to 1, their mean is uniform and it is 1, or a little more by chance. Of maps that are all uniform it is 0.

    A position's weight on itself is large in maps by place and in maps by token, since a position always holds its own
    token. Maps with queries from one sequence and keys from another distinguish the two; those of whole ones do not.
    """
    n, _, width = maps.shape
    if n < 2:
        raise BadInput(f"Token dependence compares sequences, so it needs the maps of at least 2; {n} was given.")
    doubles = maps.double()
    # The sum of variances with n − 1 below is half the mean square distance of pairs.
    between = doubles.var(dim=0).sum()
    in_all = (doubles - 1 / width).square().sum(dim=(1, 2)).mean()
    negligible = _ROUNDING * doubles.square().sum(dim=(1, 2)).mean()
    return float(between / in_all) if in_all > negligible else 0.0
