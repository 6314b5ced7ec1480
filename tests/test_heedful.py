"""The public face, as a user's own script meets it: no type checks on, a fresh process."""

import subprocess
import sys

import pytest

MISUSE = """
import heedful
from heedful.errors import HeedfulError
model = heedful.load("paper")
for call in (
    lambda: heedful.explain(model, [b"good"]),
    lambda: heedful.explain(model, [None]),
    lambda: heedful.explain(model, "good film", n_samples=None),
    lambda: heedful.explain(model, "good film", unit=3),
    lambda: heedful.explain(model, "good film", target=[1]),
    lambda: model("good film"),
    lambda: model(3),
    lambda: model([heedful.Pair("good", "film")]),
    lambda: model([None]),
):
    try:
        call()
    except HeedfulError as error:
        print(error)
"""


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.slow
def test_misuse_gives_a_one_sentence_error():
    run = python(MISUSE)
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        "A text is a string; bytes was given.",
        "The text contains no words; give at least one.",
        "n_samples must be a whole number or auto; None was given.",
        "There is no unit '3'. Known: passage, patch, segment, sentence, token, type, word.",
        "A class must be a name or a whole number; [1] was given.",
        'A model takes a list of texts; call model(["a text"]).',
        'A model takes a list of texts; call model(["a text"]).',
        "This model reads one text; a pair was given.",
        "A text is a string; NoneType was given.",
    ]


def test_import_is_fast_and_imports_nothing_heavy():
    code = """
import sys, time
start = time.perf_counter(); import heedful; spent = time.perf_counter() - start
heavy = {"torch", "numpy", "rich", "typer", "matplotlib", "pyarrow"} & set(sys.modules)
print(spent, sorted(heavy))
"""
    runs = [python(code).stdout.split(maxsplit=1) for _ in range(3)]
    assert {heavy.strip() for _, heavy in runs} == {"[]"}
    assert min(float(spent) for spent, _ in runs) < 0.2


@pytest.mark.slow
def test_the_catalogue_is_data():
    run = python(
        "import heedful; print(*heedful.methods(), *heedful.datasets())\n"
        "import heedful.datasets.imdb as file; print(file.Imdb.name)"
    )
    assert "lime" in run.stdout
    assert {"imdb", "sst", "eraser-movies"} <= set(run.stdout.split())
    assert run.stdout.split()[-1] == "imdb"


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert "has no attribute 'explian'" in python("import heedful; heedful.explian").stderr
