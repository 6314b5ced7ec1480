"""The central type: one score per unit, for one target, with everything needed to compute it again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.document import Document, Unit, check_unit
from heedful.document.note import Note
from heedful.document.stored import document_as_dict, stored_document
from heedful.document.units import sum_to
from heedful.errors import BadInput
from heedful.run_folder import unsealed
from heedful.target import Target, check_returns, check_scale

Setting = bool | int | float | str | None


@final
@dataclass(frozen=True)
class MaskedCopy:
    """A masked copy of a document and the target's value there; `kept` has a 1 for each unit that stays, else a 0."""

    kept: str
    value: float


@final
@dataclass(frozen=True, eq=False)
class Explanation:
    """One score per unit of a document.

    `error` is the half-width of each 95 % interval: zeros if nothing was sampled or approximated, None if no error is
    known. `signed` says whether scores can be negative. `facts` has further numbers: forward passes, R², the intercept,
    the scores of special tokens and padding, seconds.
    """

    document: Document
    target: Target
    unit: Unit
    scores: Float[np.ndarray, "unit"]
    output: float
    method: str
    signed: bool
    settings: Mapping[str, Setting]
    error: Float[np.ndarray, "unit"] | None
    facts: Mapping[str, int | float]
    model: str
    notes: tuple[Note, ...] = ()
    """Sentences that a reader should not miss, those of the document first; each has a `kind`."""
    samples: tuple[MaskedCopy, ...] = ()
    """Some of the masked copies on which a sampling method evaluated the model; of `anchors` those that its rule is
    about, with the value 1 where the prediction stays and 0 where it changes."""

    refused = False
    """True only for a `Refusal`, the place of a text that could not be explained in a list of explanations."""

    @property
    def units(self) -> tuple[str, ...]:
        """The units as strings, in reading order."""
        return self.document.units(self.unit)

    @property
    def was_stopped(self) -> bool:
        """Whether the user stopped the sampling early."""
        return any(note.kind == "stopped" for note in self.notes)

    def noted(self, notes: tuple[Note, ...], samples: tuple[MaskedCopy, ...] = ()) -> "Explanation":
        """The same explanation with more notes, and with samples."""
        return replace(self, notes=(*self.notes, *notes), samples=(*self.samples, *samples))

    def top(self, n: int = 5) -> list[tuple[str, float]]:
        """The n strongest units by absolute score, with their scores; ties in reading order."""
        order = np.argsort(-np.abs(self.scores), kind="stable")[:n]
        return [(self.units[index], float(self.scores[index])) for index in order]

    def to(self, unit: Unit) -> "Explanation":
        """The same explanation at a coarser unit: scores are summed over the parts.

        Half-widths are summed too, which is an upper bound for any correlation of the parts.
        """
        check_unit(unit)
        holder, n = self.document.coarsening(self.unit, unit), self.document.n_units(unit)
        error = None if self.error is None else sum_to(holder, n, self.error)
        return replace(self, unit=unit, scores=sum_to(holder, n, self.scores), error=error, samples=())

    def as_rows(self) -> list[dict[str, str | float | None]]:
        """One dictionary per unit, ready for a data frame."""
        errors = [None] * len(self.scores) if self.error is None else self.error.tolist()
        return [
            {"unit": unit, "score": score, "error": error}
            for unit, score, error in zip(self.units, self.scores.tolist(), errors, strict=True)
        ]

    def as_list(self) -> list[tuple[str, float]]:
        """Units and scores in the format of lime's `as_list`: the strongest first."""
        return self.top(len(self.scores))

    def to_shap(self) -> Any:
        """The explanation as a `shap.Explanation`, for shap's plots.

        `base_values` is the output minus all scores; for Shapley values that is f(empty). For a linear surrogate it is
        the intercept, so that base and scores sum to the surrogate's prediction, not to the model's output. The scores
        of an image have the shape of its grid of patches, (1, rows, columns, 1, 1), with each patch's mean colour as
        data, for `shap.image_plot`. With NumPy 2, shap up to 0.51 writes colours into its text plot that browsers draw
        black (shap issue 4146): call `shap.plots.text` inside `with numpy.printoptions(legacy="1.25")`.
        """
        from heedful.exchange.to_shap import as_shap, base_value

        return as_shap(self.document, self.unit, self.scores, self.error, base_value(self), str(self.target))

    def as_dict(self) -> dict[str, object]:
        """All fields except the seconds: the same call gives the same dictionary."""
        return {
            "method": self.method,
            "signed": self.signed,
            "settings": dict(self.settings),
            "target": asdict(self.target),
            "output": self.output,
            "unit": self.unit,
            "units": list(self.units),
            "scores": self.scores.tolist(),
            "error": None if self.error is None else self.error.tolist(),
            "facts": {name: value for name, value in self.facts.items() if name != "seconds"},
            "model": self.model,
            "notes": [note.as_dict() for note in self.notes],
            "samples": [asdict(sample) for sample in self.samples],
            "document": document_as_dict(self.document),
        }

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .json, which `Explanation.load` reads back, .html, .png, .svg or .pdf."""
        # As `_repr_html_`: drawings are on the value.
        from heedful.render import write

        write(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Explanation":
        """Loads a file that `save` wrote; a file that was changed since is refused."""
        try:
            return _explanation(unsealed(Path(path).read_text(encoding="utf-8")))
        except _WRONG as error:
            raise BadInput(f"{Path(path).name} is not an explanation that heedful saved ({error}).") from error

    @staticmethod
    def from_dict(kept: dict) -> "Explanation":
        """The explanation from a dictionary of `as_dict`; refused if its parts do not match each other."""
        try:
            return _explanation(kept)
        except _WRONG as error:
            raise BadInput(f"This is not an explanation that heedful wrote ({error}).") from error

    def __repr__(self) -> str:
        short = [(unit if len(unit) <= _SHOWN else f"{unit[:_SHOWN]}…", score) for unit, score in self.top(5)]
        strongest = ", ".join(f"{unit} {score:+.3g}" for unit, score in short)
        return f"<{self.method} of {self.target.name[:_SHOWN]} = {self.output:.3g}: {strongest}>"

    def _repr_html_(self) -> str:
        # The notebook protocol puts the drawing on the value, so this is the one place that looks up to render/.
        from heedful.render.comparison_page import notebook_fragment

        return notebook_fragment([self])


_SHOWN = 30
_WRONG = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What a file that is no explanation can raise."""


