"""The contract of every data set."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, Literal, final

from heedful import catalog

Split = Literal["train", "validation", "test"]


@final
@dataclass(frozen=True)
class Example:
    """One labelled text."""

    text: str
    label: int


@dataclass(frozen=True)
class Dataset(ABC):
    """Labelled texts in three splits."""

    name: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def examples(self, split: Split) -> Sequence[Example]:
        """The examples of one split, always in the same order."""


@final
class _Family(ModuleType):
    """This package, made callable: `heedful.datasets()` is the catalogue and `heedful.datasets` the folder."""

    def __call__(self) -> dict[str, type[Dataset]]:
        return catalog.members(self, Dataset)


sys.modules[__name__].__class__ = _Family
