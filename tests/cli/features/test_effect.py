"""`heedful features effect` as a user types it."""

import json

import pytest

import heedful
from tests.cli.features.conftest import LINES


def test_the_json_is_what_python_gives(heedful_command, reviews_folder, texts_file):
    features, few = ("--feature", 3, "--feature", 7), ("--n-random", 2, "--target", "positive")
    code, out, _ = heedful_command(
        "features", "effect", reviews_folder, *features, "--texts", texts_file, *few, "--json"
    )
    assert code == 0
    dictionary = heedful.features.load(reviews_folder, heedful.load("reviews"))
    ablation = heedful.features.effect(dictionary, [3, 7], LINES, None, "positive", n_random=2)
    assert json.loads(out) == json.loads(json.dumps(ablation.as_dict()))


def test_the_verdict_is_printed_with_labels_of_the_accuracy(heedful_command, reviews_folder, tmp_path):
    (tmp_path / "t.csv").write_text("text,label\na fine film,positive\na dull film,negative\n", encoding="utf-8")
    words = (reviews_folder, "--feature", 3, "--n-random", 2, "--texts", tmp_path / "t.csv")
    code, out, _ = heedful_command("features", "effect", *words)
    assert code == 0
    assert "accuracy" in out
    assert "accuracy" not in heedful_command("features", "effect", *words, "--label-column", "none")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--feature", 40), "The dictionary has features 0 to 39; 40 was given."),
        (("--feature", "x"), "must be a whole number"),
        ((), "Missing option '--feature'"),
        (("--feature", 1, "--n-random", 0), "n_random must be a whole number from 1 to 10,000"),
        (("--feature", 1, "--target", "funny"), "There is no class 'funny'"),
    ],
)
def test_an_error_is_a_sentence(heedful_command, reviews_folder, texts_file, words, message):
    code, out, err = heedful_command("features", "effect", reviews_folder, "--texts", texts_file, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
