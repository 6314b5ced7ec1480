"""`heedful context` as a user types it."""

import json

import pytest

import heedful
from heedful.models.hf.load import load_pretrained
from tests.models.hf.test_chat import chatting

PROMPT, OUTPUT = "the film was good", " bad film"
FEW = ("--n-null", "1", "--alpha", "0.5", "--method", "leave-one-out", "--no-chat")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny Llama that talks, as a folder, with passages."""
    folder, model = tmp_path_factory.mktemp("model"), chatting()
    model.network.float().save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    (folder / "passages.txt").write_text("a bad story\n\nnot dull !\n", encoding="utf-8")
    (folder / "empty.txt").write_text("\n", encoding="utf-8")
    (folder / "long.txt").write_text("good film " * 3_000, encoding="utf-8")
    return folder


def test_the_json_is_what_python_gives(heedful_command, folder):
    arguments = ("--model", folder, "--context", folder / "passages.txt", "--unit", "passage", *FEW, "--json")
    code, out, _ = heedful_command("context", PROMPT, OUTPUT, *arguments)
    expected = heedful.context(
        load_pretrained(str(folder), "cpu", "float32"),
        ["a bad story", "not dull !"],
        PROMPT,
        OUTPUT,
        method="leave-one-out",
        unit="passage",
        n_null=1,
        alpha=0.5,
        chat=False,
    )
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(expected.as_dict()))


def test_without_an_output_the_model_writes_one_and_a_page_is_written(heedful_command, folder, tmp_path):
    arguments = ("--model", folder, "--context", folder / "passages.txt", *FEW, "--max-new", "3")
    code, out, err = heedful_command("context", PROMPT, *arguments, "--out", tmp_path / "a.html")
    assert code == 0
    assert "P-CXMI" in out
    assert "The model wrote the output with this context" in " ".join(out.split())
    assert f"Wrote {tmp_path / 'a.html'}" in err


WRONG = {
    "No text was given": ("--context", "passages.txt"),
    "There is no context; give --context FILE": (PROMPT,),
    "The context is blank": (PROMPT, "--context", "empty.txt"),
    "more tokens than the model reads": (PROMPT, "--context", "long.txt"),
    "No such file": (PROMPT, "--context", "nowhere.txt"),
    "'three' is a third": (PROMPT, "two", "three", "--context", "passages.txt"),
    "The output is empty": (PROMPT, " ", "--context", "passages.txt"),
    "There is no method 'x'": (PROMPT, OUTPUT, "--context", "passages.txt", "--method", "x"),
    "There is no unit 'x'": (PROMPT, OUTPUT, "--context", "passages.txt", "--unit", "x"),
    "There is no null 'x'": (PROMPT, OUTPUT, "--context", "passages.txt", "--null", "x"),
    "give n_null=19 or more": (PROMPT, OUTPUT, "--context", "passages.txt", "--n-null", "3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("sentence", WRONG)
def test_an_error_is_one_sentence_and_exit_code_2(heedful_command, folder, sentence):
    given = [folder / word if word.endswith(".txt") else word for word in WRONG[sentence]]
    code, out, err = heedful_command("context", *given, "--model", folder)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
