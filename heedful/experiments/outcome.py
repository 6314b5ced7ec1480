"""What an experiment gave: its claims, pictures and tables, as they lie in its folder."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import join
from typing import Any, final

from heedful.errors import BadInput
from heedful.experiments.claim import Claim
from heedful.experiments.workspace import write_whole


@final
@dataclass(frozen=True)
class Outcome:
    """One finished experiment, or one that could not be done, and why."""

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
    """Names and numbers of rows."""
    failed: str | None = None
    resumed: bool = False
    """Whether the seconds are those of the last of several sittings."""
    seed: int = 0
    text: str | None = None

    @property
    def command(self) -> str:
        """What a user types to do it again."""
        words = ["heedful", "reproduce", self.name, *(["--quick"] if self.quick else [])]
        words += ["--device", "cuda"] if self.device != "cpu" else []
        words += ["--seed", str(self.seed)] if self.seed else []
        words += ["--text", self.text] if self.text is not None else []
        return join(words)

    def write(self, folder: Path) -> None:
        write_whole(folder / "outcome.json", json.dumps(asdict(self), indent=1, ensure_ascii=False))


def read_outcome(folder: Path) -> Outcome | None:
    """The outcome that lies in the folder, if one does."""
    path = folder / "outcome.json"
    if not path.exists():
        return None
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        claims = tuple(Claim(**one) for one in found.pop("claims"))
        return Outcome(**{**found, "claims": claims, "figures": tuple(found["figures"])})
    except (ValueError, TypeError, KeyError):
        raise BadInput(f"{path} is damaged; delete it, and it is made again.") from None


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many claims there are of each verdict."""
    found: dict[str, int] = {}
    for outcome in outcomes:
        for claim in outcome.claims:
            found[claim.verdict] = found.get(claim.verdict, 0) + 1
    return found
