"""Memory and time limits of a run, its device, and its progress callback."""

import re
from dataclasses import dataclass
from math import inf, nan
from typing import final

import torch

from heedful.errors import BadInput, in_short
from heedful.progress import Progress

PASS_MEMORY = 500_000_000
"""Bytes that one pass may take before it is split, unless the user sets a limit."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@final
@dataclass(frozen=True)
class Budget:
    """Limits of a run: bytes a pass may take beyond the model, seconds of sampling a text, masks in a pass.

    `memory=None` means half a gigabyte, or a quarter of what a GPU has free. `seconds` becomes a number of samples
    before the run starts, so that the result is reproducible. `watch` is the progress callback.
    """

    memory: int | None = None
    seconds: float = inf
    at_once: int | None = None
    half: bool = False
    """Whether masks may be evaluated in half precision, where that is measured to change values little."""
    watch: Progress = lambda *_: None

    @staticmethod
    def of(
        memory: str | int | float | None, seconds: int | float | None, watch: Progress, half: bool = False
    ) -> "Budget":
        """From what a user writes: memory as "2GB" or a number of bytes, and seconds."""
        limit = inf if seconds is None else _seconds_of(seconds)
        if not callable(watch):
            raise BadInput(f"progress must be a function of (done, total); {in_short(watch)} was given.")
        if not isinstance(half, bool):
            raise BadInput(f"half must be True or False; {in_short(half)} was given.")
        size = None if memory is None else bytes_of(memory)
        return Budget(size, limit, None, half, watch)


def _seconds_of(seconds: int | float) -> float:
    try:
        limit = float(seconds) if isinstance(seconds, int | float) else nan
    except OverflowError:
        raise BadInput("seconds is too large a number; leave it out for no time limit.") from None
    if not limit > 0:
        raise BadInput(f"seconds must be a number above 0; {in_short(seconds)} was given.")
    return limit


def check_device(device: str) -> None:
    """Raises BadInput if the machine does not have the device, or if the device holds no numbers."""
    try:
        kind = torch.empty(0, device=device).device.type
    except (RuntimeError, AssertionError, TypeError, NotImplementedError):
        raise BadInput(f"This machine has no device {device!r}; use cpu.") from None
    if kind == "meta":
        raise BadInput(f"The device {device!r} holds no numbers; use cpu or cuda.")


def bytes_of(size: str | int | float) -> int:
    """Parses a size such as 2GB, 500 MB or 1.5g; a bare number is in bytes."""
    match = _SIZE.fullmatch(size if isinstance(size, str) else in_short(size))
    n_bytes = 0.0 if match is None else float(match[1]) * _SCALE[match[2].lower()]
    if not 0 < n_bytes < inf:
        raise BadInput(f"memory must be a size such as 2GB or 500MB; {in_short(size)} was given.")
    return int(n_bytes)


def as_size(n_bytes: int | float) -> str:
    """A number of bytes as text, such as 2 GB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale:
            return f"{n_bytes / scale:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"
