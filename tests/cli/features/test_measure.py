"""`heedful features measure` as a user types it."""

import json

import pytest

import heedful

REVIEWS = ("--model", "reviews")


def test_the_json_is_what_python_gives(heedful_command, reviews_folder, texts_file):
    code, out, _ = heedful_command(
        "features", "measure", reviews_folder, *REVIEWS, "--texts", texts_file, "-n", "4", "--json"
    )
    assert code == 0
    dictionary = heedful.features.load(reviews_folder, heedful.load("reviews"))
    quality = heedful.features.measure(dictionary, texts=texts_file, n_texts=4)
    assert json.loads(out) == quality.as_dict()
    assert quality.n_texts == 4


def test_the_summary_is_printed(heedful_command, reviews_folder, tmp_path):
    (tmp_path / "t.csv").write_text("text,y\na fine film,positive\na dull film,negative\n", encoding="utf-8")
    table = ("--texts", tmp_path / "t.csv", "--label-column")
    assert "2 labels (accuracy " in heedful_command("features", "measure", reviews_folder, *REVIEWS, *table, "y")[1]
    assert (
        "2 own predictions: loss" in heedful_command("features", "measure", reviews_folder, *REVIEWS, *table, "none")[1]
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--texts", "imbd", *REVIEWS), "There is no data set 'imbd'; did you mean 'imdb'?"),
        (("--texts", "nowhere.txt", *REVIEWS), "nowhere.txt cannot be read"),
        (("--texts", "sst", "--model", "writer"), "The dictionary belongs to the model"),
        (("--texts", "sst", *REVIEWS, "-n", "many"), "must be a whole number"),
        ((), "Missing option '--texts'"),
    ],
)
def test_an_error_is_a_sentence(heedful_command, reviews_folder, words, message):
    code, out, err = heedful_command("features", "measure", reviews_folder, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_no_dictionary_is_a_sentence(heedful_command, texts_file):
    code, _, err = heedful_command("features", "measure", "nowhere", "--texts", texts_file)
    assert code == 2
    assert "nowhere contains no dictionary" in err
