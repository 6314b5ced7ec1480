"""The contract of every probe: one published test of whether attention explains a model, with what it does not show."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, final

import numpy as np

from heedful.statistics.quantity import Quantity

if TYPE_CHECKING:
    from heedful.evaluation.probes.inquiry import Inquiry

Answer = Literal["yes", "partly", "no", "unknown"]
"""Whether attention passes a probe; unknown where the texts do not decide it."""
AttentionUse = Literal[
    "finding the words that decide",
    "ranking words by importance",
    "reading the sign",
    "saying that attention matters",
    "the only explanation",
    "an explanation that cannot be faked",
]
"""What people use attention for; a probe judges one of these."""


@final
class Finding(NamedTuple):
    """One number of a probe, beside its null and the number that was published for the classic model."""

    what: str
    value: Quantity
    null: Quantity | None = None
    null_is: str = ""
    published: str = ""
    key: str = ""
    """A short name for programs."""

    def __repr__(self) -> str:
        null = f", null {self.null}" if self.null is not None else ""
        return f"<{self.what[:150]}: {self.value}{null}>"


@final
class ProbeResult(NamedTuple):
    """What a probe measured, its answer, and the sentence that says why."""

    findings: tuple[Finding, ...]
    answer: Answer
    why: str

    def __repr__(self) -> str:
        return f"<{self.answer}: {self.why[:200]} {len(self.findings)} findings>"


def decide(findings: Iterable[Finding], *cases: tuple[bool | np.bool_, Answer, str]) -> ProbeResult:
    """The result with the answer and the reason of the first case that holds."""
    return ProbeResult(tuple(findings), *next(case[1:] for case in cases if case[0]))


@dataclass(frozen=True)
class Probe(ABC):
    """A published test of whether attention explains a model. Its fields are its settings."""

    name: ClassVar[str]
    question: ClassVar[str]
    source: ClassVar[str]
    use: ClassVar[AttentionUse]
    shows: ClassVar[str]
    does_not_show: ClassVar[str]
    """What does not follow, with the rebuttals and their sources."""
    yes_counts: ClassVar[bool] = True
    """Whether a yes counts for the use; that of a condition which is only necessary does not, though its no does."""
    trains: ClassVar[bool] = False
    """Whether it trains models, and so needs texts with labels to train on."""
    retrains: ClassVar[bool] = False
    """Whether it trains the model itself again, which needs a model of `heedful train`."""

    @abstractmethod
    def measure(self, inquiry: "Inquiry") -> ProbeResult:
        """The numbers and the answer, over the texts of the inquiry."""
