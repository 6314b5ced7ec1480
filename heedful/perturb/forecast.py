"""What a sweep will cost, from one probe, and how to stay within what a user allows."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal, NamedTuple, final
from weakref import WeakSet

import numpy as np
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.document import SPECIAL, Absence, Unit
from heedful.errors import BadInput
from heedful.models.budget import as_size
from heedful.models.question import Question

_FIT = 50
"""Bytes that a fit takes for each mask and unit, at most."""


@final
class MaskCount(NamedTuple):
    """A number of masks, and the setting that is equal to it; None if the units alone decide."""

    n: int
    setting: Literal["n_samples", "budget"] | None

    @property
    def at_most(self) -> bool:
        """Whether fewer may be enough."""
        return self.setting == "budget"


@final
@dataclass(frozen=True)
class Forecast:
    """The cost of a run: masks (an upper limit if `at_most`), seconds, bytes beyond the model, masks in a pass."""

    n_masks: int
    at_most: bool
    a_mask: float
    """Seconds for each."""
    memory: int
    at_once: int
    n_probes: int
    """Masks that were evaluated to measure this."""

    @property
    def seconds(self) -> float:
        """For all masks together."""
        return self.n_masks * self.a_mask

    def __str__(self) -> str:
        return (
            f"{'at most ' if self.at_most else ''}{self.n_masks:,} forwards, {self.at_once} at once: about "
            f"{as_time(self.seconds)} and {as_size(self.memory)}"
        )

    def limited(self, seconds: float) -> "Forecast":
        """The same with no more masks than that time buys."""
        return self if self.seconds <= seconds else replace(self, n_masks=self.affordable(seconds))

    def affordable(self, seconds: float) -> int:
        """How many masks that time buys, a tenth left for all the rest."""
        return int(0.9 * seconds / self.a_mask)


def forecast(question: Question, index: int, unit: Unit, absence: Absence, n_masks: int, at_most: bool) -> Forecast:
    """Measures one batch of thinned texts: its time, and the memory of one text more or less.

    A memory budget that one text alone exceeds is refused here, with the numbers.
    """
    model, document, budget = question.model, question.documents[index], question.budget
    target, unit_of = question.targets[index], document.unit_of(unit)
    n_units, rng = document.n_units(unit), np.random.default_rng(0)
    at_once = budget.at_once or model.masks_at_once(document, budget.memory)

    def ask(n: int) -> None:
        keep = rng.random((n, n_units)) < rng.random((n, 1))
        # Decoders keep what a common beginning gave them, which takes memory too.
        keep[:, : n_units // 2] = True
        model.masked(document, target, keep[:, unit_of] | (unit_of == SPECIAL), absence, n)

    four, eight = (_peak(lambda n=n: ask(n)) for n in (4, 8))
    each = max(eight - four, 0) // 4
    base = max(four - 4 * each, 0)
    one = base + each
    kept = _FIT * n_masks * n_units
    if budget.memory is not None:
        if one + kept > budget.memory:
            raise BadInput(
                f"One forward of this text takes about {as_size(one)}, and {n_masks:,} masks of it {as_size(kept)}; "
                f"memory is {as_size(budget.memory)}."
            )
        at_once = max(1, min(at_once, (budget.memory - kept - base) // max(each, 1)))
    n = min(at_once, n_masks)
    start = perf_counter()
    ask(n)
    return Forecast(n_masks, at_most, (perf_counter() - start) / n, base + n * each + kept, at_once, 12 + n)


def planned(question: Question, result: Forecast) -> Question:
    """The question with as many masks in a pass as the forecast found room for."""
    return replace(question, budget=replace(question.budget, at_once=result.at_once))


def as_time(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 120:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _peak(run: Any) -> int:
    with _Meter() as meter:
        run()
    return meter.peak


@final
class _Meter(TorchDispatchMode):
    """The most bytes that were alive at once among the tensors made while it lasts, on whatever device."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._alive: WeakSet[Any] = WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, Tensor):
                self._alive.add(tensor.untyped_storage())
        self.peak = max(self.peak, sum(storage.nbytes() for storage in self._alive))
        return out
