"""The result of `context`: which tokens of a generated text depend on its context, and on what in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document.note import Note
from heedful.errors import BadInput, MissingPackage, in_short
from heedful.generation.attribution import Attribution
from heedful.run_folder import unsealed

_FORMAT = "heedful/reliance/1"
_COLUMNS = ("kl", "log_p", "log_p_without", "p_value", "output_p_value")


@final
@dataclass(frozen=True, eq=False)
class Reliance:
    """Which tokens of an output depend on its context, and what in the context each of them came from.

    As PECoRe (Sarti et al., 2024, arXiv:2310.01188): first what the context changes at every token of the output, then
    the sources of the contrast between the token and the one that the model prefers without the context.

    Differs from the paper: a token is reliant not if its statistic is one standard deviation above the mean of the
    output, but if its P-CXMI is larger than what null contexts of the same shape cause. If the context was drawn like
    them, and the output given without regard to it, any token is called reliant with probability at most alpha.
    An output that the model wrote with the context was chosen by it, which raises P-CXMI whatever the context says.
    Therefore a null context then counts by the token that it makes most likely itself, if that gains more. This has
    less power, and its error rate is exact at the first token only, as the earlier output is the context's.
    """

    tokens: tuple[str, ...]
    kl: Float[np.ndarray, "token"]
    """KL(p with the context ‖ p without) of the distribution of each token."""
    log_p: Float[np.ndarray, "token"]
    """The log-probability of each token with the context."""
    log_p_without: Float[np.ndarray, "token"]
    """Its log-probability without the context."""
    p_value: Float[np.ndarray, "token"]
    """Of each token by itself: (1 + null contexts with at least its statistic) / (1 + null contexts)."""
    output_p_value: Float[np.ndarray, "token"]
    """The same, corrected for the number of tokens."""
    attribution: Attribution
    """From units of the context: the log-probability of every token, less that of the other token that is most likely
    without the context."""
    settings: Mapping[str, str | int | float]
    """alpha, null, n_null and seed."""
    facts: Mapping[str, int | float]
    notes: tuple[Note, ...] = ()

    @property
    def difference(self) -> Float[np.ndarray, "token"]:
        """The probability with the context less the probability without."""
        return np.exp(self.log_p) - np.exp(self.log_p_without)

    @property
    def p_cxmi(self) -> Float[np.ndarray, "token"]:
        """log p with the context less log p without, in nats (Fernandes et al., 2023, arXiv:2109.07446)."""
        return self.log_p - self.log_p_without

    @property
    def reliant(self) -> Bool[np.ndarray, "token"]:
        """Whether each token depends on the context more than on null contexts, at the error rate alpha."""
        # Shares of counts: 2/40 is 0.05 up to rounding.
        return self.output_p_value <= float(self.settings["alpha"]) + 1e-12

    @cached_property
    def cues(self) -> dict[int, tuple[tuple[str, float, float | None], ...]]:
        """For every reliant token, by its number, the three strongest units of the context, with score and half-width
        of the 95 % interval."""
        strongest = {}
        for place in np.flatnonzero(self.reliant).tolist():
            rows: list[dict[str, Any]] = [*self.attribution.explanations[place].as_rows()]
            rows.sort(key=lambda row: -abs(row["score"]))
            strongest[place] = tuple((row["unit"], row["score"], row["error"]) for row in rows[:3])
        return strongest

    def as_rows(self) -> list[dict[str, Any]]:
        """One dictionary for every token."""
        columns = {name: getattr(self, name).tolist() for name in (*_COLUMNS, "difference", "p_cxmi", "reliant")}
        return [
            {
                "token": token,
                **{name: values[place] for name, values in columns.items()},
                "cues": "; ".join(unit for unit, _, _ in self.cues.get(place, ())),
            }
            for place, token in enumerate(self.tokens)
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for every token."""
        try:
            import pandas
        except ImportError as error:
            raise MissingPackage("to_frame needs pandas: pip install pandas, or use as_rows().") from error
        return pandas.DataFrame(self.as_rows())

    def as_dict(self) -> dict[str, Any]:
        """All fields except the seconds, ready for JSON."""
        return {
            "format": _FORMAT,
            "tokens": list(self.tokens),
            **{name: getattr(self, name).tolist() for name in _COLUMNS},
            "attribution": self.attribution.as_dict(),
            "settings": dict(self.settings),
            "facts": {name: value for name, value in self.facts.items() if name != "seconds"},
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .json, which `Reliance.load` reads back, or .html."""
        # As `Attribution.save`: drawings are on the value.
        from heedful.render import write

        write(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Reliance":
        """Loads a file that `save` wrote; a file that was changed since is refused."""
        try:
            kept = unsealed(Path(path).read_text(encoding="utf-8"))
            if kept["format"] != _FORMAT:
                raise ValueError(f"its format is {in_short(kept['format'])}")
            columns = [np.array(kept[name], dtype=np.float64) for name in _COLUMNS]
            tokens, attribution = tuple(map(str, kept["tokens"])), Attribution.from_dict(kept["attribution"])
            if {len(tokens), len(attribution.outputs)} != {len(column) for column in columns}:
                raise ValueError("its columns are not of one length")
            notes = tuple(map(Note.of, kept["notes"]))
            kl, log_p, without, each, corrected = columns
            return Reliance(
                tokens, kl, log_p, without, each, corrected, attribution, kept["settings"], kept["facts"], notes
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{Path(path).name} is not a reliance that heedful saved ({error}).") from error

    def __repr__(self) -> str:
        shown = ", ".join(repr(self.tokens[place]) for place in list(self.cues)[:5])
        more = ", …" if len(self.cues) > 5 else ""
        return (
            f"<{len(self.cues)} of {len(self.tokens)} tokens rely on the context{f': {shown}{more}' if shown else ''}>"
        )

    def _repr_html_(self) -> str:
        from heedful.render.reliance import reliance_fragment

        return reliance_fragment(self)
