"""Texts of a user with their ids and labels, whatever they came in."""

from dataclasses import dataclass
from typing import Any, final


@final
@dataclass(frozen=True)
class Texts:
    """Texts with their ids and labels.

    `labels` are as the user wrote them, a class by number or name, None where there is none. `about` says in one
    sentence what was read from where, such as the columns that were recognised by their names.
    """

    texts: tuple[Any, ...]
    ids: tuple[str, ...]
    labels: tuple[object, ...]
    name: str
    about: str = ""

    def __len__(self) -> int:
        return len(self.texts)
