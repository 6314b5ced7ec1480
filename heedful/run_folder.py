"""Atomic writes, and folders in which a stopped run resumes."""

import errno
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE
from threading import get_ident
from typing import Any, TypeVar, final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.errors import BadInput, CannotWrite, in_short

try:
    import fcntl
except ImportError:
    # Windows has no fcntl; there a folder is not locked.
    fcntl = None

Result = TypeVar("Result")


def path_of(given: object) -> Path:
    """A path that the user gave, as text or as a Path; anything else is refused."""
    if not isinstance(given, str | os.PathLike):
        raise BadInput(f"A path is text or a Path; {in_short(given)} was given.")
    path = Path(given)
    try:
        path.exists()
    except OSError as error:
        raise BadInput(f"{in_short(str(given))} cannot be a path: {error.strerror}.") from None
    return path


def write_atomically(path: Path, content: str | bytes | Callable[[Path], None]) -> None:
    """Writes a temporary file beside the path, syncs it and renames it, so that a kill leaves the old file or the new.

    `content` is text, bytes, or a function that writes to the path it receives. Missing folders are made. A full disk
    leaves the old file and raises CannotWrite.
    """
    with _in_a_sentence(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path.resolve(), content)


def write_file(path: Path, content: str | bytes | Callable[[Path], None]) -> None:
    """The same for a file that the user named: its folder must exist, and a device or a pipe is written to directly."""
    with _in_a_sentence(path):
        if path.exists() and not path.is_file():
            _fill(path, content)
        else:
            _replace(path.resolve(), content)


def _replace(path: Path, content: str | bytes | Callable[[Path], None]) -> None:
    # Two threads or processes may write the same file; the last one wins.
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.new")
    try:
        temporary.touch()
        mode = S_IMODE((path if path.exists() else temporary).stat().st_mode)
        _fill(temporary, content)
        temporary.chmod(mode)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _fill(path: Path, content: str | bytes | Callable[[Path], None]) -> None:
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def _in_a_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror or error}.") from None
    except SafetensorError as error:
        reason = str(error).rpartition("I/O error: ")[2].partition(" (os error")[0]
        raise CannotWrite(f"{path} cannot be written: {reason}.") from None


def sealed(content: Mapping[str, Any]) -> str:
    """JSON with a checksum of its content, which `unsealed` verifies."""
    # Hashed as it will be read: JSON turns every key into a string.
    plain = json.loads(json.dumps(dict(content)))
    return json.dumps({**plain, "checksum": _hash(plain)})


def unsealed(text: str) -> dict[str, Any]:
    """The content that `sealed` wrote; raises ValueError if it was changed. Older files have no checksum."""
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("it is not a dictionary")
    stated = content.pop("checksum", None)
    if stated is not None and stated != _hash(content):
        raise ValueError("its content was changed after it was written: the checksum does not match")
    return content


