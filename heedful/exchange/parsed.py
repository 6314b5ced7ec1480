"""The content of an explanation that another package made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from heedful.document import Unit
from heedful.errors import BadInput
from heedful.exchange.pieces import Places


@final
@dataclass(frozen=True, eq=False)
class Parsed:
    """The numbers of another package's explanation, and the parts of the text that they belong to.

    `names` are pieces of the text in its order; `places` are their spans; with neither there is one number per token,
    special tokens included. `output` is the model's output according to the package.
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


def another_text_error(package: str, theirs: str, ours: str) -> BadInput:
    """The error for an explanation of another text, with the first place where the two differ."""
    same = next((i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), min(len(theirs), len(ours)))
    low = max(same - 10, 0)
    return BadInput(
        f"{package} explained another text: it has {theirs[low : same + 20]!r} where this one has "
        f"{ours[low : same + 20]!r}; explain the same characters."
    )
