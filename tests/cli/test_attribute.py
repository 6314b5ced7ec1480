"""`heedful attribute` as a user types it."""

import json

import pytest

import heedful
from heedful.models.hf.load import load_pretrained
from tests.models.hf.test_chat import chatting

PROMPT, OUTPUT = "the film was good", " bad film"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny Llama that talks, as a folder."""
    folder, model = tmp_path_factory.mktemp("model"), chatting()
    model.network.float().save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def test_the_json_is_what_python_gives(heedful_command, folder, tmp_path):
    (tmp_path / "passages.txt").write_text("a bad story\n\nnot dull !\n", encoding="utf-8")
    code, out, _ = heedful_command(
        *("attribute", PROMPT, OUTPUT, "--model", folder, "--method", "shapley-sampled", "--n-samples", "64"),
        *("--of", "0:2", "--measure", "context-gain", "--context", tmp_path / "passages.txt", "--unit", "word"),
        *("--no-chat", "--json"),
    )
    model = load_pretrained(str(folder), "cpu", "float32")
    expected = heedful.attribute(
        *(model, PROMPT, OUTPUT, "shapley-sampled"),
        of=(0, 2),
        measure="context-gain",
        context=["a bad story", "not dull !"],
        unit="word",
        chat=False,
        n_samples=64,
    )
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(expected.as_dict()))


def test_without_an_output_the_model_writes_it(heedful_command, folder):
    arguments = ("attribute", PROMPT, "--model", folder, "--method", "leave-one-out", "--max-new", 3, "--json")
    _, out, _ = heedful_command(*arguments)
    assert 1 <= json.loads(out)["n_written"] <= 3


@pytest.mark.parametrize("name", ["a.html", "a.json", "a.svg"])
def test_the_table_is_shown_and_written(heedful_command, folder, tmp_path, name):
    code, out, err = heedful_command(
        *("attribute", PROMPT, OUTPUT, "--model", folder, "--method", "leave-one-out", "--out", tmp_path / name),
    )
    assert code == 0
    assert "strongest sources" in out
    assert f"Wrote {tmp_path / name}" in err
    assert "film" in (tmp_path / name).read_text(encoding="utf-8")


WRONG = {
    "No text was given": (),
    "'three' is a third text": (PROMPT, "two", "three"),
    "There is no method 'x'": (PROMPT, OUTPUT, "--method", "x"),
    "There is no setting 'samples'": (PROMPT, OUTPUT, "--samples", "3"),
    "The output is empty": (PROMPT, " "),
    "must end in .html": (PROMPT, OUTPUT, "--method", "random", "--out", "a.txt"),
    "No such file": (PROMPT, OUTPUT, "--context", "nowhere.txt"),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_an_error_is_one_sentence_and_exit_code_2(heedful_command, folder, sentence):
    code, out, err = heedful_command("attribute", *WRONG[sentence], "--model", folder)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
