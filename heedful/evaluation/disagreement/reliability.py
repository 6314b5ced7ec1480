"""How often a diagnosis is confirmed when the unit is removed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.document import Absence
from heedful.evaluation.disagreement.causes import attention_rules
from heedful.evaluation.disagreement.evidence import Passed

EXPECTED: Mapping[str, str] = {
    "sign lost": "the target rises when it is removed",
    "value killed": "its loss is at most half of what its attention suggests",
    "heads cancel": "its loss is at most half of the total size of its heads' contributions",
    "value typical": "its loss is at most half of its contribution",
}
"""What each cause predicts; the other causes are read from removed units and need no test."""


@final
@dataclass(frozen=True)
class Reliability:
    """How many units behaved as a cause predicts: of those it was diagnosed for, and of other notable units."""

    cause: str
    absence: Absence
    behaved: int
    diagnosed: int
    others_behaved: int
    others: int

    def __str__(self) -> str:
        done = {"mask": "hidden", "replace": "replaced", "delete": "deleted"}.get(self.absence, self.absence)
        return (
            f"{self.cause}: {self.behaved} of {self.diagnosed} behaved as predicted when {done}, "
            f"{self.others_behaved} of {self.others} others"
        )


def reliability(passed: Passed, losses: Mapping[Absence, Float[np.ndarray, "unit"]]) -> tuple[Reliability, ...]:
    """Counts for every cause that can be tested, for every absence by which units were removed."""
    tested = []
    for absence, loss in losses.items():
        for name, rule in attention_rules(passed).items():
            behaved = loss < 0 if name == "sign lost" else np.abs(loss) <= rule.half
            others = rule.open_to & ~rule.applies
            counts = (int(x.sum()) for x in (behaved & rule.applies, rule.applies, behaved & others, others))
            tested.append(Reliability(name, absence, *counts))
    return tuple(tested)
