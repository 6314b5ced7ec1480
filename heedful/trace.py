"""What is seen inside a model while it reads; not an explanation yet."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float


@final
@dataclass(frozen=True, eq=False)
class Trace:
    """Attention of the read-out query, Eq. (8), over every key, padding included; rows sum to one."""

    attention: Float[np.ndarray, "batch layer head key"]
