"""How removed words are drawn: the part of an absence such as "marginal:imdb" that says from where, and how often."""

import re
from typing import Literal, NamedTuple, final

from heedful.document.note import Note
from heedful.errors import BadInput

_WRITTEN = re.compile(r"(marginal|conditional)(?::(\d+))?(?::(\d+))?:(?!\d+(?::|$))(.+)", re.DOTALL)
_USUAL, _MOST = 10, 10_000


@final
class WordDraws(NamedTuple):
    """Words from data ("marginal"), or from a masked language model that reads the rest ("conditional")."""

    kind: Literal["marginal", "conditional"]
    source: str
    """A data set or a file of texts; or a masked language model, by its folder or its name on the hub."""
    n: int = _USUAL
    seed: int = 0

    @property
    def note(self) -> Note:
        """What the values at masks are, for explanations."""
        which = f"words of {self.source}" if self.kind == "marginal" else f"words that {self.source} puts there"
        means = f"Removed words are replaced by {which}: each value is the mean over {self.n} draws"
        return Note(f"{means} (seed {self.seed}); intervals take these draws as given.")


def draws_of(absence: str) -> WordDraws | None:
    """What an absence says: KIND:SOURCE, KIND:NUMBER:SOURCE or KIND:NUMBER:SEED:SOURCE; None if nothing is drawn."""
    if absence.partition(":")[0] not in ("marginal", "conditional"):
        return None
    match = _WRITTEN.fullmatch(absence)
    if match is None:
        raise BadInput(
            f"The absence {absence!r} does not say where words are drawn from; write marginal:DATA or "
            "conditional:MODEL, with the number of draws and a seed between if you like: marginal:20:1:imdb."
        )
    kind, n, seed, source = match.groups()
    if not 1 <= int(n or _USUAL) <= _MOST or int(seed or 0) >= 2**32:
        raise BadInput(f"The absence {absence!r} needs 1 to {_MOST:,} draws and a seed below 2^32.")
    return WordDraws("marginal" if kind == "marginal" else "conditional", source, int(n or _USUAL), int(seed or 0))
