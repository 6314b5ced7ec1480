"""`heedful generate` as a user types it."""

import json

import pytest

import heedful
from heedful.models.hf.load import load_pretrained
from tests.models.hf.test_chat import chatting

PROMPT = "the film was good"


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
        *("generate", PROMPT, "--model", folder, "--strategy", "nucleus", "--p", "0.7", "--temperature", "1.5"),
        *("--max-new", "5", "--seed", "2", "--context", tmp_path / "passages.txt", "--no-chat", "--json"),
    )
    model = load_pretrained(str(folder), "cpu", "float32")
    settings = {"p": 0.7, "temperature": 1.5, "max_new": 5, "seed": 2, "chat": False}
    expected = heedful.generate(model, PROMPT, "nucleus", context=["a bad story", "not dull !"], **settings)
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(expected.as_dict()))
    assert expected.document.text == f"a bad story\n\nnot dull !\n\n{PROMPT}"


@pytest.mark.parametrize(("options", "has_template"), [([], True), (["--chat"], True), (["--no-chat"], False)])
def test_the_chat_template_is_used_if_there_is_one(heedful_command, folder, options, has_template):
    _, out, _ = heedful_command("generate", PROMPT, "--model", folder, "--max-new", 1, "--json", *options)
    assert (json.loads(out)["document"]["text"] != PROMPT) == has_template


def test_beams_are_written_as_a_page(heedful_command, folder, tmp_path):
    code, out, err = heedful_command(
        *("generate", PROMPT, "--model", folder, "--strategy", "beam", "--width", 3, "--max-new", 4),
        *("--out", tmp_path / "page.html"),
    )
    assert code == 0
    assert "continuations" in out
    assert f"Wrote {tmp_path / 'page.html'}" in err
    assert "The beam tree" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([PROMPT, "--p", "0.5"], "heedful: greedy has no setting 'p', which belongs to nucleus."),
        ([PROMPT, "--strategy", "beams"], "heedful: There is no strategy 'beams'; did you mean 'beam'?"),
        ([" ", "--max-new", "2"], "heedful: The prompt is empty; give some text."),
        ([PROMPT, "--k", "x"], "heedful: --k must be a whole number."),
        ([PROMPT, "--top-p", "1"], "heedful: No such option"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(heedful_command, folder, words, sentence):
    code, out, err = heedful_command("generate", *words, "--model", folder)
    assert (code, out) == (2, "")
    assert err.startswith(sentence)


def test_a_model_that_does_not_write_is_refused(heedful_command):
    code, _, err = heedful_command("generate", PROMPT, "--model", "paper")
    assert code == 2
    assert "This model does not write text" in err
