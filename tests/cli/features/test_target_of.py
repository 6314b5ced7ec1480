"""A feature as the target of `heedful explain`, `compare` and `trust`."""

import json

import pytest

import heedful
from heedful.cli.input import target_of
from heedful.errors import BadInput
from tests.cli.features.conftest import LINES


@pytest.fixture
def feature(reviews_folder):
    """The options that name a feature, and what they name in Python."""
    options = ("--model", "reviews", "--dictionary", reviews_folder, "--feature", 3)
    return options, heedful.Feature(heedful.features.load(reviews_folder), 3)


def test_explain_and_compare_explain_the_feature(heedful_command, feature):
    options, target = feature
    model = heedful.load("reviews")
    code, out, _ = heedful_command("explain", LINES[0], "--method", "leave-one-out", *options, "--json")
    assert code == 0
    own = heedful.explain(model, LINES[0], "leave-one-out", target=target)
    assert json.loads(out)["scores"] == own.as_dict()["scores"]
    assert "feature 3 of layer 3" in out
    code, out, _ = heedful_command("compare", LINES[0], "--methods", "leave-one-out,random", *options, "--json")
    assert code == 0
    assert "feature 3 of layer 3" in out


def test_a_table_is_explained_into_a_folder_and_measured(heedful_command, feature, tmp_path):
    options, target = feature
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(f'"{line}"' for line in LINES) + "\n", encoding="utf-8")
    method = ("--method", "leave-one-out", "--out", tmp_path / "all")
    assert heedful_command("explain", tmp_path / "t.csv", *method, *options)[0] == 0
    own = heedful.explain(heedful.load("reviews"), LINES[1], "leave-one-out", target=target)
    stored = next(e for e in heedful.open(tmp_path / "all") if len(e.units) == len(own.units))
    assert list(stored.scores) == pytest.approx(list(own.scores))
    few = ("--methods", "leave-one-out", "--metrics", "entropy", "--json")
    code, out, err = heedful_command("trust", tmp_path / "t.csv", "-n", 3, *few, *options)
    assert code == 0, err
    assert "feature 3 of layer 3" in out


def test_without_a_model_the_one_that_the_dictionary_belongs_to_is_explained(heedful_command):
    for command, of in (("explain", ("--method", "leave-one-out")), ("compare", ("--methods", "leave-one-out"))):
        named = (command, LINES[0], *of, "--dictionary", "reviews", "--feature", 3, "--json")
        code, out, err = heedful_command(*named)
        assert code == 0, err
        own, _ = heedful_command(*named, "--model", "reviews")[1:]
        assert _scores(out) == _scores(own)


def _scores(out):
    found = json.loads(out)
    return found.get("scores") or found["explanations"][0]["scores"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--feature", 3), "--dictionary and --feature belong together; give both."),
        (("--dictionary", "DICTIONARY"), "--dictionary and --feature belong together; give both."),
        (("--dictionary", "DICTIONARY", "--feature", 40), "The dictionary has features 0 to 39; 40 was given."),
        (("--dictionary", "DICTIONARY", "--feature", 3, "--target", 1), "Give --target or --feature, not both."),
        (("--dictionary", "DICTIONARY", "--feature", 3, "--against", 1), "A feature has no other class"),
        (("--dictionary", "DICTIONARY", "--feature", 3, "--model", "writer"), "The dictionary belongs to the model"),
        (("--dictionary", "DICTIONARY", "--feature", 3, "--model", "paper"), "this model has none that can be read"),
        (("--dictionary", "nowhere", "--feature", 3), "nowhere contains no dictionary"),
    ],
)
@pytest.mark.parametrize("command", ["explain", "trust"])
def test_an_error_is_a_sentence(heedful_command, reviews_folder, texts_file, command, words, message):
    given = [reviews_folder if word == "DICTIONARY" else word for word in words]
    of = ("--file", texts_file, "-n", 2) if command == "trust" else (LINES[0],)
    code, out, err = heedful_command(command, *of, "--model", "reviews", *given)
    assert (code, out) == (2, "")
    assert message in err


def test_without_a_feature_the_target_is_as_it_was():
    assert target_of("positive", None, None) == "positive"
    with pytest.raises(BadInput, match="belong together"):
        target_of(None, None, 3)
