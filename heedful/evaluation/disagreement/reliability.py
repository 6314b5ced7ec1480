"""How often a diagnosis proves right when the unit is really taken out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.document import Absence
from heedful.evaluation.disagreement.causes import attention_rules
from heedful.evaluation.disagreement.evidence import Passed

EXPECTED: Mapping[str, str] = {
    "sign lost": "the target rises when it goes",
    "value killed": "it costs at most half of what its attention suggests",
    "heads cancel": "it costs at most half of what its heads carry in all",
    "value typical": "it costs at most half of what it carries",
}
"""What each cause says will happen; all others are found by taking units out, and need no test."""


@final
@dataclass(frozen=True)
class Reliability:
    """How many units behaved as a cause says: of those it was found for, and of others that stand out as much."""

    cause: str
    absence: Absence
    behaved: int
    found: int
    others_behaved: int
    others: int

    def __str__(self) -> str:
        done = {"mask": "hidden", "replace": "replaced", "delete": "deleted"}.get(self.absence, self.absence)
        return (
            f"{self.cause}: {self.behaved} of {self.found} behaved so when {done}, "
            f"{self.others_behaved} of {self.others} others"
        )


def reliability(passed: Passed, losses: Mapping[Absence, Float[np.ndarray, "unit"]]) -> tuple[Reliability, ...]:
    """Counts for every cause that can be tested, on every absence that units were really taken out by."""
    tested = []
    for absence, loss in losses.items():
        for name, rule in attention_rules(passed).items():
            behaved = loss < 0 if name == "sign lost" else np.abs(loss) <= rule.half
            others = rule.open_to & ~rule.found
            counts = (int(x.sum()) for x in (behaved & rule.found, rule.found, behaved & others, others))
            tested.append(Reliability(name, absence, *counts))
    return tuple(tested)
