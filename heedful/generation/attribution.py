"""The result of `attribute`: a table of scores, a row for each part of the output, a column for each source."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import index
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.document import Document
from heedful.document.note import Note
from heedful.document.stored import document_as_dict, stored_document
from heedful.errors import BadInput
from heedful.explanation import Explanation, Setting
from heedful.explanations import load_pandas
from heedful.run_folder import unsealed

_FORMAT = "heedful/attribution/1"


@final
@dataclass(frozen=True, eq=False)
class Attribution:
    """What each part of a model's output came from: one explanation for every part.

    `document` is the prompt with the output behind it, in segment 1. `prompt_text` is what the user gave, without a
    chat template. Where a source is written after a part of the output, its score is 0.
    """

    document: Document
    outputs: tuple[str, ...]
    """The parts of the output that are explained: tokens, words, a span, or all."""
    positions: tuple[tuple[int, ...], ...]
    """The tokens of each part, counted from the first of the output."""
    n_written: int
    """The number of tokens of the output, which are the last of the document."""
    explanations: tuple[Explanation, ...]
    facts: Mapping[str, int | float]
    """What the whole table cost: masked copies of the text, and seconds."""
    notes: tuple[Note, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What was asked: `of`, `measure`, `against`, and whether there was a context."""

    @property
    def sources(self) -> tuple[str, ...]:
        """What the output may have come from: units of the prompt, passages, and earlier output if it is a source."""
        return self.explanations[0].units

    @property
    def scores(self) -> Float[np.ndarray, "output source"]:
        """One row for each part of the output."""
        return np.stack([explanation.scores for explanation in self.explanations])

    @property
    def error(self) -> Float[np.ndarray, "output source"] | None:
        """The half-widths of the 95 % intervals; zeros if nothing was sampled, None if no error is known."""
        rows = [explanation.error for explanation in self.explanations]
        return None if any(row is None for row in rows) else np.stack([row for row in rows if row is not None])

    @property
    def values(self) -> Float[np.ndarray, "output"]:
        """The explained quantity of every part, such as its log-probability."""
        return np.array([explanation.output for explanation in self.explanations])

    @property
    def text(self) -> str:
        """The output."""
        return self.document.text[self.document.spans[-self.n_written][0] :]

    @property
    def method(self) -> str:
        """The method that gave the scores."""
        return self.explanations[0].method

    def top(self, output: int | str, n: int = 5) -> list[tuple[str, float]]:
        """The strongest sources of one part of the output, given by its number or, if it occurs once, by its text."""
        return self.explanations[self._number(output)].top(n)

    def _number(self, output: int | str) -> int:
        if isinstance(output, str):
            same = [n for n, name in enumerate(self.outputs) if output in (name, name.strip())]
            if len(same) != 1:
                raise BadInput(f"{output!r} occurs {len(same)} times in the output; give the number of the part.")
            return same[0]
        if not isinstance(output, int | np.integer) or not -len(self.outputs) <= output < len(self.outputs):
            raise BadInput(f"The output has {len(self.outputs)} parts; there is no part {output}.")
        return output

    def as_rows(self) -> list[dict[str, Any]]:
        """One dictionary for every part and source."""
        rows = []
        for place, (name, explanation) in enumerate(zip(self.outputs, self.explanations, strict=True)):
            about = {"output": name, "place": place, "value": explanation.output}
            rows += [
                {**about, "source": row["unit"], "source_place": number, "score": row["score"], "error": row["error"]}
                for number, row in enumerate(explanation.as_rows())
            ]
        return rows

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for every part of the output and every source."""
        return load_pandas().DataFrame(self.as_rows())

    def as_dict(self) -> dict[str, Any]:
        """All fields except the seconds, ready for JSON; the document is written once."""
        rows = [
            {name: value for name, value in explanation.as_dict().items() if name != "document"}
            for explanation in self.explanations
        ]
        return {
            "format": _FORMAT,
            "outputs": list(self.outputs),
            "positions": [list(group) for group in self.positions],
            "n_written": self.n_written,
            "whole": document_as_dict(self.document),
            "document": document_as_dict(self.explanations[0].document),
            "explanations": rows,
            "facts": {name: value for name, value in self.facts.items() if name != "seconds"},
            "notes": [note.as_dict() for note in self.notes],
            "settings": dict(self.settings),
        }

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .json, which `Attribution.load` reads back, .html, .png, .svg or .pdf."""
        # As `Explanation.save`: drawings are on the value.
        from heedful.render import write

        write(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Attribution":
        """Loads a file that `save` wrote; a file that was changed since is refused."""
        try:
            return Attribution.from_dict(unsealed(Path(path).read_text(encoding="utf-8")))
        except _WRONG as error:
            raise BadInput(f"{Path(path).name} is not an attribution that heedful saved ({error}).") from error

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> "Attribution":
        """The attribution from a dictionary of `as_dict`; refused if its parts do not match each other."""
        try:
            if kept["format"] != _FORMAT:
                raise BadInput(f"This file has the format {kept['format']!r}; {_FORMAT!r} is needed.")
            loaded = [Explanation.from_dict({**row, "document": kept["document"]}) for row in kept["explanations"]]
            # One document for all, as before.
            explanations = [replace(explanation, document=loaded[0].document) for explanation in loaded]
            attribution = Attribution(
                document=stored_document(kept["whole"]),
                outputs=tuple(map(str, kept["outputs"])),
                positions=tuple(tuple(map(index, group)) for group in kept["positions"]),
                n_written=index(kept["n_written"]),
                explanations=tuple(explanations),
                facts=dict(kept["facts"]),
                notes=tuple(map(Note.of, kept["notes"])),
                settings=dict(kept["settings"]),
            )
            if wrong := _mismatch(attribution):
                raise BadInput(f"This is not an attribution that heedful wrote: its {wrong} do not match.")
            return attribution
        except _WRONG as error:
            raise BadInput(f"This is not an attribution that heedful wrote ({error}).") from error

    def __repr__(self) -> str:
        shown = ", ".join(repr(name[:20]) for name in self.outputs[:5])
        more = ", …" if len(self.outputs) > 5 else ""
        return f"<{self.method} of {len(self.outputs)} parts ({shown}{more}) from {len(self.sources)} sources>"

    def _repr_html_(self) -> str:
        from heedful.render.attribution_page import attribution_fragment

        return attribution_fragment(self)


_WRONG = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError)
"""What a file that is no attribution can raise."""


def _mismatch(attribution: Attribution) -> str:
    """What does not fit the rest; empty if all does."""
    explanations, written = attribution.explanations, range(attribution.n_written)
    rules = {
        "parts": len(attribution.outputs) == len(attribution.positions) == len(explanations) > 0,
        "positions": all(group and set(group) <= set(written) for group in attribution.positions),
        "tokens": 0 < attribution.n_written < len(attribution.document.ids)
        and all(np.array_equal(row.document.ids, attribution.document.ids) for row in explanations[:1]),
        "sources": len({(row.unit, len(row.scores)) for row in explanations}) == 1,
        "settings": all(isinstance(value, Setting) for value in attribution.settings.values()),
    }
    return next((name for name, holds in rules.items() if not holds), "")
