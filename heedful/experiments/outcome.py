"""The outcome of an experiment: its claims, figures and tables, as stored in its folder."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import join
from typing import Any, final

from heedful.errors import BadInput, in_short
from heedful.experiments.claim import Claim
from heedful.experiments.workspace import OWN_MODEL
from heedful.run_folder import sealed, unsealed, write_atomically


@final
@dataclass(frozen=True)
class Outcome:
    """A finished experiment, or a failed one with the reason."""

    name: str
    part: str
    title: str
    source: str
    about: str
    quick: bool
    device: str
    seconds: float
    claims: tuple[Claim, ...] = ()
    figures: tuple[str, ...] = ()
    tables: dict[str, int] = field(default_factory=dict)
    """The names of the tables and their numbers of rows."""
    failed: str | None = None
    applies: bool = True
    """Whether the experiment can be run on the user's model; if not, `failed` says why."""
    resumed: bool = False
    """Whether the run was stopped and resumed; `seconds` then covers only the time since it was resumed."""
    seed: int = 0
    text: str | None = None
    model: str = OWN_MODEL
    word: str | None = None

    @property
    def command(self) -> str:
        """The command that repeats the experiment."""
        words = ["heedful", "reproduce", self.name, *(["--quick"] if self.quick else [])]
        words += ["--device", "cuda"] if self.device != "cpu" else []
        words += ["--seed", str(self.seed)] if self.seed else []
        words += ["--text", self.text] if self.text is not None else []
        words += ["--model", self.model] if self.model != OWN_MODEL else []
        words += ["--word", self.word] if self.word is not None else []
        return join(words)

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in count_verdicts([self]).items())
        return f"<{self.name}: {in_short(self.failed) if self.failed else counts}>"

    def write(self, folder: Path) -> None:
        """Writes outcome.json into the folder."""
        write_atomically(folder / "outcome.json", sealed(asdict(self)))


def read_outcome(folder: Path) -> Outcome | None:
    """The outcome stored in the folder; None if there is none."""
    path = folder / "outcome.json"
    if not path.exists():
        return None
    try:
        fields: dict[str, Any] = unsealed(path.read_text(encoding="utf-8"))
        claims = tuple(Claim(**claim) for claim in fields.pop("claims"))
        return Outcome(**{**fields, "claims": claims, "figures": tuple(fields["figures"])})
    except (ValueError, TypeError, KeyError):
        raise BadInput(f"{path} is damaged; delete it and run the experiment again.") from None


def count_verdicts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """The number of claims of each verdict."""
    return dict(Counter(claim.verdict for outcome in outcomes for claim in outcome.claims))
