"""What there is in an explanation that another package made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from heedful.document import Unit
from heedful.errors import BadInput
from heedful.exchange.pieces import Places


@final
@dataclass(frozen=True, eq=False)
class Opened:
    """The numbers of another package's explanation, and what of the text they are for.

    `names` are pieces of the text in its order; `places` say where each piece stands; with neither there is a number a
    token, special ones included. `output` is what the package says the model's output is.
    """

    package: str
    numbers: Any
    names: tuple[str, ...] | None = None
    places: Places | None = None
    unit: Unit = "word"
    signed: bool | None = None
    facts: Mapping[str, int | float] = field(default_factory=dict)
    output: float | None = None
    notes: tuple[str, ...] = ()


def other_text(package: str, theirs: str, ours: str) -> BadInput:
    """The error for an explanation of another text, with the first place where the two differ."""
    same = next((i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), min(len(theirs), len(ours)))
    low = max(same - 10, 0)
    return BadInput(
        f"{package} explained another text: it has {theirs[low : same + 20]!r} where this one has "
        f"{ours[low : same + 20]!r}; explain the same characters."
    )
