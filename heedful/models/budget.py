"""How much a run may take, and who is told how far it is."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import final

from heedful.errors import BadInput

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much: masks of one text, or texts of a list."""

ORDINARY = 500_000_000
"""Bytes that a pass may need before it is split up, unless a user says otherwise."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@final
@dataclass(frozen=True)
class Effort:
    """Bytes that a pass may need beyond the model, seconds that sampling a text may take, masks in a pass, a watcher.

    None is what is usual: half a gigabyte, or a quarter of what a GPU has free. `seconds` becomes a number of samples
    before the run starts, so that the result can be had again without a clock.
    """

    memory: int | None = None
    seconds: float = inf
    at_once: int | None = None
    half: bool = False
    """Whether masks may be answered in half precision, if that is found to move them little."""
    watch: Progress = lambda *_: None

    @staticmethod
    def of(
        memory: str | int | float | None, seconds: int | float | None, watch: Progress, half: bool = False
    ) -> "Effort":
        """From what a user writes: "2GB" or a number of bytes, and seconds."""
        if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
            raise BadInput(f"seconds must be a number above 0; {seconds!r} was given.")
        if not callable(watch):
            raise BadInput(f"progress is a function that is told (done, of how many); {watch!r} was given.")
        size = None if memory is None else bytes_of(memory)
        return Effort(size, inf if seconds is None else float(seconds), None, half, watch)


def bytes_of(size: str | int | float) -> int:
    """A size as people write it: 2GB, 500 MB, 1.5g; a bare number counts bytes."""
    found = _SIZE.fullmatch(str(size))
    if found is None or not float(found[1]) > 0:
        raise BadInput(f"memory is a size such as 2GB or 500MB; {size!r} was given.")
    return int(float(found[1]) * _SCALE[found[2].lower()])


def as_size(n_bytes: int | float) -> str:
    """A number of bytes for people."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale:
            return f"{n_bytes / scale:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"
