"""The standing of methods in one use of an explanation, and the verdict in words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isnan
from typing import Any, final

from heedful.errors import brief
from heedful.metrics import Use

CONTROL = "random"
SIGNIFICANCE = 0.05
NO_WINNER = "no significant winner"
_LISTED = 6


@final
@dataclass(frozen=True)
class Standing:
    """One method in one use.

    `score` is the mean over texts and metrics, 0 at the worst and 1 at the best value that the text allows, with its
    95 % confidence interval. `gain` is the difference from the control, and `beats_control` its corrected p-value;
    `behind` is the corrected p-value of the difference from the best method.
    """

    method: str
    score: float
    low: float
    high: float
    gain: float
    beats_control: float
    behind: float
    passes: float | None
    """The cost of an explanation; None if it was imported."""
    n_missing: int = 0
    """Texts without a value, on which the method counts as the worst."""

    @property
    def is_better(self) -> bool:
        """Whether it is significantly better than the control."""
        return self.gain > 0 and self.beats_control < SIGNIFICANCE

    __repr__ = brief


@final
@dataclass(frozen=True)
class Verdict:
    """The best of the methods that are significantly better than the control; None if there is none."""

    use: Use
    metrics: tuple[str, ...]
    standings: tuple[Standing, ...]
    """The best first; the control among them."""
    recommended: str | None
    """The best in this sample; a winner only if `as_good` has no other method that beats the control."""
    as_good: tuple[str, ...]
    """The recommended method and all that are not distinguishable from it."""

    def as_dict(self) -> dict[str, Any]:
        """All fields and the sentence, ready for JSON, without NaN."""
        standings = [
            {
                name: None if isinstance(value, float) and isnan(value) else value
                for name, value in asdict(standing).items()
            }
            for standing in self.standings
        ]
        return {"sentence": self.sentence, **asdict(self), "standings": standings}

    @property
    def equals(self) -> tuple[str, ...]:
        """The methods that beat the control and are not distinguishable from the best of them, which is first."""
        better = {standing.method for standing in self.standings if standing.is_better}
        return tuple(method for method in self.as_good if method in better)

    @property
    def headline(self) -> str:
        """What to use, in a few words; only a method that is distinguishable from the others is named alone."""
        if not self.equals:
            return NO_WINNER
        if len(self.equals) == 1:
            return f"use {self.equals[0]}"
        if len(self.equals) == 2:
            return f"{_listed(self.equals)} are not distinguishable"
        n, n_all = _count(len(self.equals)), _count(self._n_methods)
        if n == n_all:
            return f"the {n} methods are not distinguishable"
        return f"{n} of {n_all} methods are not distinguishable from the best"

    @property
    def details(self) -> str:
        """The reason of the headline: which methods beat the control, which costs least, which are unclear."""
        if not self.equals:
            return f"no method is shown to beat the {CONTROL} control"
        unclear = [method for method in self.as_good if method not in self.equals]
        if len(self.equals) == 1:
            first = (
                f"it beats the {CONTROL} control{'' if unclear or self._n_methods == 1 else ' and every other method'}"
            )
        elif len(self.equals) == 2:
            first = f"both beat the {CONTROL} control"
        else:
            first = f"no single recommendation: {_listed(self.equals)} beat the {CONTROL} control"
        parts = [first]
        equals = [standing for standing in self.standings if standing.method in self.equals]
        costs = sorted((_cost(standing), standing.method) for standing in equals)
        if len(costs) > 1 and costs[0][0] < costs[1][0]:
            parts.append(f"{costs[0][1]} costs least")
        if unclear:
            parts.append(f"undecided: {_listed(unclear)}, shown to be neither worse than it nor better than {CONTROL}")
        return "; ".join(parts)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return f"{self.headline}; {self.details}."

    @property
    def _n_methods(self) -> int:
        return sum(standing.method != CONTROL for standing in self.standings)

    def __repr__(self) -> str:
        return f"<{self.use}: {self.headline}>"


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them; of many only the first."""
    shown = [*names[:_LISTED], *([f"{len(names) - _LISTED} more"] if len(names) > _LISTED else [])]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _count(n: int) -> str:
    """A number in words, if it is small."""
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return words[n] if n < len(words) else str(n)


def _cost(standing: Standing) -> float:
    return inf if standing.passes is None else standing.passes
