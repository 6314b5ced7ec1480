"""`heedful locate` as a user types it."""

import json

import pytest

import heedful

TEXTS = ("a fine film , but too long", "a dull film , but too long")


def test_the_json_is_what_python_gives(heedful_command):
    code, out, _ = heedful_command("locate", *TEXTS, "--part", "mlp", "--unit", "word", "--json")
    assert code == 0
    location = heedful.locate(heedful.load("reviews"), *TEXTS, part="mlp", unit="word")
    assert json.loads(out) == json.loads(json.dumps(location.as_dict()))


def test_the_map_is_printed_and_written(heedful_command, tmp_path):
    code, out, err = heedful_command("locate", *TEXTS, "--target", "positive", "--out", tmp_path / "map.png")
    assert code == 0
    assert "fine / dull" in out
    assert f"Wrote {tmp_path / 'map.png'}" in err
    assert (tmp_path / "map.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((TEXTS[0], TEXTS[0]), "Both prompts are the same"),
        ((*TEXTS, "--target", "funny"), "There is no class 'funny'"),
        ((*TEXTS, "--part", "head"), "There is no part 'head'"),
        ((*TEXTS, "--model", "paper"), "whose layers can be replaced"),
    ],
)
def test_an_error_is_a_sentence(heedful_command, words, message):
    code, _, err = heedful_command("locate", *words)
    assert code == 2
    assert message in err
