"""Calls in this process: inputs × methods × units × settings on one model."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import numpy as np

import heedful
from benchmarks.reliability import inputs
from benchmarks.reliability.case import Case, Kind, Result
from benchmarks.reliability.checks import as_bytes, check_again, check_explanation, nothing_changes, require
from heedful.explanation import Explanation
from heedful.models import Model

ONE_IN = 12
"""Every so many cases are called a second time, and read back from their dictionary."""
METRICS = ("deletion", "insertion", "sufficiency", "comprehensiveness", "gini", "entropy", "sensitivity", "vsi")


@final
class Calls(Kind):
    """Calls of heedful's functions on one model."""

    def __init__(self, name: str, path: str, n: int, n_long: int, n_chunk: int) -> None:
        self.name, self.n, self.n_chunk, self.n_long = f"calls-{name}", n, n_chunk, n_long
        self.title, self.seconds = f"calls in the process, {name}", 20.0
        self.path = path
        self.model: Any = None

    def missing(self) -> str | None:
        """Models of others lie in the folder that HEEDFUL_MODELS names."""
        if self.path == "paper" or (models_folder() / self.path / "config.json").exists():
            return None
        return f"HEEDFUL_MODELS names no folder with {self.path}/config.json."

    def prepare(self) -> None:
        """Loads the model and imports every method."""
        self.model = heedful.load("paper" if self.path == "paper" else str(models_folder() / self.path))
        self.names = sorted(heedful.methods())
        self.usual = [name for name in self.names if heedful.methods()[name].needs <= self.model.offers]
        self.metrics = [name for name in METRICS if name in heedful.metrics()]

    def case(self, rng: random.Random, number: int) -> Case:
        """Nearly always `explain`; at times another function of the public face."""
        share = rng.random()
        kinds = ((0.90, self._explain), (0.93, self._compare), (0.96, self._read), (0.98, self._predict))
        make = next((make for limit, make in kinds if share < limit), self._trust if share < 0.985 else self._heads)
        text = inputs.draw_text(rng, self.n_long)
        call, function = make(rng, text)
        return Case(call, lambda: self._run(function, number % ONE_IN == 0))

    def _run(self, function: Callable[[], Any], twice: bool) -> Result:
        with nothing_changes(self.model):
            result = function()
        explanations = [one for one in _listed(result) if isinstance(one, Explanation)]
        for explanation in explanations:
            check_explanation(explanation, self.model)
            if twice:
                check_again(explanation, self.model)
        # Under a time limit the number of samples depends on the time; a note of the explanation says so.
        limited = any(note.kind == "limited" for explanation in explanations for note in explanation.notes)
        if twice and explanations and not limited:
            require(as_bytes(function()) == as_bytes(result), "the same bytes again")
        return "success"

    def _explain(self, rng: random.Random, text: Any) -> tuple[str, Callable[[], Any]]:
        method: Any = rng.choice(self.names if rng.random() < 0.02 else self.usual)
        settings = inputs.draw_settings(rng, heedful.methods()[method])
        settings |= inputs.draw_request(rng, _some_classes(self.model))
        if rng.random() < 0.004:
            method = rng.choice(inputs.HOSTILE)
        call = f"heedful.explain(model, {text!r}, {method!r}, **{settings!r})"
        return call, lambda: heedful.explain(self.model, text, method, **settings)

    def _compare(self, rng: random.Random, text: Any) -> tuple[str, Callable[[], Any]]:
        methods: Any = rng.sample(self.usual, rng.randint(0, 3)) + rng.choices(self.names, k=rng.random() < 0.1)
        settings: dict[str, Any] = {"n_samples": rng.choice((60, 100)), "budget": 100, "n_steps": 4}
        fields = {field for name in methods for field in heedful.methods()[name].__dataclass_fields__}
        settings = {name: value for name, value in settings.items() if name in fields}
        settings |= inputs.draw_request(rng, _some_classes(self.model))
        if rng.random() < 0.05:
            methods = rng.choice(inputs.HOSTILE[1:])
        call = f"heedful.compare(model, {text!r}, {methods!r}, **{settings!r})"
        return call, lambda: heedful.compare(self.model, text, methods, **settings)

    def _read(self, rng: random.Random, text: Any) -> tuple[str, Callable[[], Any]]:
        words = text.split() if isinstance(text, str) else ["good"]
        numbers = [
            rng.choice((0.0, 1.0, -0.5, rng.gauss(0, 1))) for _ in range(rng.choice((len(words), rng.randint(0, 9))))
        ]
        scores = rng.choice((numbers, dict(zip(words, numbers, strict=False)), list(zip(words, numbers, strict=False))))
        given: Any = rng.choice((scores, scores, scores, np.array(numbers), rng.choice(inputs.HOSTILE)))
        settings: dict[str, Any] = inputs.draw_request(rng, _some_classes(self.model))
        settings = {name: value for name, value in settings.items() if name in ("target", "against", "scale")}
        settings |= {"unit": rng.choice(("word", "token", "type"))} if rng.random() < 0.3 else {}
        call = f"heedful.read(model, {text!r}, {given!r}, **{settings!r})"
        return call, lambda: heedful.read(self.model, text, given, **settings)

    def _predict(self, rng: random.Random, text: Any) -> tuple[str, Callable[[], Any]]:
        texts = rng.choice(([text], [text, "a good film"], text, []))

        def predict() -> None:
            logits = self.model(texts)
            require(logits.shape == (len(texts), len(self.model.classes)), "one row per text", logits.shape)
            require(bool(np.isfinite(logits).all()), "finite logits")

        return f"model({texts!r})", predict

    def _heads(self, rng: random.Random, text: Any) -> tuple[str, Callable[[], Any]]:
        texts = rng.choice(([text], [text, "a good film"], text))
        return f"heedful.heads(model, {texts!r}).as_dict()", lambda: heedful.heads(self.model, texts).as_dict()

    def _trust(self, rng: random.Random, text: Any) -> tuple[str, Callable[[], Any]]:
        cheap = ("leave-one-out", "attention-mean", "gradient-l2", "occlusion")
        methods = rng.choice((rng.sample(cheap, 2), cheap[0], rng.choice(inputs.HOSTILE[1:])))
        metrics = rng.sample(self.metrics, rng.randint(0, 2)) or None
        texts = [text, *(inputs.draw_text_of(rng, 5) for _ in range(rng.randint(0, 3)))]
        settings = {"n": rng.choice((None, 1, 2, 0, -1, 99)), "seed": rng.choice((0, 1, -1))}
        call = f"heedful.trust(model, {texts!r}, {methods!r}, {metrics!r}, **{settings!r})"
        return call, lambda: heedful.trust(self.model, texts, methods, metrics, **settings)


def models_folder() -> Path:
    """Where models of others lie."""
    return Path(os.environ.get("HEEDFUL_MODELS", "models"))


def _some_classes(model: Model) -> tuple[str, ...]:
    return tuple(model.classes[:2000])


def _listed(result: Any) -> list[Any]:
    if isinstance(result, list):
        return result
    return list(result.explanations) if isinstance(result, heedful.Comparison) else [result]
