"""The whole experiment: every text ranked, every missing model trained, curves and figure written."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import Any, final

import heedful
from heedful.datasets import Example, Split
from heedful.errors import BadInput
from heedful.explainers import configure
from heedful.models.single_layer import SingleLayer
from heedful.models.training import Recipe, recipe_settings
from heedful.run_folder import write_atomically
from studies.roar.ledger import NOTHING, Ledger
from studies.roar.plan import RoarPlan, RoarSetup, carry_out
from studies.roar.rankings import Ranks, keep_ranks, kept_ranks, mapping, rank_texts
from studies.roar.report import Curve, curves, draw
from studies.roar.retraining import Reviews, read_reviews

SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@final
@dataclass(frozen=True)
class Settings:
    """What to train, how and with what: `model` is explained, and its sizes and vocabulary are trained anew."""

    plan: RoarPlan = field(default_factory=RoarPlan)
    recipe: Recipe = field(default_factory=Recipe)
    model: str = "paper"
    at_once: int = 1
    n_workers: int = 1

    def __post_init__(self) -> None:
        if self.at_once < 1 or self.n_workers < 1:
            raise BadInput(f"At least 1 model and 1 worker are needed; {self.at_once} and {self.n_workers} were given.")


@final
@dataclass(frozen=True)
class Voice:
    """Callbacks for progress: `bar` gets what is done, how much of it and the goal; `say` gets a sentence."""

    bar: Callable[[str, int | float, int | float], None] = lambda *_: None
    say: Callable[[str], None] = lambda _: None


@final
@dataclass(frozen=True, eq=False)
class Study:
    """The experiment on some texts; a stopped one goes on from its folder, under the same settings and no others."""

    examples: Mapping[Split, Sequence[Example]]
    settings: Settings
    out: Path
    rankings: Path | None = None
    voice: Voice = field(default_factory=Voice)

    def run(self) -> list[Curve]:
        """Ranks, trains, and writes `roar.json` and the figures."""
        settings, model = self.settings, self.model
        for method in settings.plan.methods:
            configure(method, {})
        ledger = Ledger(self.out / "results.jsonl", self.made_under, self.voice.say)
        methods = {run.method: None for run in settings.plan.runs() if run not in ledger.results}
        ranks = self.ranked([method for method in methods if method != NOTHING])
        T_max = model.network.config.T_max
        reviews: dict[Split, Reviews] = {s: read_reviews(self.examples[s], model.vocabulary, T_max) for s in SPLITS}
        setup = RoarSetup(reviews, model.network.config, len(model.vocabulary), settings.recipe)
        results = carry_out(settings.plan, setup, ranks, ledger, settings.at_once, self._watch())
        found = curves(settings.plan, results)
        written = {
            "settings": {**self.common, **self.how, "n_seeds": settings.plan.n_seeds},
            "n_texts": {split: len(self.examples[split]) for split in SPLITS},
            "curves": [asdict(curve) for curve in found],
            "results": [{**run._asdict(), **accuracies._asdict()} for run, accuracies in results.items()],
        }
        write_atomically(self.out / "roar.json", json.dumps(written, indent=1) + "\n")
        if not draw(found, self.out):
            self.voice.say("No figure was drawn: matplotlib, the extra [plot], is not installed.")
        return found

    def ranked(self, methods: Sequence[str]) -> dict[tuple[str, Split], Ranks]:
        """The words of all texts ranked by these methods, from the folder where they were kept."""
        found: dict[tuple[str, Split], Ranks] = {}
        with mapping(self.settings.n_workers) as over:
            for method in methods:
                for split in SPLITS:
                    path = (self.rankings or self.out / "rankings") / f"{method}-{split}.safetensors"
                    ranks = kept_ranks(path, self.ranked_by(method))
                    if ranks is None:
                        start, name = perf_counter(), f"{method}, ranking the words of the {split} texts"
                        texts = [example.text for example in self.examples[split]]
                        watch = partial(self._told, name, len(texts))
                        ranks = rank_texts(self.settings.model, method, texts, over, watch)
                        keep_ranks(path, ranks, self.ranked_by(method))
                        self.voice.say(f"{name}: {len(texts):,} in {perf_counter() - start:.1f} s")
                    found[method, split] = ranks
        return found

    @cached_property
    def model(self) -> SingleLayer:
        model = heedful.load(self.settings.model)
        if not isinstance(model, SingleLayer) or len(model.classes) != 2:
            raise BadInput(f"Only single-layer models of two classes are retrained; {self.settings.model!r} is none.")
        return model

    @cached_property
    def common(self) -> dict[str, Any]:
        """Which texts, read by which model."""
        rows = [[(example.text, example.label) for example in self.examples[split]] for split in SPLITS]
        data = hashlib.sha256(repr(rows).encode("utf-8", "surrogatepass")).hexdigest()
        return {"data": data, "model": self.model.fingerprint, "config": asdict(self.model.network.config)}

    @cached_property
    def how(self) -> dict[str, Any]:
        """How every model is trained; models side by side may round otherwise than alone."""
        recipe = {n: v for n, v in recipe_settings(self.settings.recipe).items() if n not in ("seed", "min_count")}
        return {**recipe, "at_once": self.settings.at_once, "imputation": self.settings.plan.imputation}

    def ranked_by(self, method: str) -> str:
        """All that a ranking depends on."""
        return json.dumps({**self.common, "method": method, "settings": asdict(configure(method, {}))})

    def made_under(self, method: str) -> str:
        """A hash of all that the results of a method depend on, beside mode, share and seed."""
        ranking = None if method == NOTHING else self.ranked_by(method)
        return hashlib.sha256(json.dumps([self.common, self.how, ranking]).encode()).hexdigest()[:16]

    def _told(self, name: str, goal: int, done: int) -> None:
        self.voice.bar(name, done, goal)

    def _watch(self) -> Callable[[int, int, int, int], None]:
        start, said = perf_counter(), set[int]()

        def watch(n_done: int, n_models: int, step: int, n_steps: int) -> None:
            name = f"{n_done} of {n_models} models trained"
            if n_done not in said:
                said.add(n_done)
                self.voice.say(f"{name}, {perf_counter() - start:.1f} s")
            under_way = min(self.settings.at_once, n_models - n_done)
            self.voice.bar(name, n_done + under_way * step / n_steps, n_models)

        return watch
