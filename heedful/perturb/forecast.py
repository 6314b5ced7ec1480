"""Forecasts the time and memory of a run from one probe, and keeps it within the user's limits."""

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
from heedful.perturb.draws import values_at

_FIT = 50
"""The maximum memory of a fit in bytes, per mask and unit."""


@final
class MaskCount(NamedTuple):
    """A number of masks, and the setting that gives it; None if it follows from the number of units."""

    n: int
    setting: Literal["n_samples", "n_steps", "budget"] | None

    @property
    def at_most(self) -> bool:
        """Whether the number is an upper limit."""
        return self.setting == "budget"


@final
@dataclass(frozen=True)
class Forecast:
    """The cost of a run: masks (an upper limit if `at_most`), seconds, bytes beside the model's, masks in a pass."""

    n_masks: int
    at_most: bool
    a_mask: float
    """Seconds for one mask."""
    memory: int
    at_once: int
    n_probes: int
    """Masks that were evaluated to measure this."""

    @property
    def seconds(self) -> float:
        """Seconds for all masks."""
        return self.n_masks * self.a_mask

    def __str__(self) -> str:
        return (
            f"{'at most ' if self.at_most else ''}{self.n_masks:,} forward passes, {self.at_once} at a time: "
            f"about {as_time(self.seconds)} and {as_size(self.memory)}"
        )

    def limited(self, seconds: float) -> "Forecast":
        """The forecast with no more masks than fit in that time."""
        return self if self.seconds <= seconds else replace(self, n_masks=self.affordable(seconds))

    def affordable(self, seconds: float) -> int:
        """The number of masks that fit in that time; a tenth of it is reserved for everything else."""
        return int(0.9 * seconds / self.a_mask)


def forecast(question: Question, index: int, unit: Unit, absence: Absence, n_masks: int, at_most: bool) -> Forecast:
    """Measures the time of one batch of masked texts, and the memory of each text in a batch.

    A memory limit that one text alone exceeds is refused here, with the numbers.
    """
    model, document, budget = question.model, question.documents[index], question.budget
    unit_of = document.unit_of(unit)
    n_units, rng = document.n_units(unit), np.random.default_rng(0)
    at_once = budget.at_once or model.masks_at_once(document, budget.memory)

    def probe(n: int) -> None:
        keep = rng.random((n, n_units)) < rng.random((n, 1))
        # Decoders cache the common beginning of the texts, which takes memory too.
        keep[:, : n_units // 2] = True
        values_at(question, index, keep[:, unit_of] | (unit_of == SPECIAL), absence, n)

    four, eight = (_peak(lambda n=n: probe(n)) for n in (4, 8))
    each = max(eight - four, 0) // 4
    base = max(four - 4 * each, 0)
    single = base + each
    kept = _FIT * n_masks * n_units
    if budget.memory is not None:
        if single + kept > budget.memory:
            raise BadInput(
                f"A forward pass of this text needs about {as_size(single)}, and {n_masks:,} masks "
                f"{as_size(kept)}; the memory limit is {as_size(budget.memory)}."
            )
        at_once = max(1, min(at_once, (budget.memory - kept - base) // max(each, 1)))
    n = min(at_once, n_masks)
    start = perf_counter()
    probe(n)
    return Forecast(n_masks, at_most, (perf_counter() - start) / n, base + n * each + kept, at_once, 12 + n)


def planned(question: Question, cost: Forecast) -> Question:
    """The question with as many masks in a pass as the forecast allows."""
    return replace(question, budget=replace(question.budget, at_once=cost.at_once))


def as_time(seconds: float) -> str:
    """A number of seconds as text, in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _peak(run: Any) -> int:
    with _Meter() as meter:
        run()
    return meter.peak


@final
class _Meter(TorchDispatchMode):
    """Measures the peak memory of the tensors that are made in its context, on any device."""

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
