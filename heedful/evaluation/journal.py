"""What a long run has measured so far, a line a document; the same run goes on from there."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

from heedful.errors import BadInput


@final
@dataclass(frozen=True)
class Measured:
    """Everything that was measured on one document: by method, and by method and metric."""

    place: int
    text: str
    label: int | None = None
    predicted: str = ""
    skipped: str | None = None
    """Why the document could not be measured at all."""
    units: list[str] = field(default_factory=list)
    scores: dict[str, list[float]] = field(default_factory=dict)
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    """Why a method has no number for a metric; under "" why it has no explanation."""
    passes: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    agreement: dict[str, dict[str, float]] = field(default_factory=dict)
    causes: dict[str, int] = field(default_factory=dict)
    """On how many units each reason to differ was found."""
    tested: dict[str, list[int]] = field(default_factory=dict)
    """Of the units that a reason was found for and that were taken out: how many behaved as it says, and how many."""
    exact: bool = False
    """Whether the reasons are the model's own numbers, or a diagnosis."""
    explaining: int = 0
    """Thinned texts that the model answered for the explanations."""
    wanted: int = 0
    """Those that metrics wanted, each metric of each method for itself."""
    asked: int = 0
    """Those of them that the model had to answer."""
    spent: float = 0.0
    """Seconds for all of it."""


@final
class Journal:
    """A folder with the settings of a run and what it measured; without a folder it is kept in memory alone."""

    def __init__(self, folder: Path | None, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.done: dict[int, Measured] = {}
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._compare(folder / "settings.json", json.loads(json.dumps(settings)))
            self._read(folder / "documents.jsonl")
        except OSError as error:
            raise BadInput(f"{folder} cannot be used for a report: {error.strerror}.") from None

    def add(self, measured: Measured) -> None:
        self.done[measured.place] = measured
        if self.folder is not None:
            with (self.folder / "documents.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(measured)) + "\n")

    def _compare(self, path: Path, settings: dict[str, Any]) -> None:
        if not path.exists():
            whole = path.with_suffix(".new")
            whole.write_text(json.dumps(settings, indent=1), encoding="utf-8")
            whole.replace(path)
            return
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise BadInput(f"{path} is not whole; remove the folder, or name another.") from None
        different = [name for name in {**before, **settings} if before.get(name) != settings.get(name)]
        if different:
            named = ", ".join(sorted(different))
            raise BadInput(f"{path.parent} holds another run, which differs in {named}; name another folder.")

    def _read(self, path: Path) -> None:
        """Every whole line; what a kill left of the last one is cut off, and measured again."""
        if not path.exists():
            return
        lines = path.read_bytes().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            with path.open("r+b") as file:
                file.truncate(sum(len(line) for line in lines[:-1]))
            lines.pop()
        for number, line in enumerate(lines, start=1):
            try:
                measured = Measured(**json.loads(line))
            except (ValueError, TypeError):
                raise BadInput(f"Line {number} of {path} is not a measurement; remove it, or the folder.") from None
            self.done[measured.place] = measured
