"""Progress bars, on standard error."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from heedful.progress import progress_of

_SLOW = 1.0


@contextmanager
def masks_bar() -> Iterator[dict[str, Any]]:
    """The `progress` and `announce` callbacks of `explain`: a line of masks, and the cost of a slow run beforehand."""
    console = Console(stderr=True)

    def announce(cost: Any) -> None:
        if cost.seconds > _SLOW:
            console.print(f"Expected cost: {cost}. Ctrl-C stops early and uses the samples so far.", highlight=False)

    with _counting_line(console, "masks", " before there were enough samples for an explanation") as watch:
        yield {"progress": watch, "announce": announce}


@contextmanager
def texts_bar(too_early: str = " before two texts were measured") -> Iterator[Callable[[int, int], None]]:
    """The `progress` callback of `trust`, and of `explain` for many texts: a line of texts, with the time left."""
    with _counting_line(Console(stderr=True), "texts", too_early) as watch:
        yield watch


@contextmanager
def epochs_bar(n_epochs: int) -> Iterator[tuple[Callable[[int, int, int], None], list[int]]]:
    """The progress callback of `train`, and a list to which it adds the epoch of every batch."""
    started: list[int] = []
    columns, console = _percent_columns(), Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        job = bar.add_task("reading", total=None)

        def watch(epoch: int, batch: int, n_batches: int) -> None:
            started.append(epoch)
            done, total = epoch * n_batches + batch, n_epochs * n_batches
            bar.update(job, description=f"epoch {epoch + 1} of {n_epochs}", completed=done, total=total)

        yield watch, started


@contextmanager
def experiments_bar(n_experiments: int) -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    """The progress callback of `reproduce`, and a function to call with a line about each finished experiment."""
    console = Console(stderr=True)
    n_finished = 0
    with Progress(*_percent_columns(), console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        job = bar.add_task("reading", total=n_experiments)

        def watch(name: str, done: int, goal: int) -> None:
            bar.update(job, description=name, completed=n_finished + done / max(goal, 1))

        def finish(line: str) -> None:
            nonlocal n_finished
            n_finished += 1
            bar.update(job, completed=n_finished)
            console.print(f"{n_finished} of {n_experiments}  {line}", highlight=False, markup=False)

        yield watch, finish


@contextmanager
def rows_bar(part: str) -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """The `progress` and `announce` callbacks of the training on activations: a bar, and sentences above it.

    If the user stops the run, a message says after which part it resumes.
    """
    console = Console(stderr=True)
    with Progress(*_percent_columns(), console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        job = bar.add_task("reading", total=None)

        def watch(done: int, total: int) -> None:
            bar.update(job, description=f"{done:,} of {total:,}", completed=done, total=total)

        try:
            yield watch, lambda sentence: console.print(sentence, highlight=False, markup=False, soft_wrap=True)
        except KeyboardInterrupt:
            console.print(f"heedful: stopped; the same command resumes after the last finished {part}.")
            raise


@contextmanager
def probes_bar(names: Sequence[str], resumes: bool) -> Iterator[Callable[[int, int], None]]:
    """The `progress` callback of `probe`: a bar with the name of the present probe.

    If the user stops the run, a message says whether it resumes.
    """
    console = Console(stderr=True)
    with Progress(*_percent_columns(), console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        job = bar.add_task("reading", total=None)

        def watch(done: int, total: int) -> None:
            name = names[min(done * len(names) // total, len(names) - 1)]
            bar.update(job, description=name, completed=done, total=total)

        try:
            yield watch
        except KeyboardInterrupt:
            how = "the same command resumes it" if resumes else "with --out FOLDER a stopped run can be resumed"
            console.print(f"heedful: stopped; {how}.")
            raise


@contextmanager
def resumable_line(things: str, resumes: bool) -> Iterator[Callable[[int, int], None]]:
    """The `progress` callback of `roar`. If the user stops the run, a message says whether it resumes."""
    how = "the same command resumes it" if resumes else "with --out FOLDER a stopped run can be resumed"
    with _counting_line(Console(stderr=True), things, f"; {how}") as watch:
        yield watch


@contextmanager
def _counting_line(console: Console, things: str, too_early: str) -> Iterator[Callable[[int, int], None]]:
    """The line of `heedful.progress`. If the user stops the run before there is a result, a message says so."""
    try:
        with progress_of(True, things) as watch:
            yield watch
    except KeyboardInterrupt:
        console.print(f"heedful: stopped{too_early}.")
        raise


def _percent_columns() -> tuple[ProgressColumn, ...]:
    return TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn()
