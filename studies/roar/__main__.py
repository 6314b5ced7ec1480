"""The command: `python -m studies.roar --help`."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import studies.roar as roar
from heedful.datasets import Example, Split
from heedful.datasets.imdb import Imdb
from heedful.errors import HeedfulError
from heedful.models.training import Recipe
from studies.roar.plan import RoarPlan
from studies.roar.report import show
from studies.roar.study import SPLITS, Settings, Study, Voice

QUICK = Settings(RoarPlan(percents=(0, 50, 100)), Recipe(n_epochs=1))
_FEW = 200


def reviews(most: int | None) -> Mapping[Split, Sequence[Example]]:
    """IMDB, or `most` reviews of each split, spread over it."""
    found: dict[Split, Sequence[Example]] = {}
    for split in SPLITS:
        examples = Imdb().examples(split)
        found[split] = examples[:: max(1, len(examples) // (most or len(examples)))][:most]
    return found


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m studies.roar", description=roar.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add: Any = parser.add_argument
    add("--out", type=Path, required=True, help="folder of the results; a stopped run goes on from it")
    add("--rankings", type=Path, help="folder of the rankings, where it is not OUT/rankings")
    add("--model", default="paper", help="the model to explain and train anew")
    add("--methods", nargs="+", help="explainers, as heedful.methods() names them; random is always among them")
    add("--modes", nargs="+", choices=("remove", "keep"))
    add("--percents", nargs="+", type=int, help="shares of replaced words; 0 is always among them")
    add("--imputation", choices=("mean", "unknown"), help="what replaces a word: the words' mean vector, or [unk]")
    add("--seeds", type=int, default=1, help="how many seeds to train from; intervals need at least 2")
    add("--n-epochs", type=int)
    add("--batch-size", type=int)
    add("--learning-rate", type=float)
    add("--device", default="cpu")
    add("--at-once", type=int, default=1, help="models trained side by side: 1 on a CPU, some dozens on a GPU")
    add("--workers", type=int, default=1, help="processes that explain")
    add("--quick", action="store_true", help=f"{_FEW} reviews a split, 50 and 100 %%, 1 epoch, to try the program")
    return parser.parse_args(given)


def settings_of(given: argparse.Namespace) -> Settings:
    base = QUICK if given.quick else Settings()
    shares = {name: getattr(given, name) for name in ("methods", "modes", "percents")}
    plan = replace(
        base.plan,
        n_seeds=given.seeds,
        imputation=given.imputation or base.plan.imputation,
        **{name: tuple(value) for name, value in shares.items() if value},
    )
    how = {name: getattr(given, name) for name in ("n_epochs", "batch_size", "learning_rate")}
    changed = {name: value for name, value in how.items() if value is not None}
    recipe = replace(base.recipe, device=given.device, **changed)
    return Settings(plan, recipe, given.model, given.at_once, given.workers)


@contextmanager
def progress() -> Iterator[Voice]:
    """A bar and sentences on standard error; the bar only where that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %")
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        job = bars.add_task("reading", total=None)

        def bar(name: str, done: int | float, goal: int | float) -> None:
            bars.update(job, description=name, completed=done, total=goal)

        yield Voice(bar, lambda sentence: console.print(sentence, highlight=False, soft_wrap=True))


def main(given: Sequence[str] | None = None) -> None:
    asked = arguments(given)
    try:
        settings = settings_of(asked)
        with progress() as voice:
            found = Study(reviews(_FEW if asked.quick else None), settings, asked.out, asked.rankings, voice).run()
        show(found)
    except HeedfulError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        sys.stderr.write("Stopped; the same command goes on from here.\n")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
