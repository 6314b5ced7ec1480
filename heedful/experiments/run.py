"""Runs experiments and keeps what they give: pictures, numbers, claims, and one report of all."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

import torch

import heedful.experiments
from heedful.errors import BadInput, HeedfulError, unknown_name
from heedful.exchange.parquet import write_parquet
from heedful.experiments import Experiment, Part
from heedful.experiments.claim import Cell, Claim, Numbers, known
from heedful.experiments.figure import figure, picture
from heedful.experiments.outcome import Outcome, read_outcome
from heedful.experiments.report import reproduction_page
from heedful.experiments.workspace import Desk, write_whole
from heedful.models.training import check_device

Watch = Callable[[str, int, int], None]


def reproduce(
    names: Sequence[str] | None = None,
    out: Path | str = "runs/reproduce",
    quick: bool = False,
    text: str | None = None,
    device: str = "cpu",
    seed: int = 0,
    progress: Watch = lambda *_: None,
    finished: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Does experiments again, all or those named, and gives what they found; the same folder goes on after a stop.

    `progress` is told the experiment, how many of its parts are done, and of how many; `finished` each outcome. An
    experiment that cannot be done (its data are missing) does not stop the others: its outcome says why.
    """
    catalogue = experiments_in_order()
    for name in names or ():
        if name not in catalogue:
            raise unknown_name("experiment", name, catalogue)
    if seed < 0:
        raise BadInput(f"A seed is a whole number from 0; {seed} was given.")
    check_device(device)
    folder = Path(out)
    chosen = [member for name, member in catalogue.items() if not names or name in names]
    figure()  # Without matplotlib nothing could be drawn; better now than after the measuring.
    desks = [
        Desk(
            folder / member.name,
            quick,
            device,
            seed,
            text,
            lambda done, goal, name=member.name: progress(name, done, goal),
        )
        for member in chosen
    ]
    for desk in desks:
        _check_same(desk)
    found = []
    for member, desk in zip(chosen, desks, strict=True):
        progress(member.name, 0, 1)
        found.append(_done(member(), desk))
        finished(found[-1])
    _write_report(catalogue, folder)
    return found


def experiments_in_order() -> dict[str, type[Experiment]]:
    """The catalogue, the paper first, then part by part; appendices come after figures."""
    parts = get_args(Part)

    def place(item: tuple[str, type[Experiment]]) -> tuple[int, bool, str]:
        name, member = item
        return parts.index(member.part), name.startswith("appendix"), name

    return dict(sorted(heedful.experiments().items(), key=place))  # type: ignore[operator]


def _done(experiment: Experiment, desk: Desk) -> Outcome:
    """The outcome, from the folder's numbers if the experiment was finished there."""
    facts: dict[str, Any] = {"name": experiment.name, "part": experiment.part, "title": experiment.title}
    facts |= {"source": experiment.source, "about": inspect.getdoc(experiment) or ""}
    facts |= {"quick": desk.quick, "seed": desk.seed, "text": desk.text}
    try:
        if not (desk.folder / "settings.json").exists():
            write_whole(desk.folder / "settings.json", json.dumps(_settings(desk)))
        numbers, how = measured(experiment, desk)
        claims, figures = experiment.claims(numbers), experiment.draw(numbers)
        for name, drawn in figures.items():
            write_whole(desk.folder / f"{name}.svg", picture(drawn, "svg"))
            write_whole(desk.folder / f"{name}.png", picture(drawn, "png"))
        for name, rows in numbers.items():
            write_parquet(rows, desk.folder / f"{name}.parquet", _columns(rows))
        outcome = Outcome(
            **facts,
            **how,
            claims=tuple(_withheld(claim) if desk.quick and experiment.stands_in else claim for claim in claims),
            figures=tuple(figures),
            tables={name: len(rows) for name, rows in numbers.items()},
        )
    except HeedfulError as error:
        outcome = Outcome(**facts, device=desk.device, seconds=0.0, failed=str(error))
    except OSError as error:
        raise BadInput(f"{desk.folder} cannot be written: {error.strerror}.") from None
    outcome.write(desk.folder)
    return outcome


def measured(experiment: Experiment, desk: Desk) -> tuple[Numbers, dict[str, Any]]:
    """The numbers, and the device that gave them with its seconds, from the folder if they are there."""
    path, about = desk.folder / "numbers.json", desk.folder / "measured.json"
    if not path.exists():
        start, resumed = perf_counter(), any((desk.folder / "steps").glob("*.*"))
        # JSON has no word for what is not a finite number.
        found = {
            name: [{key: known(cell) for key, cell in row.items()} for row in rows]
            for name, rows in experiment.measure(desk).items()
        }
        seconds = round(perf_counter() - start, 1)
        facts = {"device": _device_name(desk.device), "seconds": seconds, "resumed": resumed}
        write_whole(about, json.dumps(facts))
        write_whole(path, json.dumps(found, ensure_ascii=False, allow_nan=False))
    # What is drawn now must be what would be drawn from the files.
    try:
        return tuple(json.loads(file.read_text(encoding="utf-8")) for file in (path, about))
    except ValueError:
        raise BadInput(
            f"The numbers in {desk.folder} are damaged; delete numbers.json, and they are made again."
        ) from None


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _withheld(claim: Claim) -> Claim:
    """A claim about something published, made by a form that cannot decide it."""
    if not claim.published or claim.verdict in ("new", "not measured"):
        return claim
    why = f"The quick form is of something smaller, where the verdict would be: {claim.verdict}. {claim.why}"
    return replace(claim, verdict="not measured", why=why)


def _check_same(desk: Desk) -> None:
    """A folder belongs to one run; steps of another would be taken for this one's."""
    path, settings = desk.folder / "settings.json", _settings(desk)
    if not path.exists():
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise BadInput(f"{path} is damaged; remove its folder, or name another with --out.") from None
    # What is finished may be drawn again anywhere; what goes on must go on as it began.
    finished = (desk.folder / "numbers.json").exists()
    compared = [name for name in settings if not finished or name not in ("device", "version")]
    different = [name for name in compared if before.get(name) != settings[name]]
    if different:
        raise BadInput(
            f"{desk.folder} holds another run, which differs in {', '.join(different)}; name another folder with --out."
        )


def _settings(desk: Desk) -> dict[str, Any]:
    about = {"quick": desk.quick, "seed": desk.seed, "text": desk.text}
    return {**about, "device": desk.device, "version": heedful.__version__}


def _columns(rows: Sequence[Mapping[str, Cell]]) -> dict[str, type]:
    """The names and types of a table's columns; a whole number among fractions is a fraction."""
    found: dict[str, type] = {}
    for name in rows[0] if rows else ():
        kinds = {type(row[name]) for row in rows} - {type(None)}
        found[name] = float if (kinds <= {int, float} and float in kinds) or not kinds else kinds.pop()
    return found


def _write_report(catalogue: Mapping[str, type[Experiment]], folder: Path) -> None:
    """The page and its claims as JSON, of everything that lies in the folder, also from earlier runs."""
    outcomes = [one for name in catalogue if (one := read_outcome(folder / name)) is not None]
    rows = [
        {"experiment": one.name, "part": one.part, "quick": one.quick, "device": one.device, **vars(claim)}
        for one in outcomes
        for claim in one.claims
    ]
    write_whole(folder / "report.html", reproduction_page(outcomes, folder))
    write_whole(folder / "report.json", json.dumps(rows, indent=1, ensure_ascii=False))
