"""`heedful roar` as a newcomer types it, good and bad."""

import json

import numpy as np
import pytest

import heedful
from tests.planted import CONFIG, VOCABULARY, Planted


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with a small model and a table of labelled texts."""
    from heedful.models.network import Network
    from heedful.models.single_layer import SingleLayer
    from heedful.models.training import initial_weights

    monkeypatch.chdir(tmp_path)
    model = SingleLayer(Network(CONFIG, initial_weights(CONFIG, len(VOCABULARY), 5)), VOCABULARY, Planted.classes)
    model.save(tmp_path / "model.safetensors", {})
    rows = [(example.text, Planted.classes[example.label]) for example in Planted(n=60).examples("train")]
    for name, own in (("texts.csv", rows[:45]), ("more.csv", rows[45:])):
        (tmp_path / name).write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in own))
    return tmp_path


QUICK = ("texts.csv", "--model", "model.safetensors", "--methods", "leave-one-out", "--shares", "0.5", "--seeds", "1")
QUICK = (*QUICK, "--n-epochs", "1", "--batch-size", "10")


def test_a_table_of_texts_gives_a_folder_with_page_picture_and_numbers(heedful_command, files):
    code, shown, said = heedful_command(
        "roar", *QUICK, "--test", "more.csv", "--mode", "both", "--out", "out", "--at-once", "9"
    )
    assert code == 0, said
    assert "remove and retrain" in shown
    assert "keep and retrain" in shown
    assert "Wrote report.html, roar.svg, results.json in out" in said
    result = heedful.RoarCurves.load(files / "out" / "results.json")
    assert (result.n_test, result.methods, result.shares) == (15, ("random", "leave-one-out"), (0.0, 0.5))
    assert all((files / "out" / name).stat().st_size > 1000 for name in ("report.html", "roar.svg"))
    code, shown, _ = heedful_command("roar", *QUICK, "--test", "more.csv", "--mode", "both", "--out", "out", "--json")
    assert code == 0
    assert np.array_equal(json.loads(shown)["accuracies"], result.accuracies)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("texts.csv", "--shares", "a,b"),
            "--shares are numbers separated by commas, such as 0,0.5,1; 'a,b' was given.",
        ),
        (("texts.csv", "--at-once", "0"), "--at-once must be a whole number of at least 1; 0 was given."),
        (("texts.csv", "--mode", "both-ways"), "--mode must be one of remove, keep, both; 'both-ways' was given."),
        (("texts.csv", "--shares", "2"), "shares must be numbers from 0 to 1"),
        (("texts.csv", "--n-epoch", "2"), "There is no setting 'n_epoch'"),
        (("texts.csv", "--n-epochs", "0"), "n_epochs must be above 0"),
        (("texts.csv", "--imputation", "zero"), "There is no imputation 'zero'"),
        (("sst-9",), "There is no data set 'sst-9'"),
        (("none.csv",), "none.csv"),
        (("texts.csv", "--model", "reviews"), "trained elsewhere"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(heedful_command, files, words, message):
    model = () if "--model" in words else ("--model", "model.safetensors")
    code, _, said = heedful_command("roar", *words, *model, "--methods", "random")
    assert (code, message in said, said.count("\n")) == (2, True, 1), said
