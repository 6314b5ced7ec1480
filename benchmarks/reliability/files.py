"""Damaged files: each is refused in one sentence, or read as it was before the damage."""

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import final

import numpy as np

import heedful
from benchmarks.reliability.case import Case, Kind, Result, Violation
from benchmarks.reliability.checks import require
from benchmarks.reliability.commands import check_end, data_of
from benchmarks.reliability.damage import damage_bytes, damage_header, damage_json, damage_tensors
from benchmarks.reliability.kills import RUNS, compare_trees, read_tree, whole_runs, words_of
from benchmarks.reliability.process import run_command
from benchmarks.reliability.workshop import TEXT, TEXTS, workshop
from heedful.explanation import Explanation
from heedful.models import Model

CODE = "import pathlib\npathlib.Path({marker!r}).write_text('ran')\nclass C:\n    pass\n"
Damaged = tuple[str, Callable[[Path], Result | None]]
"""What was damaged, and the check of it in a folder of its own."""


@final
class Files(Kind):
    """Damaged checkpoints, explanations, Hugging Face folders and run folders."""

    name, title, n, n_chunk, seconds = "files", "damaged files", 1_000, 10, 90.0

    def prepare(self) -> None:
        """Makes whole files, and remembers what they hold."""
        self.folder = workshop()
        self.models = {name: _content(heedful.load(str(self.folder / name))) for name in ("tiny", "layers.safetensors")}
        self.explanation = Explanation.load(self.folder / "explanation.json").as_dict()
        self.runs = whole_runs()

    def case(self, rng: random.Random, number: int) -> Case:
        """Checkpoints, explanations and Hugging Face folders more often than the slower run folders."""
        fast = (self._checkpoint, self._explanation, self._hugging_face) * 5
        makers = (*fast, self._checkpoint, self._code, *(partial(self._run_folder, name=name) for name in RUNS))
        call, check = makers[number % len(makers)](rng)

        def run() -> Result:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="file-") as own:
                return check(Path(own)) or "success"

        return Case(call, run)

    def _checkpoint(self, rng: random.Random) -> Damaged:
        name = rng.choice(("tiny", "tiny", "layers.safetensors"))
        file = self.folder / ("tiny/model.safetensors" if name == "tiny" else name)
        damaged, what = rng.choice((damage_bytes, damage_bytes, damage_header))(rng, file.read_bytes())

        def check(own: Path) -> None:
            (own / "model.safetensors").write_bytes(damaged)
            same = _content(heedful.load(str(own))) == self.models[name]
            require(same, "a damaged checkpoint is refused or read as it was", what)

        return f"{name}: {what}", check

    def _explanation(self, rng: random.Random) -> Damaged:
        content = (self.folder / "explanation.json").read_bytes()
        damaged, what = rng.choice((damage_bytes, damage_json, damage_json))(rng, content)

        def check(own: Path) -> None:
            (own / "e.json").write_bytes(damaged)
            same = Explanation.load(own / "e.json").as_dict() == self.explanation
            require(same, "a damaged explanation is refused or read as it was", what)

        return f"explanation.json: {what}", check

    def _hugging_face(self, rng: random.Random) -> Damaged:
        """A file of the folder is damaged or removed, or a weight is missing or unknown, which must be seen."""
        name = rng.choice(("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"))
        other = damage_tensors if name == "model.safetensors" else damage_json
        damage, gone = rng.choice((damage_bytes, other, other)), rng.random() < 0.1
        damaged, what = damage(rng, (self.folder / "bert" / name).read_bytes())

        def check(own: Path) -> None:
            folder = own / "bert"
            shutil.copytree(self.folder / "bert", folder)
            (folder / name).unlink() if gone else (folder / name).write_bytes(damaged)
            model = _without_input(lambda: heedful.load(str(folder)))
            require(gone or damage is not damage_tensors, "missing or unknown weights are refused", what)
            _content(model)
            heedful.explain(model, TEXT, "attention-mean")

        return f"bert/{name}: {'gone' if gone else what}", check

    def _code(self, rng: random.Random) -> Damaged:
        """A folder that brings code of its own, and a user who would agree to anything."""
        words = ["explain", TEXT, "--method", "attention-mean", "--model", "bert"]
        classes = rng.sample(("AutoConfig", "AutoTokenizer", "AutoModelForSequenceClassification"), 2)

        def check(own: Path) -> Result:
            shutil.copytree(self.folder / "bert", own / "bert")
            config = json.loads((own / "bert/config.json").read_text(encoding="utf-8"))
            config |= {"model_type": "mine", "auto_map": dict.fromkeys(classes, "mine.C")}
            (own / "bert/config.json").write_text(json.dumps(config), encoding="utf-8")
            (own / "bert/mine.py").write_text(CODE.format(marker=str(own / "ran")), encoding="utf-8")
            ended = run_command(words, own, data_of(self.folder), 60, stdin=b"y\ny\ny\n")
            require(not (own / "ran").exists(), "code of a model folder does not run", ended.err[-200:])
            return check_end(words, ended)

        return f"bert with auto_map of {classes}", check

    def _run_folder(self, rng: random.Random, name: str) -> Damaged:
        """A file of a finished run is damaged; the command then refuses it, or ends with the same bytes."""
        finished = self.runs[name].folder
        place = rng.choice(sorted(self.runs[name].files))
        damage = rng.choice((damage_bytes, damage_json)) if place.endswith(".json") else damage_bytes
        damaged, what = damage(rng, (finished / place).read_bytes())
        gone, unfinished = rng.random() < 0.15, rng.random() < 0.5

        def check(own: Path) -> Result:
            shutil.copytree(finished, own / "run")
            for result in (own / "run").glob("*/[mno]*.json") if unfinished else ():
                # Without its results an experiment reads its steps again.
                result.unlink()
            (own / "run" / place).unlink(missing_ok=True) if gone else (own / "run" / place).write_bytes(damaged)
            ended = run_command(words_of(name), own, data_of(self.folder), 60)
            if check_end(words_of(name), ended) == "refused":
                return "refused"
            # A finished run does not read its steps again.
            steps = {place: self.runs[name].files[place]} if "steps/" in place else {}
            try:
                compare_trees(name, self.runs[name].files, {**read_tree(own / "run"), **steps})
            except Violation as error:
                file = Path(place).name
                raise Violation(f"a damaged {file} of {name} is refused or repaired: {error}") from None
            return "success"

        return f"{name}, {place}: {'gone' if gone else what}", check


def _content(model: Model) -> tuple[bytes, tuple[str, ...], tuple[str, ...]]:
    """What a model holds: its outputs for some texts, its classes and its words."""
    outputs = model(list(TEXTS))
    require(bool(np.isfinite(outputs).all()), "finite logits of a damaged model")
    return outputs.tobytes(), tuple(model.classes), tuple(getattr(getattr(model, "vocabulary", None), "words", ()))


def _without_input(load: Callable[[], Model]) -> Model:
    """Loads while standard input is empty: a question to the user would wait for ever."""
    with Path(os.devnull).open() as nothing:
        before = os.dup(0)
        os.dup2(nothing.fileno(), 0)
        try:
            return load()
        finally:
            os.dup2(before, 0)
            os.close(before)
