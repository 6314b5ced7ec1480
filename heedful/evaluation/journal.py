"""The measurements of a run so far, one line per document, so that a stopped run can resume."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from traceback import walk_tb
from typing import Any, final

from heedful.errors import BadInput, HeedfulError, brief
from heedful.run_folder import RunFolder


@final
@dataclass(frozen=True)
class SkipReason:
    """Why there is no value: a sentence, the method or metric that it is about, and its kind.

    Reasons of one kind come from the same place in the code and differ only in what they name, such as numbers.
    """

    sentence: str
    subject: str | None = None
    kind: str = ""

    __repr__ = brief

    @staticmethod
    def of(error: HeedfulError) -> "SkipReason":
        """The reason that an error gives; its kind is the function that raised it."""
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        place = [f"{frames[-1].f_globals['__name__']}.{frames[-1].f_code.co_name}"] if frames else []
        return SkipReason(error.sentence, error.subject, " in ".join([type(error).__name__, *place]))


@final
@dataclass(frozen=True)
class DocumentResult:
    """Everything that was measured on one document, by method, or by method and metric."""

    place: int
    text: str
    label: int | None = None
    predicted: str = ""
    """The class that the model predicts, what it writes after the text, or how active a feature is."""
    skipped: SkipReason | None = None
    """Why the document could not be measured at all."""
    units: list[str] = field(default_factory=list)
    scores: dict[str, list[float]] = field(default_factory=dict)
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    ends: dict[str, list[float]] = field(default_factory=dict)
    """The values that score 0 and 1 on this document, for metrics whose size depends on it."""
    level: float = 1.0
    """The size of the output, of which rounding is a share."""
    reasons: dict[str, dict[str, SkipReason]] = field(default_factory=dict)
    """Why a method has no value for a metric; under "" why it has no explanation."""
    passes: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    agreement: dict[str, dict[str, float]] = field(default_factory=dict)
    causes: dict[str, int] = field(default_factory=dict)
    """The number of units for which each cause of disagreement was found."""
    tested: dict[str, list[int]] = field(default_factory=dict)
    """For each cause: how many of the removed units behaved as it predicts, and how many were removed."""
    exact: bool = False
    """Whether the causes are exact, or a diagnosis."""
    masks_explaining: int = 0
    """Masked texts that the model evaluated for the explanations."""
    masks_requested: int = 0
    """Masked texts that metrics requested, counted per metric and method."""
    masks_evaluated: int = 0
    """The requested masked texts that the model had to evaluate."""
    spent: float = 0.0
    """Seconds in total."""

    __repr__ = brief

    @staticmethod
    def of(row: Mapping[str, Any]) -> "DocumentResult":
        """The result as JSON keeps it."""
        skipped = None if row["skipped"] is None else SkipReason(**row["skipped"])
        reasons = {
            method: {metric: SkipReason(**reason) for metric, reason in by_metric.items()}
            for method, by_metric in row["reasons"].items()
        }
        return DocumentResult(**{**row, "skipped": skipped, "reasons": reasons})


@final
class Journal:
    """The results of a run, kept in a folder with the settings of the run; without a folder in memory only."""

    def __init__(self, folder: Path | None, settings: dict[str, Any]) -> None:
        self.folder = None if folder is None else RunFolder(folder)
        self.done: dict[int, DocumentResult] = {}
        if self.folder is None:
            return
        self.folder.claim(settings)
        self.done = {result.place: result for result in self._read(self.folder)}

    def add(self, result: DocumentResult) -> None:
        """Keeps the result of one document."""
        self.done[result.place] = result
        if self.folder is not None:
            self.folder.append(_FILE, asdict(result))

    def _read(self, folder: RunFolder) -> Iterator[DocumentResult]:
        places: set[int] = set()
        for number, row in enumerate(folder.rows(_FILE), start=1):
            line = f"Line {number} of {folder.path / _FILE}"
            try:
                result = DocumentResult.of(row)
            except (TypeError, KeyError, AttributeError):
                raise BadInput(f"{line} is damaged; remove it, or the folder.") from None
            if result.place in places:
                raise BadInput(f"{line} repeats a text; remove it, or the folder.")
            places.add(result.place)
            yield result


_FILE = "documents.jsonl"
