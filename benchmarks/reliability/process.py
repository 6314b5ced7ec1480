"""Runs the command line in a forked process: nothing is imported again, and it can be killed like any other."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from time import monotonic, sleep
from typing import final

from benchmarks.reliability.case import TREE, OutOfTime

_WRITES = ("os.rename", "os.remove", "os.mkdir", "os.truncate", "shutil.rmtree")


@final
@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: the signal), and what it printed."""

    code: int
    out: str
    err: str


@final
@dataclass(frozen=True)
class Kill:
    """When a process is killed: after so many seconds, or by itself at the n-th change of a file below its folder."""

    seconds: float | None = None
    n_writes: int | None = None
    signal: int = signal.SIGKILL


COUNT = Kill(n_writes=0)
"""No kill: the last line of standard error is the number of changes of files."""


def run_command(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    limit: float,
    stdin: bytes = b"",
    kill: Kill | None = None,
    file_size: int | None = None,
) -> Ended:
    """Runs `heedful WORDS` in a forked process inside the folder; it reads a file and writes to pipes.

    With `file_size` no file may grow beyond so many bytes, which is what a full disk does.
    """
    (out, to_out), (err, to_err) = os.pipe(), os.pipe()
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        process = os.fork()
        if process == 0:
            code = 70
            try:
                for number, file in enumerate((source.fileno(), to_out, to_err)):
                    os.dup2(file, number)
                _settle(folder, environment)
                counter = _arm(kill, folder, file_size)
                code = run_here(words)
                if kill == COUNT:
                    os.write(2, f"{counter.n}".encode())
            finally:
                os._exit(code)
    os.close(to_out)
    os.close(to_err)
    with open(out, "rb", buffering=0) as out_file, open(err, "rb", buffering=0) as err_file:  # noqa: PTH123
        return _wait(process, limit, kill, (out_file, err_file))


def start_command(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float, stdin: bytes
) -> Ended:
    """Runs `python -m heedful WORDS` as a user does, in a new interpreter."""
    arguments = [sys.executable, "-m", "heedful", *map(os.fsencode, words)]
    variables = {**os.environ, "PYTHONPATH": str(TREE), **environment}
    try:
        ended = subprocess.run(
            arguments, cwd=folder, env=variables, input=stdin, capture_output=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        raise OutOfTime from None
    return Ended(ended.returncode, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace"))


def _settle(folder: Path, environment: Mapping[str, str]) -> None:
    """Gives the child its own group, signals, folder and streams."""
    os.setsid()
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # As in a new interpreter: a warning is no error.
    warnings.simplefilter("default")
    os.chdir(folder)
    os.environ.update(environment)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        for number, mode, errors in ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace"))
    )


def _arm(kill: Kill | None, folder: Path, file_size: int | None) -> "Counter":
    counter = Counter(str(folder.resolve()), kill)
    if file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    if kill is not None and kill.n_writes is not None:
        sys.addaudithook(counter)
    return counter


@final
@dataclass
class Counter:
    """Counts how often this process opens, renames or removes a file to change it, and kills it at the n-th time."""

    folder: str
    kill: Kill | None
    n: int = 0

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        mode = arguments[1] if event == "open" else None
        writing = event in _WRITES or (isinstance(mode, str) and {*mode} & {*"wax+"})
        if writing and self.kill is not None and _inside(arguments[0], self.folder):
            self.n += 1
            if self.n == self.kill.n_writes:
                os.kill(os.getpid(), self.kill.signal)


def _inside(path: object, folder: str) -> bool:
    return isinstance(path, str | bytes | os.PathLike) and os.path.abspath(os.fsdecode(path)).startswith(folder)  # noqa: PTH100


def run_here(words: Sequence[str]) -> int:
    """Runs the command in this process; a traceback is printed, as the interpreter does."""
    from heedful.cli.app import main

    sys.argv = ["heedful", *words]
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 0 if code is None else 1


def _wait(process: int, limit: float, kill: Kill | None, streams: tuple[FileIO, FileIO]) -> Ended:
    """Reads what the process prints until it ends; it gets its signal in time, and is killed if it is slow."""
    start, sent, printed = monotonic(), False, (bytearray(), bytearray())
    for stream in streams:
        os.set_blocking(stream.fileno(), False)
    try:
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            for stream, text in zip(streams, printed, strict=True):
                while part := stream.read(1 << 20):
                    text += part
            if ended:
                out, err = (text.decode("utf-8", "replace") for text in printed)
                return Ended(os.waitstatus_to_exitcode(status), out, err)
            elapsed = monotonic() - start
            if kill is not None and kill.seconds is not None and not sent and elapsed >= kill.seconds:
                os.killpg(process, kill.signal)
                sent = True
            if elapsed > limit:
                raise OutOfTime
            sleep(0.003)
    except BaseException:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