def _explanation(kept: dict) -> Explanation:
    parts = kept["document"]
    explanation = Explanation(
        document=stored_document(parts),
        # Files from before targets said what the model returns are of logits.
        target=Target(**{"returns": "logits", **kept["target"]}),
        unit=kept["unit"],
        scores=np.array(kept["scores"], dtype=np.float64),
        output=kept["output"],
        method=kept["method"],
        signed=kept["signed"],
        settings=kept["settings"],
        error=None if kept["error"] is None else np.array(kept["error"], dtype=np.float64),
        facts=kept["facts"],
        model=kept["model"],
        # Files from before notes had a field of their own keep them with the document.
        notes=tuple(map(Note.of, kept.get("notes", parts["notes"]))),
        samples=tuple(MaskedCopy(**sample) for sample in kept.get("samples", ())),
    )
    _check(explanation, kept["units"])
    return explanation


def _check(explanation: Explanation, units: Sequence[str]) -> None:
    """Raises ValueError if a part has the wrong type or does not fit the document."""
    target, scores, error = explanation.target, explanation.scores, explanation.error
    check_scale(target.scale)
    check_returns(target.returns)
    check_unit(explanation.unit)
    numbers = [target.index, *([] if target.against is None else [target.against])]
    facts = explanation.facts
    rules = {
        "target": all(type(number) is int and number >= 0 for number in numbers) and isinstance(target.name, str),
        "output": isinstance(explanation.output, int | float) and isfinite(explanation.output),
        "method": isinstance(explanation.method, str),
        "model": isinstance(explanation.model, str),
        "signed": isinstance(explanation.signed, bool),
        "settings": all(isinstance(value, Setting) for value in explanation.settings.values()),
        "facts": all(isinstance(value, int | float) for value in facts.values()),
        "units": list(units) == list(explanation.units),
        "scores": scores.shape == (len(units),) and bool(np.isfinite(scores).all()),
        "samples": all(
            len(sample.kept) == len(units) and not set(sample.kept) - {"0", "1"} for sample in explanation.samples
        ),
        "error": error is None or (error.shape == scores.shape and bool((error >= 0).all())),
    }
    wrong = [name for name, holds in rules.items() if not holds]
    if wrong:
        raise ValueError(f"its {wrong[0]} is not valid")
