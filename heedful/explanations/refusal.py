"""The place of a text that could not be explained, in a list of explanations."""

from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np

from heedful.document.note import Note


@final
@dataclass(frozen=True, eq=False)
class Refusal:
    """A text without an explanation, and the reason. It has the fields of an explanation, without units."""

    text: str
    reason: str
    method: str

    refused = True
    units: tuple[str, ...] = ()
    error = None
    output: float = nan

    @property
    def scores(self) -> np.ndarray:
        """No scores: an empty array."""
        return np.zeros(0)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The reason, as a note."""
        return (Note(self.reason, "refused"),)

    def top(self, n: int = 5) -> list[tuple[str, float]]:  # noqa: ARG002
        """No units: an empty list."""
        return []

    def as_rows(self) -> list[dict[str, str | float | None]]:
        """No rows: an empty list."""
        return []

    def __repr__(self) -> str:
        return f"<no {self.method} explanation: {self.reason[:200]}>"
