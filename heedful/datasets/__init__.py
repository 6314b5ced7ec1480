"""The contract of every data set: labelled examples in three splits."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from heedful.document.rationale import Rationale
from heedful.errors import brief
from heedful.family import FamilyPackage

Split = Literal["train", "validation", "test"]


@final
@dataclass(frozen=True)
class Example:
    """A labelled text and, if there is one, the human rationale for the label.

    `text` is what a model encodes: a string, a `Pair`, or an image. `rationale` is None if there is none.
    """

    text: Any
    label: int
    rationale: Rationale | None = None

    __repr__ = brief


@dataclass(frozen=True)
class Dataset(ABC):
    """Labelled texts or images in up to three splits. A split that does not exist is an error."""

    name: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def examples(self, split: Split) -> Sequence[Example]:
        """The examples of one split, always in the same order."""


FamilyPackage.make(__name__, Dataset)
