"""Classic models that are trained and probed; on a GPU many side by side, each in a process of its own."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any, final

from heedful.evaluation.probe import probe
from heedful.evaluation.probes import Finding
from heedful.experiments.debate.corpora import CORPORA, QUICK, Corpus
from heedful.experiments.workspace import Workspace
from heedful.models.classic.file import save_classic
from heedful.models.classic.network import ClassicConfig
from heedful.models.classic.training import ClassicRecipe, train_classic
from heedful.models.fitting.fit import accuracy_of
from heedful.models.load import load

_SIDE_BY_SIDE = 14
"""Processes on a GPU, which one small model does not fill; each takes a core."""


@final
@dataclass(frozen=True)
class ClassicModel:
    """A classic model to train on a corpus."""

    corpus: str
    encoder: Any = "bilstm"
    attention: Any = "tanh"
    word_scale: float = 0.1
    seed: int = 0

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"{self.corpus}-{self.encoder}-{self.attention}-{self.word_scale:g}-{self.seed}"


@final
@dataclass(frozen=True)
class ProbeRun:
    """A trained model with the probes to run on it, their settings, and the number of texts."""

    model: ClassicModel
    tests: tuple[str, ...]
    n_texts: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"{self.model.key}-{self.tests[0]}-{len(self.tests)}"


def corpus_of(workspace: Workspace, name: str) -> Corpus:
    """The corpus of that name; in the quick form the synthetic one."""
    return (QUICK if workspace.quick else CORPORA)[name]


def measure_runs(workspace: Workspace, runs: Sequence[ProbeRun]) -> dict[str, list[dict[str, Any]]]:
    """The tables `models` and `findings` of all runs. All models are trained first."""
    models = [*dict.fromkeys(run.model for run in runs)]
    n_parts = len(models) + len(runs)
    accuracies = _each(workspace, partial(_trained, _plain(workspace)), models, (0, n_parts))
    results = _each(workspace, partial(_probed, _plain(workspace)), runs, (len(models), n_parts))
    return {"models": accuracies, "findings": [row for rows in results for row in rows]}


def _each(workspace: Workspace, work: Callable[[Any], Any], items: Sequence[Any], done: tuple[int, int]) -> list[Any]:
    """The result of every item, in order; on a GPU many at a time."""
    results: list[Any] = [None] * len(items)
    if not workspace.device.startswith("cuda"):
        for place, item in enumerate(items):
            results[place] = work(item)
            workspace.progress(done[0] + place + 1, done[1])
        return results
    with ProcessPoolExecutor(_SIDE_BY_SIDE, get_context("spawn")) as pool:
        places = {pool.submit(work, item): place for place, item in enumerate(items)}
        for number, future in enumerate(as_completed(places)):
            results[places[future]] = future.result()
            workspace.progress(done[0] + number + 1, done[1])
    return results


def _plain(workspace: Workspace) -> Workspace:
    """The workspace as another process can have it: progress is counted here."""
    return Workspace(workspace.folder, workspace.quick, workspace.device, workspace.seed, progress=_unseen)


def _unseen(*_: int) -> None:
    """Shows nothing."""


def _trained(workspace: Workspace, wanted: ClassicModel) -> dict[str, Any]:
    """Trains a model and writes its file; the row of the table of models."""
    corpus = corpus_of(workspace, wanted.corpus)

    def work() -> dict[str, Any]:
        sizes = (16, 8) if workspace.quick else (300, 128)
        config = ClassicConfig(
            wanted.encoder, wanted.attention, *sizes, T_max=corpus.T_max, word_scale=wanted.word_scale
        )
        recipe = ClassicRecipe(
            learning_rate=1e-2 if workspace.quick else 1e-3,
            n_epochs=corpus.n_epochs,
            min_count=corpus.min_count,
            seed=workspace.seed + wanted.seed,
            device=workspace.device,
        )
        model, _ = train_classic(corpus.dataset, config, recipe, workspace.folder / "models" / wanted.key)
        save_classic(model, _file(workspace, wanted))
        test = corpus.dataset.examples("test")
        accuracy = accuracy_of(model, [model.encode(row.text) for row in test], [row.label for row in test])
        about = {"n_train": len(corpus.dataset.examples("train")), "n_test": len(test), "accuracy": accuracy}
        return {**vars(wanted), "n_words": len(model.vocabulary), **about}

    return workspace.step(wanted.key, work)


def _probed(workspace: Workspace, run: ProbeRun) -> list[dict[str, Any]]:
    """Runs the probes on a trained model; a row per finding."""
    corpus = corpus_of(workspace, run.model.corpus)

    def work() -> list[dict[str, Any]]:
        model = load(str(_file(workspace, run.model)), workspace.device)
        report = probe(
            model,
            corpus.dataset,
            run.tests,
            run.n_texts,
            n_train=1_000_000,
            seed=workspace.seed,
            out=workspace.folder / "probes" / run.key,
            progress=None,
            **run.settings,
        )
        rows = []
        for outcome in report.outcomes:
            about = {**vars(run.model), "probe": outcome.probe.name, "answer": outcome.answer}
            findings = () if outcome.result is None else outcome.result.findings
            rows += [{**about, **finding_row(finding), "n_texts": report.n_texts} for finding in findings]
        return rows

    return workspace.step(run.key, work)


def finding_row(finding: Finding) -> dict[str, Any]:
    """The cells of a finding."""
    null = None if finding.null is None else finding.null.value
    numbers = dict(zip(("value", "low", "high"), finding.value.plain(), strict=True))
    return {"key": finding.key, "finding": finding.what, **numbers, "null": null}


def _file(workspace: Workspace, wanted: ClassicModel) -> Any:
    return workspace.folder / "models" / wanted.key / "model.safetensors"
