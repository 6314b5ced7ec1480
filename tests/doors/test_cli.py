"""The command line as a newcomer types it wrong: one sentence and exit code 2."""

import pytest

BAD = [
    (("explain", ""), "contains no words"),
    (("explain",), "No text was given"),
    (("compare", "good film", "--methods", ""), "No method was named"),
    (("explain", "zzzz qqqq"), "All words of the text are unknown"),
    (("explain", "good"), "lime needs at least 2 words; the document has 1."),
    (("explain", "😀 😀"), "All words of the text are unknown"),
    (("explain", "שלום עולם"), "All words of the text are unknown"),
    (("explain", "good film", "--method", "shap"), "There is no method 'shap'"),
    (("explain", "good film", "--target", "7"), "There is no class 7"),
    (("explain", "good film", "--target", "great"), "There is no class 'great'"),
    (("explain", "good film", "--unit", "letter"), "There is no unit 'letter'"),
    (("explain", "good film", "--n-samples", "many"), "n_samples must be a whole number"),
    (("explain", "good film", "--n-sample", "9"), "did you mean 'n_samples'"),
    (("explain", "good", "film"), "Only one text is allowed"),
    (("explain", "good film", "--file", "x.txt"), "Give a text or --file, not both."),
    (("explain", "--file", "nowhere.txt"), "nowhere.txt cannot be read"),
    (("explain", "good film", "--model", "nowhere"), "There is no model 'nowhere'"),
    (("explain", "good film", "--out", "report.docx"), "A report must end in .html"),
    (("explain", "good film", "--out", "no/such/folder/report.html"), "cannot be written"),
    (("compare", "good film", "--methods", "lime,anchrs"), "There is no method 'anchrs'"),
    (("compare", ""), "contains no words"),
    (("train", "imbd"), "There is no data set 'imbd'; did you mean 'imdb'"),
    (("train", "imdb", "foo"), "There is no data set 'imdb foo'"),
    (("train", "--d-e", "7"), "even d_e"),
    (("train", "--device", "nonsense"), "This machine has no device 'nonsense'"),
    (("train", "--n-epochs", "0"), "n_epochs must be above 0"),
    (
        ("explain", "good film", "--method", "random", "--seed", "-1"),
        "The seed must be a whole number ≥ 0; -1 was given.",
    ),
    (("explain", "good film", "--n-samples", "100000000000"), "takes 10 to 10,000,000 samples"),
    (("explain", "good film", "--ridge", "inf"), "a finite ridge"),
    (("explain", "good film", "--kernel-width", "0.001"), "nearly all samples have no weight"),
    (("explain", "good film", "--text", "x"), "There is no setting 'text'"),
    (("explain", "good film", "--seed"), "--seed needs a value."),
    (("explain", "good film", "--out"), "requires an argument"),
    (("explian", "good film"), "No such command"),
    (("explain", "good film", "--device", "meta"), "The device 'meta' holds no numbers"),
    (("explain", "good film", "--kernel-width", "1e300"), "a kernel_width from 1e-6 to 1e6"),
    (("trust", "--dataset", "0"), "There is no setting 'dataset'"),
    (("trust", "--progress", "imdb"), "--progress is an argument of heedful.trust in Python"),
    (("trust", "--twin", "imdb"), "--twin is an argument of heedful.trust in Python"),
    (("trust", "--settings", "0"), "There is no setting 'settings'"),
    (("trust", "--seed", "-1"), "The seed must be a whole number ≥ 0; -1 was given."),
    (("train", "imdb", "--epochs", "3"), "There is no setting 'epochs'; did you mean 'n_epochs'"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_2(heedful_command, words, sentence):
    code, out, err = heedful_command(*words)
    assert code == 2
    assert sentence in err
    assert err.startswith("heedful: ")
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize("content", [b"good \0 film", b"\xff\xfe\x00g", b"\x89PNG\r\n"])
def test_a_binary_file_is_one_sentence(heedful_command, tmp_path, content):
    (tmp_path / "binary").write_bytes(content)
    for words in (("explain", "--file", str(tmp_path / "binary")), ("explain", "-")):
        code, _, err = heedful_command(*words, stdin=content)
        assert code == 2
        assert err.count("\n") == 1


def test_broken_checkpoints_are_one_sentence(heedful_command, tmp_path):
    from importlib.resources import files

    whole = (files("heedful.models") / "checkpoints" / "paper.safetensors").read_bytes()
    for name, content in (("cut", whole[:5_000_000]), ("foreign", b"not a model at all"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        code, _, err = heedful_command("explain", "good film", "--model", str(tmp_path / name))
        assert code == 2
        assert err.count("\n") == 1
