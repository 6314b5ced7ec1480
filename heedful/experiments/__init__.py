"""The contract of every experiment: one figure or table of the sources, done again."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from heedful.experiments.claim import Claim, Numbers
from heedful.experiments.workspace import Workspace
from heedful.family import FamilyPackage

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

ExperimentPart = Literal["paper", "summary", "lectures", "toy tasks", "mathematics"]


@dataclass(frozen=True)
class Experiment(ABC):
    """Measured once, in steps that survive a kill; pictures and verdicts come from the numbers alone."""

    name: ClassVar[str]
    part: ClassVar[ExperimentPart]
    title: ClassVar[str]
    source: ClassVar[str]
    """Where the sources show it."""
    stands_in: ClassVar[bool] = False
    """Whether the quick form is of something smaller, which decides nothing about what was published."""

    @abstractmethod
    def measure(self, workspace: Workspace) -> Numbers:
        """Everything that is drawn or claimed, as tables."""

    @abstractmethod
    def claims(self, numbers: Numbers) -> list[Claim]:
        """What was published, what was found, and how they stand to each other."""

    @abstractmethod
    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """The pictures, by name."""


FamilyPackage.make(__name__, Experiment)
