"""The central type: one signed number per unit, for one scalar, with everything needed to compute it again."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.document import Document, Picture, Unit, check_unit
from heedful.document.note import Note
from heedful.document.units import sum_to
from heedful.errors import BadInput
from heedful.target import Target

Setting = bool | int | float | str | None


@final
@dataclass(frozen=True, eq=False)
class Explanation:
    """One number per unit of a document.

    `error` is the half-width of each 95 % interval: zeros when nothing was sampled or approximated, None when the
    method has none to give. `signed` says whether a negative number can occur. `facts` hold what else was learnt:
    forwards spent, R², the intercept, what special tokens and padding received, seconds.
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
    """Sentences a reader must not miss, those of the document first; each has a `kind`."""

    @property
    def units(self) -> tuple[str, ...]:
        """The units as strings, in reading order."""
        return self.document.units(self.unit)

    @property
    def was_stopped(self) -> bool:
        """Whether the user stopped its sampling before the end."""
        return any(note.kind == "stopped" for note in self.notes)

    def noted(self, notes: tuple[Note, ...]) -> "Explanation":
        """The same explanation with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def top(self, n: int = 5) -> list[tuple[str, float]]:
        """The n strongest units by absolute score, with their scores; equals in reading order."""
        order = np.argsort(-np.abs(self.scores), kind="stable")[:n]
        return [(self.units[index], float(self.scores[index])) for index in order]

    def to(self, unit: Unit) -> "Explanation":
        """The same explanation at a coarser unit: scores are summed over the parts.

        Half-widths are summed too: an interval for a sum is never wider than that, whatever the parts' correlation.
        """
        check_unit(unit)
        holder, n = self.document.coarsening(self.unit, unit), self.document.n_units(unit)
        error = None if self.error is None else sum_to(holder, n, self.error)
        return replace(self, unit=unit, scores=sum_to(holder, n, self.scores), error=error)

    def as_rows(self) -> list[dict[str, str | float | None]]:
        """One dictionary a unit, ready for a data frame."""
        errors = [None] * len(self.scores) if self.error is None else self.error.tolist()
        return [
            {"unit": unit, "score": score, "error": error}
            for unit, score, error in zip(self.units, self.scores.tolist(), errors, strict=True)
        ]

    def as_list(self) -> list[tuple[str, float]]:
        """Units and scores as lime's own explanations list them: the strongest first."""
        return self.top(len(self.scores))

    def to_shap(self) -> Any:
        """The explanation as a `shap.Explanation`, for shap's plots.

        `base_values` is what is left of the output when all scores are taken from it, for Shapley values f(empty); of a
        fitted line it is the intercept, so that base and scores sum to what the line says, not the model. A picture's
        scores lie on its grid of patches, (1, rows, columns, 1, 1), beside each patch's mean colour: `shap.image_plot`.
        """
        from heedful.exchange.to_shap import as_shap

        base = float(self.facts.get("intercept", self.output - self.scores.sum()))
        return as_shap(self.document, self.unit, self.scores, self.error, base, str(self.target))

    def as_dict(self) -> dict[str, object]:
        """Everything but the time it took: the same call gives the same dictionary."""
        document = {
            "text": self.document.text,
            "ids": self.document.ids.tolist(),
            "pieces": list(self.document.pieces),
            "spans": [list(span) for span in self.document.spans],
            "words": self.document.words.tolist(),
            "known": self.document.known.tolist(),
            "notes": [note.as_dict() for note in self.document.notes],
        }
        if self.document.segments is not None:
            document["segments"] = self.document.segments.tolist()
        if self.document.picture is not None:
            # Enough to draw it again; the numbers the model read are the processor's to make.
            document["picture"] = {"rgb": self.document.picture.rgb.tolist(), "grid": list(self.document.picture.grid)}
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
            "document": document,
        }

    def save(self, path: str | Path) -> None:
        """Writes JSON that `Explanation.load` reads back."""
        Path(path).write_text(json.dumps(self.as_dict()), encoding="utf-8")

    @staticmethod
    def load(path: str | Path) -> "Explanation":
        """Reads what `save` wrote."""
        try:
            return Explanation.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{Path(path).name} is not an explanation that heedful saved ({error}).") from error

    @staticmethod
    def from_dict(kept: dict) -> "Explanation":
        """The explanation that `as_dict` wrote."""
        parts = kept["document"]
        document = Document(
            text=parts["text"],
            ids=np.array(parts["ids"], dtype=np.int64),
            pieces=tuple(parts["pieces"]),
            spans=tuple((start, end) for start, end in parts["spans"]),
            words=np.array(parts["words"], dtype=np.int64),
            known=np.array(parts["known"], dtype=bool),
            notes=tuple(map(Note.of, parts["notes"])),
            segments=np.array(parts["segments"], dtype=np.int64) if "segments" in parts else None,
            picture=_picture(parts["picture"]) if "picture" in parts else None,
        )
        return Explanation(
            document=document,
            target=Target(**kept["target"]),
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
        )

    def __repr__(self) -> str:
        strongest = ", ".join(f"{unit} {score:+.3g}" for unit, score in self.top(5))
        return f"<{self.method} of {self.target.name} = {self.output:.3g}: {strongest}>"

    def _repr_html_(self) -> str:
        # The notebook protocol puts the drawing on the value, so this is the one place that looks up to render/.
        from heedful.render.comparison_page import notebook_fragment

        return notebook_fragment([self])


def _picture(kept: dict) -> Picture:
    rgb = np.array(kept["rgb"], dtype=np.uint8)
    rows, columns = kept["grid"]
    return Picture(rgb, np.zeros((0, 0, 0), dtype=np.float32), (rows, columns))
