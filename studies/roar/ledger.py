"""The results of an experiment, a line each in a file that any kill leaves usable."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, final

from heedful.errors import BadInput
from heedful.run_folder import write_atomically
from studies.roar.retraining import Accuracies

NOTHING = "nothing"
"""Stands for method and mode where no word is replaced: one model then serves every curve."""


@final
class RoarRun(NamedTuple):
    """One model to train: which words were replaced, and from which seed it starts."""

    method: str
    mode: str
    percent: int
    seed: int


@final
class Ledger:
    """One JSON line for every trained model, each with the hash of the settings it was made under.

    A line that cannot be read, such as the last one after a kill, is reported and left out, so that its model
    is trained again. A line of other settings is refused: numbers that do not belong together are never mixed.
    """

    def __init__(self, path: Path, settings: Callable[[str], str], report: Callable[[str], None]) -> None:
        self.path = path
        self.settings = settings
        """The hash that the lines of a method must bear."""
        self.results: dict[RoarRun, Accuracies] = {}
        if not path.exists():
            return
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                run, accuracies, made_under = _parsed(line)
            except (ValueError, KeyError, TypeError):
                report(f"Line {number} of {path.name} cannot be read; its model is trained again.")
                continue
            if made_under != settings(run.method):
                raise BadInput(f"{path} holds results of other settings or data; name another folder or delete it.")
            self.results[run] = accuracies
        # What could not be read is gone, and the file ends with a whole line, before anything is added to it.
        write_atomically(path, "".join(self._line(*item) for item in self.results.items()))

    def add(self, results: Iterable[tuple[RoarRun, Accuracies]]) -> None:
        """Keeps results, on the disk before this returns."""
        found = dict(results)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(self._line(*item) for item in found.items()))
            file.flush()
            os.fsync(file.fileno())
        self.results |= found

    def _line(self, run: RoarRun, accuracies: Accuracies) -> str:
        settings = self.settings(run.method)
        return json.dumps({**run._asdict(), **accuracies._asdict(), "settings": settings}) + "\n"


def _parsed(line: str) -> tuple[RoarRun, Accuracies, str]:
    row = json.loads(line)
    run = RoarRun(*(kind(row[name]) for name, kind in RoarRun.__annotations__.items()))
    accuracies = Accuracies(*(kind(row[name]) for name, kind in Accuracies.__annotations__.items()))
    if not (
        0 <= accuracies.test_accuracy <= 1 and 0 <= accuracies.validation_accuracy <= 1 and 0 <= run.percent <= 100
    ):
        raise ValueError
    return run, accuracies, str(row["settings"])
