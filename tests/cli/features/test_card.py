"""`heedful features card` as a user types it."""

import json


def test_the_card_is_printed(heedful_command, reviews_folder, reviews_dictionary):
    code, out, _ = heedful_command("features", "card", reviews_folder)
    assert code == 0
    assert out.rstrip() == (reviews_folder / "card.md").read_text(encoding="utf-8").rstrip()
    assert json.loads(heedful_command("features", "card", reviews_folder, "--json")[1])["layer"] == 3


def test_no_dictionary_is_a_sentence(heedful_command, tmp_path):
    code, _, err = heedful_command("features", "card", tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert "contains no dictionary" in err
