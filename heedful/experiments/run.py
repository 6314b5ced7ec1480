"""Runs experiments and writes their figures, numbers and claims, and one report."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

import torch

import heedful
from heedful.errors import BadInput, CannotWrite, HeedfulError, Unsupported, in_short, unknown_name
from heedful.exchange.parquet import write_parquet
from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, finite_or_none
from heedful.experiments.figure import picture
from heedful.experiments.outcome import Outcome, read_outcome
from heedful.experiments.report import reproduction_page
from heedful.experiments.workspace import OWN_MODEL, Workspace
from heedful.family import check_seed, members
from heedful.models.budget import check_device
from heedful.progress import without_progress
from heedful.run_folder import RunFolder, sealed, unsealed, write_atomically

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
    model: str = OWN_MODEL,
    word: str | None = None,
) -> list[Outcome]:
    """Runs all experiments, or those named, and returns their outcomes; a stopped run resumes in its folder.

    `model` is explained instead of the bundled one, as `load` takes it; without names, by all experiments that explain
    one model. Figure 5 draws the gradient of `word`. `progress` is called with the experiment's name, the number of
    finished parts and of all parts; `finished` with each outcome. One that fails does not stop the others: it says why.
    """
    members = chosen_experiments(names, model)
    check_seed(seed)
    check_device(device)
    if word is not None and word not in (text or ""):
        raise BadInput(f"The word {in_short(word)} is not in the text; give the text, and one of its words.")
    workspaces = {}
    for member in members:
        folder = Path(out) / member.name
        workspace = Workspace(folder, quick, device, seed, text, partial(progress, member.name), model, word)
        RunFolder(folder).check(_settings(workspace), _ignored(workspace))
        workspaces[member] = workspace
    if model != OWN_MODEL:
        # A model that cannot be explained is refused once, before anything is written.
        next(iter(workspaces.values())).model  # noqa: B018
    outcomes = []
    with RunFolder(Path(out)).alone(), without_progress():
        for member, workspace in workspaces.items():
            progress(member.name, 0, 1)
            outcomes.append(_run(member(), workspace))
            finished(outcomes[-1])
        _write_report(experiments_in_order(), Path(out))
    return outcomes


def chosen_experiments(names: Sequence[str] | None, model: str) -> list[type[Experiment]]:
    """The experiments that are named, or all; with a user's model, those that explain one model."""
    catalogue = experiments_in_order()
    names = [names] if isinstance(names, str) else names
    if names is not None and not isinstance(names, Iterable):
        raise BadInput(f"names must be a list of experiments; {in_short(names)} was given.")
    for name in names or ():
        if not isinstance(name, str) or name not in catalogue:
            raise unknown_name("experiment", name, catalogue)
        if model != OWN_MODEL and not catalogue[name].takes_model:
            raise BadInput(f"{name} does not explain one model; leave the model out, or name another experiment.")
    fitting = (name for name, member in catalogue.items() if model == OWN_MODEL or member.takes_model)
    return [catalogue[name] for name in fitting if not names or name in names]


def experiments_in_order() -> dict[str, type[Experiment]]:
    """The catalogue part by part, the paper first; appendices come after figures."""
    parts = get_args(ExperimentPart)

    def place(item: tuple[str, type[Experiment]]) -> tuple[int, bool, str]:
        name, member = item
        return parts.index(member.part), name.startswith("appendix"), name

    return dict(sorted(members("heedful.experiments", Experiment).items(), key=place))


def _settings(workspace: Workspace) -> dict[str, Any]:
    about = {"quick": workspace.quick, "seed": workspace.seed, "text": workspace.text}
    # Folders of earlier versions name no model; they are of the bundled one.
    about |= {"model": workspace.model_name} if workspace.foreign else {}
    about |= {} if workspace.word is None else {"word": workspace.word}
    return {**about, "device": workspace.device, "version": heedful.__version__}


def _ignored(workspace: Workspace) -> tuple[str, ...]:
    """A finished experiment can be redrawn anywhere; an unfinished one must resume with the same settings."""
    return ("device", "version") if (workspace.folder / "numbers.json").exists() else ()


