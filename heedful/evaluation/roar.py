"""ROAR, remove and retrain: does a model learn worse without the words that a method names?"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, final

import numpy as np
import torch

from heedful.datasets import Split
from heedful.errors import BadInput
from heedful.evaluation.replaced_words import Ranks, ReplacedTexts, WordTexts, rank_words, read_spans
from heedful.evaluation.retrainers import FunctionRetrainer, Retrainer, Train, retrainer_of
from heedful.evaluation.roar_curves import RoarCurves
from heedful.evaluation.roar_plan import RoarCase, RoarData, RoarPlan, read_data
from heedful.explainers import Explainer
from heedful.explainers import methods as methods_by_name
from heedful.models import Model
from heedful.progress import Progress, progress_of, show_progress
from heedful.run_folder import RunFolder, path_of, sealed, write_atomically

SHARES = tuple(tenth / 10 for tenth in range(11))
"""The shares of the lecture: 0, 10, …, 100 %."""
USUAL_METHODS = ("attention-mean", "gradient-x-input", "lime-exact", "leave-one-out")
"""The default methods: those of them that the explained model allows."""
_PARTS = 1000
"""Progress counts thousandths of a training or ranking."""
_COMPARED = 20
"""The number of texts that show whether a model is the same as before."""


def roar(
    train: Train | Model | Retrainer,
    data: Any,
    methods: Sequence[str] | str | None = None,
    *,
    model: Model | None = None,
    test: Any = None,
    shares: Sequence[int | float] = SHARES,
    mode: Literal["remove", "keep", "both"] = "remove",
    imputation: str | None = None,
    seeds: int = 3,
    n: int | None = None,
    workers: int = 1,
    out: str | Path | None = None,
    progress: Progress | bool | None = show_progress,
    text: str | None = None,
    label: str | bool | Sequence[object] | None = None,
    **settings: object,
) -> RoarCurves:
    """Retrains models on texts without the words that each method names, and tests them: remove and retrain.

    `train(texts, labels, seed)` returns a model, or what `heedful.wrap` makes one of; or `train` is a model of
    `heedful train`, which is explained and trained again. `data` and `test` are as in `trust`, with labels; without
    `test` a fifth is held out; `n` draws from each. `model` is explained, by default one trained on the whole texts.
    `imputation` is "unknown" (the word "[UNK]"), "delete", "replace:WORD", or of the paper's model "mean". With `out`,
    a folder, the same call resumes a stopped run. Every other keyword is a setting of the methods.
    """
    retrainer = retrainer_of(train)
    plan = RoarPlan(methods, shares, mode, retrainer.imputation(imputation), seeds, workers, settings)
    given = retrainer.explained_or(model)
    texts = read_data(data, test, n, text, label, retrainer.validates, () if given is None else given.classes)
    with TemporaryDirectory() as temporary, progress_of(progress, "steps") as watch:
        folder = RunFolder(path_of(temporary if out is None else out))
        folder.check_usable()
        with folder.alone():
            result = _Run(plan, retrainer, given, texts, folder, watch).curves()
            if out is not None:
                write_atomically(folder.path / "results.json", sealed(result.as_dict()))
    return result


@final
@dataclass(frozen=True, eq=False)
class _Run:
    """One call: what is trained on which texts, and the folder that keeps what is finished."""

    plan: RoarPlan
    retrainer: Retrainer
    given: Model | None
    data: RoarData
    folder: RunFolder
    watch: Progress

    def curves(self) -> RoarCurves:
        """Ranks the words, trains the models that are missing, and collects all results."""
        plan, data = self.plan, self.data
        self.folder.claim(self._about())
        names = plan.names(self.folder.step("methods", self._usual) if plan.methods is None else plan.methods)
        seeds = [plan.cases(names, seed) for seed in range(plan.seeds)]
        missing = [case for cases in seeds for case in dict.fromkeys(cases.values()) if not self.folder.has(case.key)]
        notes = self._train(missing, plan.explainers(names))
        results = {case: self.folder.step(case.key, _never) for cases in seeds for case in cases.values()}
        shape = (len(plan.modes), len(names), len(plan.all_shares))
        by_seed = [np.reshape([results[case] for case in cases.values()], shape) for cases in seeds]
        sizes = len(data.texts["train"]), len(data.texts["test"])
        if plan.seeds > 1 and len({tuple(map(results.get, cases.values())) for cases in seeds}) == 1:
            notes += ("All seeds gave the same accuracies, so there is no interval; does the training use its seed?",)
        about = (data.name, self._explained(), plan.imputation, *sizes, plan.modes, names, plan.all_shares)
        return RoarCurves(*about, np.stack(by_seed, axis=-1).astype(np.float64), notes)

    def _about(self) -> dict[str, Any]:
        settings = {name: str(value) for name, value in self.plan.settings.items()}
        about = {"data": self.data.hash, "imputation": self.plan.imputation, "settings": settings}
        return about | {"explained": self._explained()} | self.retrainer.claim()

    def _explained(self) -> str:
        return "a model trained on the whole texts" if self.given is None else self.given.description

    def _usual(self) -> list[str]:
        catalogue = methods_by_name()
        return [name for name in USUAL_METHODS if catalogue[name].needs <= self.model.offers]

    @cached_property
    def model(self) -> Model:
        """The explained model."""
        if self.given is not None:
            return self.given
        assert isinstance(self.retrainer, FunctionRetrainer)
        model = self.retrainer.fitted([*self.data.texts["train"]], self.data.labels["train"].tolist(), 0)
        outputs = model([*self.data.texts["test"][:_COMPARED]])
        # Rankings of one model and those of another must not be mixed in one result.
        if not np.allclose(self.folder.step("explained", outputs.tolist), outputs, rtol=1e-3, atol=1e-4):
            raise BadInput("The function that trains gave another model with the same seed; seed it, or give `model`.")
        return model

    def _train(self, missing: Sequence[RoarCase], explainers: Mapping[str, Explainer]) -> tuple[str, ...]:
        """Trains these models, and gives notes on their rankings."""
        names = [name for name in explainers if any(case.method == name for case in missing)]
        pairs, words, ranks = [*product(names, self.data.texts)], dict[Split, WordTexts](), dict[Any, Ranks]()
        n_steps = len(pairs) + len(missing)
        for split in self.data.texts if missing else ():
            words[split] = self._words(split)
        for step, (name, split) in enumerate(pairs):
            ranks[name, split] = self._ranks(explainers[name], split, self._tell(step, 1, n_steps))
        for start in range(0, len(missing), self.retrainer.at_once):
            group = missing[start : start + self.retrainer.at_once]
            trainings = [(_parts(case, words, ranks), case.seed) for case in group]
            tell = self._tell(len(pairs) + start, len(group), n_steps)
            results = self.retrainer.accuracies(trainings, self.plan.imputation, self.data.classes, tell)
            for case, accuracy in zip(group, results, strict=True):
                self.folder.step(case.key, lambda accuracy=accuracy: accuracy)
        return tuple(self._notes(explainers))

    def _tell(self, done: int, n: int, total: int) -> Callable[[float], None]:
        return lambda share: self.watch(int((done + n * share) * _PARTS), total * _PARTS)

    def _words(self, split: Split) -> WordTexts:
        """The texts of a split with their words; the words are read once and kept."""
        texts = self.data.texts[split]

        def read() -> dict[str, torch.Tensor]:
            spans, lengths = read_spans(self.model, texts)
            return {"spans": torch.from_numpy(spans.astype(np.int32)), "lengths": torch.from_numpy(lengths)}

        kept = self.folder.tensors(_key("words", split), read)
        return WordTexts(texts, self.data.labels[split], kept["spans"].numpy(), kept["lengths"].numpy())

    def _ranks(self, explainer: Explainer, split: Split, tell: Callable[[float], None]) -> Ranks:
        """The ranks of all words of a split; the explained model is made only if they are not in the folder."""

        def rank() -> dict[str, torch.Tensor]:
            texts, n_workers = self.data.texts[split], self.plan.workers
            ranks, n_refused = rank_words(self.model, explainer, texts, n_workers, tell)
            return {"ranks": torch.from_numpy(ranks.astype(np.int32)), "n_refused": torch.tensor([n_refused])}

        return self.folder.tensors(_key(explainer.name, split), rank)["ranks"].numpy()

    def _notes(self, names: Iterable[str]) -> Iterator[str]:
        """How many texts each method could not explain."""
        for name in names:
            keys = [_key(name, split) for split in self.data.texts]
            n = sum(int(self.folder.tensors(key, _never)["n_refused"]) for key in keys if self.folder.has(key))
            if n:
                yield f"{name} could not explain {n:,} texts; their words were ranked at random."


def _key(name: str, split: str) -> str:
    """The name of the file of a ranking, or of the words."""
    return f"words-{split}" if name == "words" else f"ranks-{name}-{split}"


def _parts(
    case: RoarCase, words: Mapping[Split, WordTexts], ranks: Mapping[tuple[str, Split], Ranks]
) -> dict[Split, ReplacedTexts]:
    """The texts of one training."""
    if not case.method:
        return {split: part.all_or_none(case.share == 1) for split, part in words.items()}
    mode = "remove" if case.mode == "remove" else "keep"
    return {split: part.replaced(ranks[case.method, split], mode, case.share) for split, part in words.items()}


def _never(*_: object) -> Any:
    raise AssertionError("this step is finished")
