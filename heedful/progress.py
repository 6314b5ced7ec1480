"""Progress of a run: the callback of a user, or a line on standard error where somebody watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

from heedful.errors import BadInput, in_short

_QUIET = ContextVar("quiet", default=False)
Progress = Callable[[int, int], None]
"""Called with (done, total): masks of one text, or texts of a list."""
_SECONDS = 3.0
"""A line is shown once a run takes longer."""


def show_progress(done: int, total: int) -> None:
    """The default of `progress`, which stands for a line that is shown when a run takes more than a few seconds."""


@contextmanager
def without_progress() -> Iterator[None]:
    """Inside this context the default shows nothing, since something else shows how far the run is."""
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


@contextmanager
def progress_of(progress: Progress | bool | None, things: str) -> Iterator[Progress]:
    """What to call with (done, total): a line, the user's own function, or nothing for None and False."""
    if progress is True or (progress is show_progress and not _QUIET.get()):
        with _late_line(things) as watch:
            yield watch
    elif progress is None or progress is False:
        yield lambda *_: None
    elif callable(progress):
        yield progress
    else:
        raise BadInput(f"progress must be a function of (done, total), or False; {in_short(progress)} was given.")


def say(sentence: str) -> None:
    """Writes a sentence to standard error where somebody watches: in a terminal or a notebook."""
    if sentence and not _QUIET.get() and (in_notebook() or sys.stderr.isatty()):
        sys.stderr.write(f"{sentence}\n")


def in_notebook() -> bool:
    """Whether this code runs in a notebook; a program may import ipykernel without being one."""
    ipython = sys.modules.get("IPython")
    return "ipykernel" in sys.modules and ipython is not None and ipython.get_ipython() is not None


@contextmanager
def _late_line(things: str) -> Iterator[Progress]:
    start, watched = perf_counter(), in_notebook() or sys.stderr.isatty()
    begun = last = start
    before = written = 0

    def watch(done: int, total: int) -> None:
        nonlocal begun, last, before, written
        now = perf_counter()
        # The masks of the next method are counted from 0 again.
        begun, before = now if done < before else begun, done
        if watched and now - start > _SECONDS and now - last > 0.2:
            left = f", {(now - begun) / done * (total - done):,.0f} s left" if done else ""
            line = f"{done:,} of {total:,} {things}{left}"
            sys.stderr.write(f"\r{line:<{written}}")
            sys.stderr.flush()
            last, written = now, len(line)

    try:
        yield watch
    finally:
        if written:
            sys.stderr.write(f"\r{'':<{written}}\r")
            sys.stderr.flush()