def _run(experiment: Experiment, workspace: Workspace) -> Outcome:
    """The outcome, from the folder's numbers if the experiment was finished there."""
    facts: dict[str, Any] = {"name": experiment.name, "part": experiment.part, "title": experiment.title}
    facts |= {"source": experiment.source, "about": inspect.getdoc(experiment) or ""}
    facts |= {"quick": workspace.quick, "seed": workspace.seed, "text": workspace.text, "model": workspace.model_name}
    facts |= {"word": workspace.word}
    try:
        RunFolder(workspace.folder).claim(_settings(workspace), _ignored(workspace))
        numbers, measured = _measure(experiment, workspace)
        claims, figures = experiment.claims(numbers), experiment.draw(numbers)
        _write_files(
            workspace.folder, numbers, {name: (picture(f, "svg"), picture(f, "png")) for name, f in figures.items()}
        )
        outcome = Outcome(
            **facts,
            **measured,
            claims=tuple(_decidable(claim, experiment, workspace) for claim in claims),
            figures=tuple(figures),
            tables={name: len(rows) for name, rows in numbers.items()},
        )
    except CannotWrite:
        raise
    except HeedfulError as error:
        applies = not (workspace.foreign and isinstance(error, Unsupported))
        outcome = Outcome(**facts, device=workspace.device, seconds=0.0, failed=str(error), applies=applies)
    outcome.write(workspace.folder)
    return outcome


def _measure(experiment: Experiment, workspace: Workspace) -> tuple[Numbers, dict[str, Any]]:
    """The numbers, the device and the seconds, read from the folder if they are stored there."""
    path, about = workspace.folder / "numbers.json", workspace.folder / "measured.json"
    if not path.exists():
        start, resumed = perf_counter(), any((workspace.folder / "steps").glob("*.*"))
        # JSON cannot represent NaN or infinity.
        tables = {
            name: [{key: finite_or_none(cell) for key, cell in row.items()} for row in rows]
            for name, rows in experiment.measure(workspace).items()
        }
        seconds = round(perf_counter() - start, 1)
        facts = {"device": _device_name(workspace.device), "seconds": seconds, "resumed": resumed}
        write_atomically(about, sealed(facts))
        write_atomically(path, sealed(tables))
    # A later run draws from the files, so the first does too.
    try:
        return unsealed(path.read_text(encoding="utf-8")), unsealed(about.read_text(encoding="utf-8"))
    except ValueError:
        raise BadInput(
            f"The numbers in {workspace.folder} are damaged; delete numbers.json and run the experiment again."
        ) from None


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _decidable(claim: Claim, experiment: Experiment, workspace: Workspace) -> Claim:
    """The claim without a verdict that this run cannot give: on another text or model, or in a too small quick form."""
    if not claim.published or claim.verdict in ("new", "not measured"):
        return claim
    others = [experiment.takes_text and workspace.text is not None, experiment.takes_model and workspace.foreign]
    if any(others) and claim.verdict == "differs" and not claim.general:
        named = " and ".join(name for name, other in zip(("text", "model"), others, strict=True) if other)
        return replace(claim, published="", verdict="new", why=f"The source explains another {named}.")
    if not workspace.quick or not experiment.smaller_when_quick:
        return claim
    why = f"The quick form is too small to decide this; its verdict would be: {claim.verdict}. {claim.why}"
    return replace(claim, verdict="not measured", why=why)


def _write_files(folder: Path, numbers: Numbers, pictures: Mapping[str, tuple[bytes, bytes]]) -> None:
    for name, (svg, png) in pictures.items():
        write_atomically(folder / f"{name}.svg", svg)
        write_atomically(folder / f"{name}.png", png)
    for name, rows in numbers.items():
        write_parquet(rows, folder / f"{name}.parquet", _column_types(rows))


def _column_types(rows: Sequence[Mapping[str, Cell]]) -> dict[str, type]:
    """The type of each column of a table; integers among floats become floats."""
    types: dict[str, type] = {}
    for name in rows[0] if rows else ():
        kinds = {type(row[name]) for row in rows} - {type(None)}
        types[name] = float if (kinds <= {int, float} and float in kinds) or not kinds else kinds.pop()
    return types


def _write_report(catalogue: Mapping[str, type[Experiment]], folder: Path) -> None:
    """The page, and its claims as JSON, of all experiments in the folder, those of earlier runs included."""
    stored = [read_outcome(folder / name) for name in catalogue]
    outcomes = [outcome for outcome in stored if outcome is not None]
    rows = [
        {"experiment": o.name, "part": o.part, "quick": o.quick, "device": o.device, **vars(claim)}
        for o in outcomes
        for claim in o.claims
    ]
    write_atomically(folder / "report.html", reproduction_page(outcomes, folder))
    write_atomically(folder / "report.json", json.dumps(rows, indent=1, ensure_ascii=False))
