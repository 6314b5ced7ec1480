"""The contract of every experiment: one figure or table of the sources, recomputed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from heedful.experiments.claim import Claim, Numbers
from heedful.experiments.workspace import Workspace
from heedful.family import FamilyPackage

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

ExperimentPart = Literal["paper", "summary", "lectures", "debate", "toy tasks", "mathematics"]


@dataclass(frozen=True)
class Experiment(ABC):
    """One figure or table, measured in resumable steps; figures and claims are made from the numbers alone."""

    name: ClassVar[str]
    part: ClassVar[ExperimentPart]
    title: ClassVar[str]
    source: ClassVar[str]
    """The source that contains it."""
    smaller_when_quick: ClassVar[bool] = False
    """Whether the quick form is too small to confirm or refute the published result."""

    takes_text: ClassVar[bool] = False
    """Whether it explains one text, which a user can replace."""
    takes_model: ClassVar[bool] = False
    """Whether it explains one model, which a user can replace."""

    @abstractmethod
    def measure(self, workspace: Workspace) -> Numbers:
        """Measures everything that is drawn or claimed, as tables."""

    @abstractmethod
    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""

    @abstractmethod
    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures, by name."""


FamilyPackage.make(__name__, Experiment)
