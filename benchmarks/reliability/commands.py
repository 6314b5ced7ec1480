"""Command lines: what people type, with a share of slips and of malice. One in fifty runs in a new interpreter."""

import contextlib
import importlib
import io
import json
import os
import pkgutil
import random
import shlex
import tempfile
from functools import cache
from pathlib import Path
from typing import final

import heedful
from benchmarks.reliability import inputs
from benchmarks.reliability.case import Case, Kind, Result, sentence_problem
from benchmarks.reliability.checks import require
from benchmarks.reliability.process import Ended, run_command, run_here, start_command
from benchmarks.reliability.workshop import TEXT, workshop

ONE_IN = 50
LINES = (
    *("explain TEXT METHOD MODEL REQUEST OUT",) * 5,
    "explain - METHOD MODEL REQUEST",
    "explain --file FILE METHOD MODEL REQUEST",
    *("compare TEXT --methods METHODS MODEL REQUEST OUT",) * 2,
    "trust imdb -n 3 --methods METHODS --metrics METRICS MODEL REQUEST",
    "trust --file FILE --methods METHODS --metrics METRICS MODEL REQUEST --out t",
    "trust --file FOLDER/texts.txt --methods METHODS --metrics METRICS --gold good,bad --deaf",
    "trust --file FOLDER/texts.txt --methods METHODS --metrics METRICS --others FOLDER/others.jsonl",
    "heads TEXT MODEL",
    "heads TEXT MODEL --json",
    "heads TEXT MODEL --corpus FILE",
    "heads TEXT MODEL --out h.svg --head 1",
    "list NAME",
    "reproduce --list --json",
    "reproduce gelu --quick --seed 1",
    "train imdb --n-epochs 1 --n-validation 10 --d-e 8 --out run",
    "train sst2 --n-epochs 1 --n-validation 60 --d-e 7 --out no/run",
)
"""Words in capitals are drawn: from PARTS, or by `draw_part`."""
PARTS = {
    "MODEL": ("", "--model FOLDER/tiny", "--model FOLDER/layers.safetensors", "--model FOLDER/bert"),
    "METHODS": ("leave-one-out,attention-mean", "gradient-l2", "random,occlusion,rollout", "nothing"),
    "METRICS": ("deletion,gini", "sufficiency", "comprehensiveness,entropy"),
    "OUT": ("", "", "--out e.html", "--out e.json", "--out e.svg", "--out no/e.html", "--out e.docx", "--out ."),
    "FILE": ("FOLDER/texts.txt", "FOLDER/texts.jsonl", "FOLDER/strange.jsonl", "FOLDER/empty", "FOLDER/binary"),
    "NAME": ("", "lime", "deletion", "imdb", "gelu", "nothing"),
    "REQUEST": (
        *("", "", "--target positive", "--target 0 --against 1", "--unit token", "--unit type", "--unit sentence"),
        *("--scale log-probability", "--json", "--half", "--seconds 30", "--seconds 0.01", "--memory 1GB"),
        *("--memory 1kB", "--seed 1", "--seed -1", "--device cpu", "--device meta", "--precision float64"),
        *("--model nowhere", "--model FOLDER/binary"),
    ),
}
VALUES = (
    *("", " ", "-", "--", "-1", "0", "1", "2", "7", "1e300", "nan", "inf", "9" * 400, "x", "all", "auto"),
    *("none", "None", "[]", "imdb", "word", "cpu", "meta", "cuda:9", "true", "é😀", "\udcff", "a,b", ","),
    *("@nowhere", "a b", "--json", "../..", "."),
)
OPTIONS = (
    *("text", "model", "dataset", "progress", "twin", "announce", "method", "methods", "metrics", "wanted"),
    *("about", "settings", "seed", "n", "others", "gold", "deaf", "out", "json", "half", "memory", "seconds"),
    *("unit", "target", "against", "scale", "device", "precision", "second", "file", "help", "version"),
    *("question", "self", "name", "documents", "words", "request", "n-samples", "absence", "kernel-width"),
    *("split-seed", "n-epochs", "d-e", "list", "quick", "corpus", "layer", "head"),
)


@final
class Commands(Kind):
    """Command lines of all seven commands."""

    name, title, n, n_chunk, seconds = "commands", "command lines", 1_000, 10, 60.0

    def prepare(self) -> None:
        """Makes the files that commands name, and imports all that a command imports."""
        self.folder = workshop()
        warm(self.folder)

    def case(self, rng: random.Random, number: int) -> Case:
        """A command line of one command, as it is or with up to three changes."""
        parts = [draw_part(rng, word) for word in rng.choice(LINES).split()]
        words = [word.replace("FOLDER", str(self.folder)) for part in parts for word in part]
        for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2, 3))):
            words = change(rng, words)
        stdin = rng.choice((b"", b"a good film", b"\xff\xfe", b"y\n", TEXT.encode()))
        run = start_command if number % ONE_IN == 0 else run_command
        call = f"heedful {shlex.join(words)}".replace(str(self.folder), "FOLDER")

        def check() -> Result:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="command-") as own:
                return check_end(words, run(words, Path(own), data_of(self.folder), self.seconds - 2, stdin=stdin))

        return Case(call, check)


