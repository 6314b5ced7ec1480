"""`heedful features show` as a user types it."""

import pytest

import heedful

REVIEWS = ("--model", "reviews")


def test_the_page_is_what_python_writes(heedful_command, reviews_folder, texts_file, tmp_path):
    page = tmp_path / "page.html"
    code, out, err = heedful_command(
        "features", "show", reviews_folder, *REVIEWS, "--texts", texts_file, "-n", "4", "--out", page
    )
    assert (code, f"Wrote {page}" in err) == (0, True)
    dictionary = heedful.features.load(reviews_folder, heedful.load("reviews"))
    descriptions = heedful.features.describe(dictionary, texts_file, n_texts=4, out=tmp_path / "python.html")
    assert page.read_bytes() == (tmp_path / "python.html").read_bytes()
    assert out.strip() == descriptions.summary


def test_one_feature_has_a_page_of_its_own(heedful_command, reviews_folder, texts_file, tmp_path):
    dictionary = heedful.features.load(reviews_folder, heedful.load("reviews"))
    number = next(iter(heedful.features.describe(dictionary, texts_file))).feature
    arguments = ("--feature", str(number), "--out", tmp_path / "one.html")
    code, out, _ = heedful_command("features", "show", reviews_folder, *REVIEWS, "--texts", texts_file, *arguments)
    assert code == 0
    description = heedful.features.describe(dictionary, texts_file)[number]
    assert out.strip().splitlines()[-len(description.details.splitlines()) :] == description.details.splitlines()
    assert "1 of 40 features" in (tmp_path / "one.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--feature", "40"), "features 0 to 39; 40 was given"),
        (("--out", "a.pdf"), "a folder or to .html"),
        (("--texts", "nothing.txt"), "no such file"),
    ],
)
def test_bad_input_is_a_sentence(heedful_command, reviews_folder, texts_file, arguments, message):
    texts = () if "--texts" in arguments else ("--texts", texts_file)
    code, _, err = heedful_command("features", "show", reviews_folder, *REVIEWS, *texts, *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
