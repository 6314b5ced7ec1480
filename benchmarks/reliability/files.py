"""Damaged files: each is refused in one sentence, or read as it was before the damage."""

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import numpy as np

import heedful
from benchmarks.reliability.case import Case, Kind, Result, Violation
from benchmarks.reliability.checks import require
from benchmarks.reliability.commands import check_end, data_of
from benchmarks.reliability.damage import damage_bytes, damage_header, damage_json, damage_tensors
from benchmarks.reliability.kills import RUNS, compare_trees, read_tree, whole_runs
from benchmarks.reliability.process import run_command
from benchmarks.reliability.workshop import TEXTS, workshop
from heedful.explanation import Explanation
from heedful.models import Model

CODE = "import pathlib\npathlib.Path({marker!r}).write_text('ran')\nclass C:\n    pass\n"


@final
class Files(Kind):
    """Damaged checkpoints, explanations, Hugging Face folders and run folders."""

    name, title, n, n_chunk, seconds = "files", "damaged files", 1_000, 10, 90.0

    def prepare(self) -> None:
        """Makes whole files, and remembers what they hold."""
        self.folder = workshop()
        self.outputs = {
            name: _content(heedful.load(str(self.folder / name))) for name in ("tiny", "layers.safetensors")
        }
        self.explanation = Explanation.load(self.folder / "explanation.json").as_dict()
        self.runs = whole_runs()

    def case(self, rng: random.Random, number: int) -> Case:
        """Checkpoints, explanations and Hugging Face folders more often than the slower run folders."""
        kinds = (*(["checkpoint"] * 6), *(["explanation"] * 6), *(["hugging face"] * 5), "train", "trust", "reproduce")
        kind = kinds[number % len(kinds)]
        if kind == "checkpoint":
            return self._checkpoint(rng)
        if kind == "explanation":
            return self._explanation(rng)
        return self._hugging_face(rng) if kind == "hugging face" else self._run_folder(rng, kind)

    def _checkpoint(self, rng: random.Random) -> Case:
        name = rng.choice(("tiny", "tiny", "layers.safetensors"))
        file = "tiny/model.safetensors" if name == "tiny" else name
        damaged, what = rng.choice((damage_bytes, damage_bytes, damage_header))(rng, (self.folder / file).read_bytes())

        def check() -> Result:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="file-") as own:
                (Path(own) / "model.safetensors").write_bytes(damaged)
                content = _content(heedful.load(own))
            require(_same(content, self.outputs[name]), "a damaged checkpoint is refused or read as it was", what)
            return "success"

        return Case(f"{file}: {what}", check)

    def _explanation(self, rng: random.Random) -> Case:
        path = self.folder / "explanation.json"
        damaged, what = rng.choice((damage_bytes, damage_json, damage_json))(rng, path.read_bytes())

        def check() -> Result:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="file-") as own:
                (Path(own) / "e.json").write_bytes(damaged)
                explanation = Explanation.load(Path(own) / "e.json")
            require(
                explanation.as_dict() == self.explanation, "a damaged explanation is refused or read as it was", what
            )
            return "success"

        return Case(f"explanation.json: {what}", check)

    def _hugging_face(self, rng: random.Random) -> Case:
        """A file of the folder is damaged or removed, a weight is missing or unknown, or it brings code of its own."""
        kind = rng.choice(("bytes", "bytes", "json", "json", "gone", "tensors", "code"))
        name = rng.choice(
            ("config.json", "config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
        )
        if kind == "tensors":
            name = "model.safetensors"
        source = (self.folder / "bert" / name).read_bytes()
        change: Callable[..., tuple[bytes, str]] = {"json": damage_json, "tensors": damage_tensors}.get(
            kind, damage_bytes
        )
        damaged, what = (
            change(rng, source)
            if kind in ("bytes", "tensors", "json") and not (kind == "json" and name == "model.safetensors")
            else (source, "")
        )
        call = {"gone": f"bert without {name}", "code": "bert with auto_map"}.get(kind, f"bert/{name}: {what}")

        def check() -> Result:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="file-") as own:
                folder, marker = Path(own) / "bert", Path(own) / "ran"
                shutil.copytree(self.folder / "bert", folder)
                (folder / name).write_bytes(damaged)
                if kind == "gone":
                    (folder / name).unlink()
                if kind == "code":
                    _add_code(folder, marker)
                    words = ["explain", TEXTS[0], "--method", "attention-mean", "--model", str(folder)]
                    ended = run_command(words, Path(own), data_of(self.folder), 60, stdin=b"y\ny\ny\n")
                    require(not marker.exists(), "code of a model folder does not run", ended.err[-200:])
                    return check_end(words, ended)
                model = _silently(lambda: heedful.load(str(folder)))
                require(kind != "tensors", "missing or unknown weights are refused", what)
                _content(model)
                heedful.explain(model, TEXTS[0], "attention-mean")
            return "success"

        return Case(call, check)

    def _run_folder(self, rng: random.Random, name: str) -> Case:
        """A file of a finished run is damaged; the command then refuses it, or ends with the same bytes."""
        finished = self.runs[name].folder.parent
        file = rng.choice(sorted(path for path in (finished / "run").rglob("*") if path.is_file()))
        is_json = file.suffix == ".json"
        damaged, what = (damage_json if is_json and rng.random() < 0.5 else damage_bytes)(rng, file.read_bytes())
        gone, place, unfinished = rng.random() < 0.15, file.relative_to(finished), rng.random() < 0.5

        def check() -> Result:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="file-") as own:
                shutil.copytree(finished / "run", Path(own) / "run")
                for result in (Path(own) / "run").glob("*/[mno]*.json") if unfinished else ():
                    # Without its results an experiment reads its steps again.
                    result.unlink()
                (Path(own) / place).unlink(missing_ok=True) if gone else (Path(own) / place).write_bytes(damaged)
                ended = run_command(RUNS[name], Path(own), data_of(self.folder), 60)
                if check_end([*RUNS[name]], ended) == "refused":
                    return "refused"
                try:
                    whole, other = dict(self.runs[name].files), read_tree(Path(own) / "run")
                    if "steps" in place.parts:
                        # A finished run does not read its steps again.
                        other[place.relative_to("run").as_posix()] = whole[place.relative_to("run").as_posix()]
                    compare_trees(name, whole, other)
                except Violation as error:
                    raise Violation(f"a damaged {place.name} of {name} is refused or repaired: {error}") from None
            return "success"

        return Case(f"{name}, {place}: {'gone' if gone else what}", check)


def _content(model: Model) -> tuple[Any, ...]:
    outputs = model(list(TEXTS))
    require(bool(np.isfinite(outputs).all()), "finite logits of a damaged model")
    words = getattr(getattr(model, "vocabulary", None), "words", ())
    return outputs, tuple(model.classes), tuple(words)


def _same(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    return one[0].tobytes() == two[0].tobytes() and one[1:] == two[1:]


def _add_code(folder: Path, marker: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {
        "model_type": "mine",
        "auto_map": {"AutoConfig": "mine.C", "AutoModelForSequenceClassification": "mine.C"},
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "mine.py").write_text(CODE.format(marker=str(marker)), encoding="utf-8")


def _silently(load: Callable[[], Model]) -> Model:
    """Loads without standard input: a question to the user would wait for ever."""
    with open(os.devnull) as nothing:  # noqa: PTH123
        before = os.dup(0)
        os.dup2(nothing.fileno(), 0)
        try:
            return load()
        finally:
            os.dup2(before, 0)
            os.close(before)