def data_of(folder: Path) -> dict[str, str]:
    """The environment of a command: small data, no network."""
    return {"HEEDFUL_DATA": str(folder / "data"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def check_end(words: list[str], ended: Ended) -> Result:
    """Code 0; or code 2 and one sentence; of `reproduce` also code 1 and one sentence. Never a traceback."""
    last = (ended.err.strip() or ended.out.strip() or "nothing printed").splitlines()[-1]
    command = words[0] if words else ""
    printed = ended.out + ended.err
    require("Traceback (most recent" not in printed, f"no traceback ({command}, {last.partition(':')[0][:60]})", last)
    codes = (0, 1, 2) if command == "reproduce" else (0, 2)
    require(ended.code in codes, f"exit code 0 or 2, not {ended.code}", last)
    if ended.code == 0:
        if "--json" in words and command not in ("list", "train") and not {"--help", "--version"} & {*words}:
            json.loads(ended.out)
        return "success"
    sentences = [line for line in ended.err.splitlines() if line.startswith("heedful: ")]
    if not sentences:
        require(len(words) < 2 or "Usage" in printed, "one sentence on standard error", last)
        return "refused"
    problem = sentence_problem(sentences[-1])
    require(problem is None, f"a refusal is one sentence ({problem})", last)
    require(len(sentences) == 1 and last == sentences[0], "one sentence, at the end of standard error", ended.err)
    return "refused"


def change(rng: random.Random, words: list[str]) -> list[str]:
    """The command line with one slip: a word replaced, dropped, doubled or moved, or an option that it may not have."""
    words, place = list(words), rng.randrange(1, max(2, len(words)))
    # Without one of its words `reproduce` would run for hours.
    slip = rng.randrange(2 if words[0] == "reproduce" else 0, 6)
    if slip == 0 and place < len(words):
        words[place] = rng.choice(VALUES)
    elif slip == 1 and place < len(words):
        del words[place]
    elif slip == 2 and place < len(words):
        words.insert(place, words[place])
    elif slip == 3:
        words[place:place] = [f"--{rng.choice(OPTIONS)}", rng.choice(VALUES)]
    elif slip == 4:
        words.append(f"--{rng.choice(OPTIONS)}" + rng.choice(("", "=", f"={rng.choice(VALUES)}")))
    else:
        words.append(rng.choice((*VALUES, *inputs.BROKEN)).replace("\0", ""))
    # Operating systems pass bytes: other surrogates cannot be on a command line.
    return [word.encode("utf-8", "backslashreplace").decode() if _unpassable(word) else word for word in words]


def _unpassable(word: str) -> bool:
    try:
        os.fsencode(word)
    except UnicodeEncodeError:
        return True
    return False


def draw_part(rng: random.Random, word: str) -> list[str]:
    """The words that a word of LINES stands for."""
    if word == "TEXT":
        text = inputs.draw_text(rng, 30)
        text = (text if isinstance(text, str) else TEXT).replace("\0", "")
        return [TEXT if _unpassable(text) else text]
    if word == "METHOD":
        method = rng.choice(sorted(heedful.methods()))
        settings = heedful.methods()[method].__dataclass_fields__
        counts = {name: rng.choice(values) for name, values in inputs.COUNTS.items() if name in settings}
        return ["--method", method, *(f"--{name.replace('_', '-')}={count}" for name, count in counts.items())]
    return rng.choice(PARTS[word]).split() if word in PARTS else [word]


@cache
def warm(folder: Path) -> None:
    """Imports every module, and runs commands once, so that forked processes need not."""
    for module in pkgutil.walk_packages(heedful.__path__, "heedful."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    bert, texts, tiny = (str(folder / name) for name in ("bert", "texts.txt", "tiny"))
    with tempfile.TemporaryDirectory(dir=folder) as own, contextlib.redirect_stderr(io.StringIO()) as nothing:
        lines = (
            f"explain good --model {bert} --method attention-mean --out {own}/e.html",
            f"compare good --model {tiny} --methods rollout,random --out {own}/c.svg",
            f"trust --file {texts} --model {tiny} --methods rollout --metrics gini --out {own}/t",
            f"reproduce gelu --quick --out {own}/r",
        )
        with contextlib.redirect_stdout(nothing):
            for line in lines:
                run_here(line.split())
