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
from heedful.document import UNITS

ONE_IN = 50
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
        make = rng.choice((explain, explain, explain, compare, trust, trust, heads, list_, reproduce, train))
        words = make(rng, self.folder)
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
    require(
        ended.code in (0, 2) or (ended.code == 1 and command == "reproduce"),
        f"exit code 0 or 2, not {ended.code}",
        last,
    )
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
    slip = rng.randrange(6)
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


def _text(rng: random.Random) -> str:
    text = inputs.draw_text(rng, 30)
    text = (text if isinstance(text, str) else TEXT).replace("\0", "")
    return TEXT if _unpassable(text) else text


def _model(rng: random.Random, folder: Path) -> list[str]:
    if rng.random() < 0.05:
        return ["--model", rng.choice(("nowhere", str(folder / "binary"), str(folder / "data")))]
    return rng.choice(([], *(["--model", str(folder / name)] for name in ("tiny", "layers.safetensors", "bert"))))


def _request(rng: random.Random) -> list[str]:
    pairs = (
        *(["--target", name] for name in ("positive", "negative", "0", "1")),
        *(["--unit", unit] for unit in UNITS if unit != "patch"),
        ["--scale", "log-probability"],
        ["--json"],
        ["--half"],
        *(["--seconds", seconds] for seconds in ("1", "30", "0.01")),
        *(["--memory", memory] for memory in ("1GB", "2GB", "1kB")),
        ["--seed", rng.choice(("1", "2", "-1"))],
        ["--device", rng.choice(("cpu", "cpu", "meta", "cuda"))],
    )
    return [word for pair in rng.sample(pairs, rng.choice((0, 0, 1, 2))) for word in pair]


def explain(rng: random.Random, folder: Path) -> list[str]:
    """One text, one method."""
    method = rng.choice(sorted(heedful.methods()))
    counts = [
        f"--{name.replace('_', '-')}={rng.choice(values)}"
        for name, values in inputs.COUNTS.items()
        if name in heedful.methods()[method].__dataclass_fields__
    ]
    out = rng.choice(([], [], ["--out", rng.choice(("e.html", "e.json", "e.svg", "no/e.html", "e.docx", "."))]))
    source = rng.choice(([_text(rng)], [_text(rng)], [_text(rng)], ["-"], ["--file", str(folder / "texts.txt")]))
    return ["explain", *source, "--method", method, *counts, *_model(rng, folder), *_request(rng), *out]


def compare(rng: random.Random, folder: Path) -> list[str]:
    """One text, some methods."""
    names = rng.sample(
        ("attention-mean", "gradient-l2", "leave-one-out", "rollout", "occlusion", "nothing"), rng.randint(1, 3)
    )
    out = rng.choice(([], [], ["--out", rng.choice(("c.html", "c.json", "c.png"))]))
    return ["compare", _text(rng), "--methods", ",".join(names), *_model(rng, folder), *_request(rng), *out]


def trust(rng: random.Random, folder: Path) -> list[str]:
    """Two methods, two metrics, few texts."""
    files = ("texts.txt", "texts.jsonl", "strange.jsonl", "empty", "binary", "nowhere.txt")
    source = rng.choice((["imdb", "-n", "3"], ["-n", "3"], *(["--file", str(folder / name)] for name in files)))
    methods = rng.choice(("leave-one-out,attention-mean", "gradient-l2", "random,occlusion", "nothing"))
    metrics = rng.choice(("deletion,gini", "sufficiency", "comprehensiveness,entropy"))
    more = rng.choice(
        ([], [], ["--out", "t"], ["--gold", "good,bad", "--deaf"], ["--others", str(folder / "others.jsonl")])
    )
    words = ["trust", *source, "--methods", methods, "--metrics", metrics, *_model(rng, folder), *_request(rng), *more]
    return [word for word in words if word != "--seconds"]


def heads(rng: random.Random, folder: Path) -> list[str]:
    """What heads attend to."""
    more = rng.choice(([], ["--json"], ["--corpus", str(folder / "texts.txt")], ["--out", "h.svg", "--head", "1"]))
    return ["heads", _text(rng), *_model(rng, folder), *more]


def list_(rng: random.Random, folder: Path) -> list[str]:  # noqa: ARG001
    """The catalogue."""
    return ["list", *rng.choice(([], ["lime"], ["deletion"], ["imdb"], ["gelu"], ["nothing"]))]


def reproduce(rng: random.Random, folder: Path) -> list[str]:  # noqa: ARG001
    """The two shortest experiments, or the list."""
    return [
        "reproduce",
        *rng.choice(
            (
                ["--list"],
                ["--list", "--json"],
                ["gelu", "--quick"],
                ["nothing", "--quick"],
                ["gelu", "--quick", "--seed", "-1"],
            )
        ),
    ]


def train(rng: random.Random, folder: Path) -> list[str]:  # noqa: ARG001
    """One epoch of a tiny model."""
    sizes = ["--n-epochs", "1", "--n-validation", rng.choice(("10", "59", "60")), "--d-e", rng.choice(("8", "7", "0"))]
    return [
        "train",
        *rng.choice((["imdb"], [], ["sst2"], ["nothing"])),
        *sizes,
        "--out",
        rng.choice(("run", "no/run", ".")),
    ]


@cache
def warm(folder: Path) -> None:
    """Imports every module, and runs commands once, so that forked processes need not."""
    for module in pkgutil.walk_packages(heedful.__path__, "heedful."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with (
        tempfile.TemporaryDirectory(dir=folder) as own,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        bert, tiny = str(folder / "bert"), str(folder / "tiny")
        run_here(["explain", TEXT, "--model", bert, "--method", "attention-mean", "--out", f"{own}/e.html"])
        run_here(["compare", TEXT, "--model", tiny, "--methods", "rollout,random", "--out", f"{own}/c.svg"])
        run_here(
            [
                "trust",
                "--file",
                str(folder / "texts.txt"),
                "--model",
                tiny,
                "--methods",
                "rollout",
                "--metrics",
                "gini",
                "--out",
                f"{own}/t",
            ]
        )
        run_here(["reproduce", "gelu", "--quick", "--out", f"{own}/r"])
