"""Atomic writes, and folders in which a stopped run resumes."""

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.errors import BadInput

Result = TypeVar("Result")


def write_atomically(path: Path, content: str | bytes | Callable[[Path], None]) -> None:
    """Writes a temporary file beside the path, syncs it and renames it, so that a kill leaves the old file or the new.

    `content` is text, bytes, or a function that writes to the path it receives.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.new")
    try:
        if callable(content):
            content(temporary)
        else:
            temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@final
@dataclass(frozen=True)
class RunFolder:
    """A folder that belongs to one run. The same settings resume the run; other settings are refused."""

    path: Path

    def claim(self, settings: Mapping[str, Any], ignored: Collection[str] = ()) -> None:
        """Writes settings.json, or refuses the folder as `check` does."""
        self.check(settings, ignored)
        if self.settings() is None:
            write_atomically(self.path / "settings.json", json.dumps(dict(settings), indent=1))

    def check(self, settings: Mapping[str, Any], ignored: Collection[str] = ()) -> None:
        """Refuses the folder if it contains a run with other settings, except those in `ignored`; writes nothing."""
        before = self.settings()
        if before is None:
            return
        now = json.loads(json.dumps(dict(settings)))
        names = sorted(({*before} | {*now}) - {*ignored})
        different = [name for name in names if before.get(name) != now.get(name)]
        if different:
            raise BadInput(
                f"{self.path} contains another run, which differs in {', '.join(different)}; choose another folder."
            )

    def settings(self) -> dict[str, Any] | None:
        """The settings of the run that the folder belongs to; None for a new folder."""
        path = self.path / "settings.json"
        return _read_json(path, "remove the folder, or choose another") if path.exists() else None

    def step(self, key: str, work: Callable[[], Result]) -> Result:
        """The result of a step, read from its file if the step is finished. It must be representable in JSON."""
        path = self.path / "steps" / f"{key}.json"
        if not path.exists():
            write_atomically(path, json.dumps(work()))
        # A resumed run reads the file, so a first run does too.
        return _read_json(path, "delete it to repeat the step")

    def tensors(self, key: str, work: Callable[[], dict[str, Tensor]], device: str = "cpu") -> dict[str, Tensor]:
        """The same for a step whose result is tensors, such as a trained model."""
        path = self.path / "steps" / f"{key}.safetensors"
        if not path.exists():
            tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in work().items()}
            write_atomically(path, lambda temporary: save_file(tensors, temporary))
        try:
            return load_file(path, device=device)
        except SafetensorError:
            raise BadInput(f"{path} is damaged; delete it to repeat the step.") from None

    def append(self, name: str, row: Mapping[str, Any]) -> None:
        """Adds a row to a file of JSON lines."""
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(dict(row)) + "\n")

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Every whole row of a file of JSON lines; an incomplete last row is cut off."""
        path = self.path / name
        if not path.exists():
            return
        lines = path.read_bytes().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            with path.open("r+b") as file:
                file.truncate(sum(len(line) for line in lines[:-1]))
            lines.pop()
        for number, line in enumerate(lines, start=1):
            try:
                yield json.loads(line)
            except ValueError:
                raise BadInput(f"Line {number} of {path} is damaged; remove it, or the folder.") from None


def _read_json(path: Path, remedy: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise BadInput(f"{path} is damaged; {remedy}.") from None