def _hash(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Writes a safetensors file whose metadata have a checksum of everything in it."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = {**metadata, "checksum": _hash_tensors(whole, metadata)}

    def write(file: Path) -> None:
        save_file(whole, file, about)
        _sort_metadata(file)

    write_atomically(path, write)


def _sort_metadata(path: Path) -> None:
    """Puts the metadata of a safetensors file in order: safetensors writes them in another order every time."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        content = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        file.seek(8)
        # The tensors begin where they did; a header may end in spaces.
        file.write(content.ljust(length))


def read_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors file; raises ValueError if they do not fit the checksum."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    stated = metadata.pop("checksum", None)
    if stated is not None and stated != _hash_tensors(tensors, metadata):
        raise ValueError("it is damaged: the checksum does not match")
    about = metadata if stated is None else {**metadata, "checksum": stated}
    return {name: tensor.to(device) for name, tensor in tensors.items()}, about


def _hash_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    digest = sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _difference(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """A setting that differs, with what differs in it or, of short values, with both."""
    old, new = before.get(name), now.get(name)
    name = {"explained": "the explained model", "train": "the training"}.get(name, name)
    if isinstance(old, dict) and isinstance(new, dict):
        return f"{name} ({', '.join(own for own in sorted({*old, *new}) if old.get(own) != new.get(own))})"
    both = [in_short(value) for value in (old, new)]
    return f"{name} ({both[0]} there, {both[1]} here)" if max(map(len, both)) <= 30 else name


@final
@dataclass(frozen=True)
class RunFolder:
    """A folder that belongs to one run. The same settings resume it; others are refused, once there is a result."""

    path: Path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside this context no other process or thread runs in the folder: a second one is refused.

        The lock belongs to the open folder, so that of a killed process is gone with it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise CannotWrite(f"{self.path} cannot be used as a folder: {error.strerror}.") from None
        try:
            self._lock(descriptor)
            for left in self.path.rglob("*.new"):
                left.unlink(missing_ok=True)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"Another run works in {self.path}; wait until it ends, or name another folder.") from None
        except OSError:
            # Some network drives have no locks.
            return

    def check_usable(self) -> None:
        """Refuses a folder that cannot be made or written to, before anything is computed for it; makes nothing."""
        nearest = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
            problem = errno.EACCES if nearest.is_dir() else errno.ENOTDIR
            raise CannotWrite(f"{self.path} cannot be used as a folder: {os.strerror(problem)}.")

    def claim(self, settings: Mapping[str, Any], ignored: Collection[str] = ()) -> None:
        """Writes settings.json, or refuses the folder as `check` does."""
        self.check(settings, ignored)
        if self.settings() is None or not self._has_results():
            write_atomically(self.path / "settings.json", sealed(settings))

    def check(self, settings: Mapping[str, Any], ignored: Collection[str] = ()) -> None:
        """Refuses the folder if it contains a run with other settings, except those in `ignored`; writes nothing."""
        before = self.settings()
        if before is None or not self._has_results():
            return
        now = json.loads(json.dumps(dict(settings)))
        names = sorted(({*before} | {*now}) - {*ignored})
        different = [_difference(name, before, now) for name in names if before.get(name) != now.get(name)]
        if different:
            raise BadInput(
                f"{self.path} contains another run, which differs in {', '.join(different)}; choose another folder."
            )

    def _has_results(self) -> bool:
        return any(path.is_file() and path.name != "settings.json" for path in self.path.rglob("*"))

    def settings(self) -> dict[str, Any] | None:
        """The settings of the run that the folder belongs to; None for a new folder."""
        path = self.path / "settings.json"
        return _read_json(path, "remove the folder, or choose another") if path.exists() else None

    def has(self, key: str) -> bool:
        """Whether a step is finished."""
        return any((self.path / "steps" / f"{key}.{kind}").exists() for kind in ("json", "safetensors"))

    def step(self, key: str, work: Callable[[], Result]) -> Result:
        """The result of a step, read from its file if the step is finished. It must be representable in JSON."""
        path = self.path / "steps" / f"{key}.json"
        if not path.exists():
            write_atomically(path, sealed({"result": work()}))
        # A resumed run reads the file, so a first run does too.
        return _read_json(path, "delete it to repeat the step", _step_result)

    def tensors(self, key: str, work: Callable[[], dict[str, Tensor]], device: str = "cpu") -> dict[str, Tensor]:
        """The same for a step whose result is tensors, such as a trained model."""
        path = self.path / "steps" / f"{key}.safetensors"
        if not path.exists():
            write_tensors(path, work(), {})
        try:
            return read_tensors(path, device)[0]
        except (SafetensorError, ValueError):
            raise BadInput(f"{path} is damaged; delete it to repeat the step.") from None

    def append(self, name: str, row: Mapping[str, Any]) -> None:
        """Adds a row to a file of JSON lines."""
        path = self.path / name
        with _in_a_sentence(path), path.open("a", encoding="utf-8") as file:
            file.write(sealed(row) + "\n")

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
                yield unsealed(line.decode("utf-8"))
            except ValueError:
                raise BadInput(f"Line {number} of {path} is damaged; remove it, or the folder.") from None


def _step_result(text: str) -> Any:
    kept = json.loads(text)
    # Older folders keep the bare result.
    return unsealed(text)["result"] if isinstance(kept, dict) and kept.keys() == {"result", "checksum"} else kept


def _read_json(path: Path, remedy: str, read: Callable[[str], Any] = unsealed) -> Any:
    try:
        return read(path.read_text(encoding="utf-8"))
    except ValueError:
        raise BadInput(f"{path} is damaged; {remedy}.") from None
