"""What activation patching measures: the restored share of a target at every layer and position."""

from dataclasses import asdict, dataclass, fields
from math import isnan
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.document.note import Note
from heedful.explanations import load_pandas
from heedful.models.language.activations import Part
from heedful.target import Target


@final
@dataclass(frozen=True, eq=False)
class Location:
    """The share of a target's difference between two prompts that one clean activation restores.

        score = (patched − corrupted) / (clean − corrupted)

    `patched` is the target on the corrupted prompt if the activation at (layer, position) is that of the clean prompt:
    0 restores nothing, 1 everything; a negative score makes the difference larger.
    """

    clean: str
    corrupted: str
    target: Target
    part: Part
    tokens: tuple[str, ...]
    """The tokens or words of the clean prompt; the corrupted prompt's are in the same places."""
    corrupted_tokens: tuple[str, ...]
    values: Float[np.ndarray, "layer position"]
    """The target after each patch; NaN where an encoder or decoder has fewer layers than the other."""
    clean_value: float
    corrupted_value: float
    model: str
    n_forwards: int
    """How many prompts were run, many of them in one pass."""
    notes: tuple[Note, ...] = ()

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of the layers, the first of which is 0."""
        return tuple(range(len(self.values)))

    @property
    def scores(self) -> Float[np.ndarray, "layer position"]:
        """The restored share of the difference."""
        return (self.values - self.corrupted_value) / (self.clean_value - self.corrupted_value)

    @property
    def positions(self) -> tuple[str, ...]:
        """The name of every position: its token, or both tokens where the prompts differ."""
        pairs = zip(self.tokens, self.corrupted_tokens, strict=True)
        return tuple(a if a == b else f"{a} / {b}" for a, b in pairs)

    def top(self, n: int = 5) -> list[tuple[int, int, float]]:
        """The n strongest places by absolute score: the number of the layer and of the position, and the score."""
        order = np.argsort(-np.nan_to_num(np.abs(self.scores)), axis=None, kind="stable")[:n]
        places = [divmod(int(index), len(self.tokens)) for index in order]
        return [(layer, position, float(self.scores[layer, position])) for layer, position in places]

    def as_rows(self) -> list[dict[str, str | int | float]]:
        """One dictionary per layer and position, ready for a data frame."""
        scores = self.scores
        return [
            {
                "layer": layer,
                "position": position,
                "token": self.tokens[position],
                "corrupted_token": self.corrupted_tokens[position],
                "score": float(scores[layer, position]),
                "value": float(self.values[layer, position]),
            }
            for layer, position in np.ndindex(*scores.shape)
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per layer and position."""
        return load_pandas().DataFrame(self.as_rows())

    def as_dict(self) -> dict[str, object]:
        """Everything, ready for JSON; None stands for a value that does not exist."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        values, scores = (
            [[None if isnan(value) else value for value in row] for row in rows.tolist()]
            for rows in (self.values, self.scores)
        )
        notes = [note.as_dict() for note in self.notes]
        return plain | {"target": asdict(self.target), "values": values, "scores": scores, "notes": notes}

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .json, .html, .png, .svg or .pdf."""
        # As `_repr_html_`: drawings are on the value.
        from heedful.render import write

        write(self, Path(path))

    def __repr__(self) -> str:
        best = ", ".join(
            f"layer {layer} {self.positions[place][:30]} {score:+.2f}" for layer, place, score in self.top(3)
        )
        ends = f"{self.clean_value:.3g} clean, {self.corrupted_value:.3g} corrupted"
        return f"<{self.part} for {self.target}: {ends}; {best}>"

    def _repr_html_(self) -> str:
        # As on Explanation: the notebook protocol puts the drawing on the value.
        from heedful.render.location import location_page

        return location_page(self, "cell.html")
