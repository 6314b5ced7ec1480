"""The contract of every data set."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Literal, final

from heedful import family
from heedful.document.rationale import Rationale

Split = Literal["train", "validation", "test"]


@final
@dataclass(frozen=True)
class Example:
    """One labelled text and, where people marked it, their evidence for the label.

    `text` is what a model encodes: a string, a `Pair`, or a picture. `rationale` is None if nobody marked anything.
    """

    text: Any
    label: int
    rationale: Rationale | None = None


@dataclass(frozen=True)
class Dataset(ABC):
    """Labelled texts or pictures in up to three splits; one that is not there is refused in a sentence."""

    name: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def examples(self, split: Split) -> Sequence[Example]:
        """The examples of one split, always in the same order."""


@final
class _Family(ModuleType):
    """This package, made callable: `heedful.datasets()` is the catalogue and `heedful.datasets` the folder."""

    def __call__(self) -> dict[str, type[Dataset]]:
        return dict(family.members(__name__, Dataset))


sys.modules[__name__].__class__ = _Family
