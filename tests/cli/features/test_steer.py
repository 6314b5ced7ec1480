"""`heedful features steer` as a user types it."""

import json

import pytest

import heedful
from tests.features.random_dictionaries import random_dictionary

PROMPTS = ("Once upon a time", "One day, a", "The boy was", "Lily had a", "There was")
ASKED = ("--feature", "3", "--strength", "6", "--words", "happy,big,was", "--max-new", "4", "--curve", "")


@pytest.fixture(scope="session")
def writer():
    return heedful.load("writer")


@pytest.fixture
def folder(writer, tmp_path):
    random_dictionary(writer).save(tmp_path / "dictionary")
    (tmp_path / "p.txt").write_text("\n".join(PROMPTS), encoding="utf-8")
    (tmp_path / "with.txt").write_text("The dog was happy.\nShe was big.", encoding="utf-8")
    (tmp_path / "without.txt").write_text("They ran home.\nA cat.", encoding="utf-8")
    return tmp_path


def test_the_json_is_what_python_gives_and_the_folder_has_page_and_numbers(heedful_command, folder, writer):
    pair = ("--examples", folder / "with.txt", "--without", folder / "without.txt")
    words = ("features", "steer", folder / "dictionary", "--model", "writer", "--prompts", folder / "p.txt", *ASKED)
    code, out, _ = heedful_command(*words, *pair, "--out", folder / "run", "--json")
    assert code == 0
    result = heedful.features.steer(
        heedful.features.load(folder / "dictionary", writer),
        3,
        list(PROMPTS),
        strength=6.0,
        words=["happy", "big", "was"],
        examples=(["The dog was happy.", "She was big."], ["They ran home.", "A cat."]),
        max_new=4,
        curve=(),
        progress=None,
    )
    assert json.loads(out) == json.loads(json.dumps(result.as_dict()))
    assert result.verdict in (folder / "run/steering.html").read_text(encoding="utf-8")
    assert json.loads((folder / "run/steering.json").read_text(encoding="utf-8"))["feature"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--without", "b.txt"), "--without needs --examples"),
        (("--out", "page.png"), "--out is a page (.html), numbers (.json) or a folder"),
        (("--strength", "-1"), "at least 0"),
        (("--curve", "1,much"), "curve is a list of numbers above 0"),
        (("--feature", "99"), "features 0 to 11"),
        (("--prompts", "nowhere.txt"), "nowhere.txt cannot be read"),
        (("--how", "pull"), "There is no how 'pull'"),
    ],
)
def test_an_error_is_a_sentence(heedful_command, folder, words, message):
    given = ("--prompts", folder / "p.txt", *ASKED, *words)
    code, out, err = heedful_command("features", "steer", folder / "dictionary", "--model", "writer", *given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
