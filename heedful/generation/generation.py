"""The result of decoding: the tokens that a language model wrote, and what else it could have written at every step."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.document import Document
from heedful.document.note import Note
from heedful.document.stored import document_as_dict, stored_document
from heedful.errors import BadInput, in_short
from heedful.explanation import Setting
from heedful.explanations import load_pandas
from heedful.generation.step import Alternative, BeamNode, Ended, Step
from heedful.run_folder import unsealed

_WRONG = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""What a file that is no generation can raise."""


@final
@dataclass(frozen=True, eq=False)
class Generation:
    """The text that a language model wrote after a prompt, token by token; the end token is one of them."""

    document: Document
    """The prompt, as the model read it."""
    text: str
    """What was written, without special tokens."""
    steps: tuple[Step, ...]
    tree: tuple[BeamNode, ...] | None
    """What beam search considered; None for other strategies."""
    ended: Ended
    """Whether the model wrote an end token, or the limit was reached."""
    strategy: str
    settings: Mapping[str, Setting]
    model: str
    """The fingerprint of the model."""
    notes: tuple[Note, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The numbers of the tokens that were written."""
        return tuple(step.id for step in self.steps)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The characters that each token adds to the text."""
        return tuple(step.token for step in self.steps)

    @property
    def log_probabilities(self) -> Float[np.ndarray, "step"]:
        """The log-probability of every token by the model, whatever the strategy."""
        return np.array([step.log_probability for step in self.steps])

    def as_rows(self) -> list[dict[str, str | int | float]]:
        """One dictionary per token, ready for a data frame."""
        return [
            {
                "token": step.token,
                "id": step.id,
                "log_probability": step.log_probability,
                "n_kept": step.n_kept,
                "mass": step.mass,
            }
            for step in self.steps
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for every token."""
        return load_pandas().DataFrame(self.as_rows())

    def as_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return {
            "kind": "generation",
            "document": document_as_dict(self.document),
            "text": self.text,
            "steps": [asdict(step) for step in self.steps],
            "tree": None if self.tree is None else [asdict(node) for node in self.tree],
            "ended": self.ended,
            "strategy": self.strategy,
            "settings": dict(self.settings),
            "model": self.model,
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .json, which `Generation.load` reads back, .html, .png, .svg or .pdf."""
        # As `_repr_html_`: drawings are on the value.
        from heedful.render import write

        write(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Generation":
        """Loads a file that `save` wrote; a file that was changed since is refused."""
        try:
            return _generation(unsealed(Path(path).read_text(encoding="utf-8")))
        except _WRONG as error:
            raise BadInput(f"{Path(path).name} is not a generation that heedful saved ({error}).") from error

    def __repr__(self) -> str:
        return f"<{self.strategy}, {len(self.steps)} tokens, ended by {self.ended}: {self.text[:_SHOWN]!r}>"

    def _repr_html_(self) -> str:
        # The notebook protocol puts the drawing on the value.
        from heedful.render.decoding_page import generation_cell

        return generation_cell(self)


_SHOWN = 80


def _generation(kept: dict[str, Any]) -> Generation:
    steps = [{**step, "alternatives": tuple(Alternative(**a) for a in step["alternatives"])} for step in kept["steps"]]
    generation = Generation(
        document=stored_document(kept["document"]),
        text=kept["text"],
        steps=tuple(Step(**step) for step in steps),
        tree=None if kept["tree"] is None else tuple(BeamNode(**node) for node in kept["tree"]),
        ended=kept["ended"],
        strategy=kept["strategy"],
        settings=kept["settings"],
        model=kept["model"],
        notes=tuple(map(Note.of, kept["notes"])),
    )
    tree = generation.tree or ()
    rules = {
        "text": isinstance(generation.text, str),
        "steps": all(isinstance(step.token, str) and isinstance(step.id, int) for step in generation.steps)
        and bool(np.isfinite(generation.log_probabilities).all()),
        "tree": all(-1 <= node.parent < number for number, node in enumerate(tree)),
        "ended": generation.ended in ("end of text", "length"),
    }
    wrong = [name for name, holds in rules.items() if not holds]
    if wrong:
        raise ValueError(f"its {wrong[0]} is not valid: {in_short(kept[wrong[0]])}")
    return generation
