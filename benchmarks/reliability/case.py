"""A case, and what may come of it: success, a refusal in one sentence, or a fault."""

import random
import signal
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal, final

from heedful.errors import HeedfulError

TREE = Path(__file__).parents[2]
Result = Literal["success", "refused"]


class Violation(Exception):
    """A promise that does not hold although nothing was raised."""


class OutOfTime(BaseException):
    """A case that takes longer than its kind allows. No `except Exception` can catch it."""


@final
@dataclass(frozen=True)
class Case:
    """One thing to try: `call` is a line that a person can read, `run` does it."""

    call: str
    run: Callable[[], Result]


@final
@dataclass(frozen=True)
class Fault:
    """A case that was neither a success nor a refusal. `group` is the type of the error and its place."""

    kind: str
    number: int
    group: str
    detail: str
    call: str

    def command(self, seed: int) -> str:
        """The command line that runs this case alone."""
        return f"python -m benchmarks.reliability --only {self.kind} --case {self.number} --seed {seed}"


class Kind(ABC):
    """Cases of one kind. The number of a case and the seed determine it, whatever ran before."""

    name: str
    title: str
    n: int
    """The number of cases of a full run."""
    n_chunk: int
    """The number of cases that a process runs before it reports."""
    seconds: float
    """The time limit of a case."""

    def missing(self) -> str | None:
        """Why the kind cannot run on this machine, in a sentence; None if it can."""
        return None

    @abstractmethod
    def prepare(self) -> None:
        """Loads what all cases share, before the processes are forked."""

    @abstractmethod
    def case(self, rng: random.Random, number: int) -> Case:
        """The case of that number."""


def run_case(kind: Kind, seed: int, number: int) -> Result | Fault:
    """Runs a case within its time limit. The random numbers of a case come from the seed, the kind and the number."""
    case = kind.case(random.Random(f"{seed} {kind.name} {number}"), number)

    def fault(group: str, detail: str) -> Fault:
        return Fault(kind.name, number, group, one_line(detail), one_line(case.call))

    try:
        with time_limit(kind.seconds), warnings.catch_warnings():
            warnings.simplefilter("error")
            return case.run()
    except HeedfulError as error:
        problem = sentence_problem(str(error))
        return "refused" if problem is None else fault(f"refusal: {problem}, from {place_of(error)}", str(error))
    except Violation as error:
        what, _, detail = str(error).partition(": ")
        return fault(f"violation: {what}", detail)
    except OutOfTime as error:
        return fault(f"slow: more than {kind.seconds:g} s in {place_of(error)}", "")
    except (Exception, SystemExit) as error:
        return fault(f"{type(error).__name__} in {place_of(error)}", f"{error} ({line_of(error)})")


def sentence_problem(sentence: str) -> str | None:
    """Why a message is no sentence for people; None if it is one."""
    if "\n" in sentence.strip():
        return "several lines"
    if "Traceback" in sentence or " object at 0x" in sentence:
        return "text of the interpreter"
    if len(sentence) < 8 or sentence.rstrip()[-1] not in ".?)…":
        return "no end of a sentence"
    try:
        sentence.encode()
    except UnicodeEncodeError:
        return "cannot be printed"
    return None


def place_of(error: BaseException) -> str:
    """The innermost function of heedful in the traceback, without the line, which moves with every change."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if str(TREE / "heedful") in frame.filename]
    frames = frames or traceback.extract_tb(error.__traceback__)
    return f"{_short(frames[-1].filename)}, {frames[-1].name}" if frames else "an unknown place"


def line_of(error: BaseException) -> str:
    """The innermost frame of all with its line."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{_short(frames[-1].filename)}:{frames[-1].lineno}" if frames else "no traceback"


def _short(file: str) -> str:
    path = Path(file)
    return path.relative_to(TREE).as_posix() if path.is_relative_to(TREE) else "/".join(path.parts[-3:])


def one_line(text: str) -> str:
    """At most 400 characters, printable in any encoding."""
    line = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    return line if len(line) <= 400 else f"{line[:400]}…"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises OutOfTime in the main thread when the time is over."""

    def stop(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
