"""The target on many masked copies of a document."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float

from heedful.document import SPECIAL, Absence, Unit
from heedful.document.draws import draws_of
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported
from heedful.explanation import MaskedCopy
from heedful.models import Model
from heedful.models.layered import LayeredModel
from heedful.models.question import Question
from heedful.perturb.draws import values_at

_N_COPIES = 10
_N_PROBES, _FEWEST_PROBES, _TOLERATED = 32, 8, 0.02


@final
class Interrupted(KeyboardInterrupt):
    """Raised when the user stops a sweep; contains the values so far."""

    def __init__(self, values: Float[np.ndarray, "mask"], evaluated: Bool[np.ndarray, "mask"]) -> None:
        super().__init__("stopped")
        self.values, self.evaluated = values, evaluated


@final
class Sweep:
    """Evaluates the target of one document on any masks; equal masks of a call are evaluated once.

    Masks go to the model a portion at a time: memory does not grow with their number, progress is reported, and a user
    who stops keeps the values so far. `n_masks` counts the distinct masks of each call, those included whose value the
    question had stored: what this sweep would have cost alone.
    """

    def __init__(self, question: Question, index: int, unit: Unit, absence: Absence) -> None:
        self.question, self.index, self.absence = question, index, absence
        self.unit: Unit = unit
        self.document, self.target = question.documents[index], question.targets[index]
        if absence == "blur" and self.document.picture is None:
            raise Unsupported("A word cannot be blurred: absence 'blur' is for images.")
        self.unit_of = self.document.unit_of(unit)
        self.n_units = self.document.n_units(unit)
        self.n_masks = 0
        self._n_probes = 0
        self.expected = 0
        """The total number of masks for the progress display, where it is known beforehand."""
        draws = draws_of(absence)
        self.copies = 1 if draws is None else draws.n
        """Texts that the model reads for each mask."""
        self.notes: tuple[Note, ...] = () if draws is None else (draws.note,)
        self.samples: tuple[MaskedCopy, ...] = ()
        """A few masks of the largest call, with their values."""
        self._n_largest = 0
        may = question.budget.half and isinstance(question.model, LayeredModel)
        self.half: bool | None = (
            False if not may else None if question.mask_values is None else question.mask_values.half
        )
        """Whether masks are evaluated in half precision; None until that has been measured."""

    def __call__(self, keep: Bool[np.ndarray, "mask unit"]) -> Float[np.ndarray, "mask"]:
        masks, place = distinct(keep)
        keys = mask_keys(masks)
        values, evaluated = self._stored(keys)
        model, budget = self.question.model, self.question.budget
        at_once = budget.at_once or model.masks_at_once(self.document, budget.memory)
        # More than one pass holds, so that the model can group masks of similar length.
        portion = max(at_once, min(8 * at_once, 512))
        goal = max(self.expected, self.n_masks + len(masks))
        self.n_masks += int(evaluated.sum())
        new, seconds = np.flatnonzero(~evaluated), 0.0
        try:
            for start in range(0, len(new), portion):
                these = new[start : start + portion]
                # Special tokens belong to no unit and always stay.
                tokens = masks[these][:, self.unit_of] | (self.unit_of == SPECIAL)
                began = perf_counter()
                values[these] = self._evaluate(tokens, at_once)
                seconds += perf_counter() - began
                evaluated[these] = True
                self.n_masks += len(these)
                budget.watch(self.n_masks, goal)
        except KeyboardInterrupt:
            self._check(masks[evaluated], values[evaluated])
            # Only up to the first mask without a value: which later ones have a value depends on the stored masks.
            raise Interrupted(values[place], np.logical_and.accumulate(evaluated[place])) from None
        self._check(masks, values)
        self._store([keys[i] for i in new.tolist()], values[new], seconds)
        if len(keep) > self._n_largest:
            self._n_largest, self.samples = len(keep), spread_copies(keep, values[place])
        return values[place]

    @property
    def n_evaluated(self) -> int:
        """Masked copies that the model evaluated, those included that measured half precision."""
        return self.copies * (self.n_masks + self._n_probes)

    def _stored(self, keys: list[bytes]) -> tuple[Float[np.ndarray, "mask"], Bool[np.ndarray, "mask"]]:
        """The stored values of these masks, and which masks have one."""
        cache = self.question.mask_values
        if cache is None:
            return np.zeros(len(keys)), np.zeros(len(keys), dtype=bool)
        stored = cache.values.setdefault((self.document, self.unit, self.absence, self.target), {})
        # None becomes NaN; no stored value is, for `_check` refuses it.
        values = np.array([stored.get(key) for key in keys], dtype=np.float64)
        cache.n_requested += len(keys)
        evaluated = ~np.isnan(values)
        cache.seconds_saved += int(evaluated.sum()) * cache.seconds / max(1, cache.n_evaluated)
        return np.where(evaluated, values, 0.0), evaluated

    def _store(self, keys: list[bytes], values: Float[np.ndarray, "mask"], seconds: float) -> None:
        cache = self.question.mask_values
        if cache is not None:
            stored = cache.values[self.document, self.unit, self.absence, self.target]
            stored.update(zip(keys, values.tolist(), strict=True))
            cache.n_evaluated += len(keys)
            cache.seconds += seconds

    def _evaluate(self, tokens: Bool[np.ndarray, "mask token"], at_once: int) -> Float[np.ndarray, "mask"]:
        model = self.question.model
        if self.half is None and len(tokens) >= _FEWEST_PROBES:
            self._try_half(tokens[:_N_PROBES], at_once)
        with half_precision(model) if self.half else nullcontext():
            return values_at(self.question, self.index, tokens, self.absence, at_once)

    def _try_half(self, tokens: Bool[np.ndarray, "mask token"], at_once: int) -> None:
        """Uses half precision if it changes the values of a few masks by at most 2 % of their spread."""
        request = self.question, self.index, tokens, self.absence, at_once
        self._n_probes = 2 * len(tokens)
        full = values_at(*request)
        with half_precision(self.question.model):
            error = float(np.abs(values_at(*request) - full).max())
        share = error / max(float(full.std()), 1e-300)
        self.half = share <= _TOLERATED
        if self.question.mask_values is not None:
            self.question.mask_values.half = self.half
        used = f"Half precision was {'used' if self.half else 'not used'}"
        moved = f"it changes values by up to {error:.2g}, {share:.1%} of their spread, on {len(full)} masks."
        self.notes = (*self.notes, Note(f"{used}: {moved}", "half-precision"))

    def _check(self, masks: Bool[np.ndarray, "mask unit"], values: Float[np.ndarray, "mask"]) -> None:
        if not np.isfinite(values).all():
            raise BadInput(
                "The model's output for some masked texts is not finite: nothing is left to attend to. Try "
                "another absence."
            )
        if self.half:
            return
        output = float(self.target.of(self.question.logits[self.index : self.index + 1])[0])
        for again in values[masks.all(axis=1)]:
            differs = abs(again - output) > 1e-3 * max(1.0, abs(output))
            if differs and not any(note.kind == "not-deterministic" for note in self.notes):
                changes = (
                    f"The model returned {output:.4g} and {again:.4g} for the same text: it is not deterministic, "
                    "so explanations differ from run to run."
                )
                self.notes = (*self.notes, Note(changes, "not-deterministic"))


def half_precision(model: Model) -> AbstractContextManager[Any]:
    """A context in which the layers of the model compute in bfloat16."""
    assert isinstance(model, LayeredModel)
    return torch.autocast(next(model.network.parameters()).device.type, torch.bfloat16)


def spread_copies(
    keep: Bool[np.ndarray, "mask unit"],
    values: Float[np.ndarray, "mask"] | Bool[np.ndarray, "mask"],
    held: Sequence[int] = (),
) -> tuple[MaskedCopy, ...]:
    """A few masks at equal distances from the first to the last, with their values; `held` units are kept in all."""
    chosen = np.unique(np.linspace(0, len(keep) - 1, min(_N_COPIES, len(keep)), dtype=np.int64))
    some = keep[chosen]
    some[:, list(held)] = True
    rows = zip(some.tolist(), values[chosen].tolist(), strict=True)
    return tuple(MaskedCopy("".join("01"[stays] for stays in row), float(value)) for row, value in rows)


def distinct(keep: Bool[np.ndarray, "mask unit"]) -> tuple[Bool[np.ndarray, "distinct unit"], np.ndarray]:
    """The distinct masks in order of first appearance, and for every mask the index of its equal among them."""
    number: dict[bytes, int] = {}
    place = np.array([number.setdefault(key, len(number)) for key in mask_keys(keep)], dtype=np.int64)
    if len(number) == len(keep):
        return keep, place
    _, first = np.unique(place, return_index=True)
    return keep[first], place


def mask_keys(keep: Bool[np.ndarray, "mask unit"]) -> list[bytes]:
    """The bits of every mask, as dictionary keys."""
    packed = np.packbits(keep, axis=1)
    bits, width = packed.tobytes(), packed.shape[1]
    return [bits[start : start + width] for start in range(0, len(bits), width)]
