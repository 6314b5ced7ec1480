"""How far a run is, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

_SLOW = 1.0


@contextmanager
def masks_bar() -> Iterator[dict[str, Any]]:
    """A bar of masks while it lasts, and what they will cost said first; a quick run says nothing."""
    console = Console(stderr=True)
    columns = TextColumn("{task.completed:,} of {task.total:,} masks"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        job = bar.add_task("masks", total=None, visible=False)

        def watch(done: int, goal: int) -> None:
            bar.update(job, completed=done, total=goal, visible=True)

        def announce(cost: Any) -> None:
            if cost.seconds > _SLOW:
                console.print(f"This takes {cost}. Ctrl-C gives what is known by then.", highlight=False)

        try:
            yield {"progress": watch, "announce": announce}
        except KeyboardInterrupt:
            console.print("heedful: stopped, before enough was known for an explanation.")
            raise


@contextmanager
def texts_bar() -> Iterator[Callable[[int, int], None]]:
    """A bar of texts while it lasts, with the time left."""
    console = Console(stderr=True)
    columns = TextColumn("{task.completed:,} of {task.total:,} texts"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        job = bar.add_task("texts", total=None, visible=False)

        def watch(done: int, goal: int) -> None:
            bar.update(job, completed=done, total=goal, visible=True)

        try:
            yield watch
        except KeyboardInterrupt:
            console.print("heedful: stopped, before two texts were measured.")
            raise


@contextmanager
def epochs_bar(n_epochs: int) -> Iterator[tuple[Callable[[int, int, int], None], list[int]]]:
    """A bar of training while it lasts; with it a list that fills with the epochs that were worked on."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    started: list[int] = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task("reading", total=None)

        def watch(epoch: int, batch: int, n_batches: int) -> None:
            started.append(epoch)
            done, total = epoch * n_batches + batch, n_epochs * n_batches
            bar.update(job, description=f"epoch {epoch + 1} of {n_epochs}", completed=done, total=total)

        yield watch, started


@contextmanager
def experiments_bar(n_experiments: int) -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    """A bar of experiments while it lasts, with the one under way; and what says that one is finished."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    finished = 0
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        job = bar.add_task("reading", total=n_experiments)

        def watch(name: str, done: int, goal: int) -> None:
            bar.update(job, description=name, completed=finished + done / max(goal, 1))

        def end(line: str) -> None:
            nonlocal finished
            finished += 1
            bar.update(job, completed=finished)
            console.print(f"{finished} of {n_experiments}  {line}", highlight=False, markup=False)

        yield watch, end
