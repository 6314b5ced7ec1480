"""`heedful features train` as a user types it."""

from dataclasses import fields

import pytest

import heedful
from heedful.cli.features.train import TrainFeaturesCommand
from heedful.features.autoencoder import kinds
from heedful.features.training import TrainingPlan

TINY = ("--width", 8, "--k", 2, "--n-rows", 200, "--batch-size", 50, "--n-held-out", 1)


def test_the_help_lists_every_setting_with_its_default(heedful_command):
    printed = " ".join(heedful_command("features", "train", "--help")[1].split())
    for member in (TrainingPlan, *kinds().values()):
        for field in fields(member):
            assert f"--{field.name.replace('_', '-')} {field.default}" in printed


def test_a_dictionary_is_trained_measured_and_kept(heedful_command, texts_file, tmp_path):
    run = ("features", "train", "reviews", "--texts", texts_file, "--layer", 2, *TINY, "--out", tmp_path / "run")
    code, out, err = heedful_command(*run)
    assert (code, out) == (0, "")
    assert "that enters layer 2: texts.txt, 18 tokens of 4 texts" in err
    assert "200 of 200 rows: loss" in err
    assert "Held out: " in err
    assert f"Wrote {tmp_path / 'run'}" in err
    dictionary = heedful.features.load(tmp_path / "run", heedful.load("reviews"))
    assert (dictionary.width, dictionary.card.layer, dictionary.card.model_name) == (8, 2, "reviews")
    assert dictionary.card.settings["k"] == 2
    assert dictionary.card.command.startswith("heedful features train reviews --texts")
    own = heedful.features.train("reviews", 2, texts_file, 8, k=2, n_rows=200, batch_size=50, n_held_out=1)
    assert own.fingerprint == dictionary.fingerprint
    assert own.card.metrics == dictionary.card.metrics


def test_ctrl_c_says_how_it_goes_on(heedful_command, texts_file, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("heedful.features.train", stopped, raising=False)
    code, _, err = heedful_command("features", "train", "reviews", "--texts", texts_file, "--out", tmp_path / "run")
    assert code == 130
    assert err == "heedful: stopped; the same command resumes after the last finished chunk.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--layer", 9), "The model has layers 0 to 5; layer 9 was given."),
        (("--layer", "x"), "--layer must be a whole number"),
        (("--width", 0), "The width must be a whole number of at least 1; 0 was given."),
        (("--kind", "topp"), "did you mean 'topk'?"),
        (("--learning-rat", 1), "did you mean 'learning_rate'?"),
        (("--progress", 1), "There is no setting 'progress'"),
        (("--k", "many"), "k must be a number; 'many' was given"),
        (("writer",), "Name one model first, such as reviews; 2 were given: 'reviews', 'writer'."),
        (("--width", 100), "100 features need at least as many rows of activations"),
        (("--label-column", "y"), "text, label and id are names of columns"),
        (("--device", "abacus"), "This machine has no device 'abacus'"),
    ],
)
def test_an_error_is_a_sentence(heedful_command, texts_file, tmp_path, words, message):
    run = ("features", "train", "reviews", "--texts", texts_file, *TINY, "--out", tmp_path / "run", *words)
    code, out, err = heedful_command(*run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not (tmp_path / "run").exists()


def test_a_model_must_be_named_and_must_have_layers(heedful_command, texts_file):
    assert "Name one model first" in heedful_command("features", "train", "--texts", texts_file)[2]
    code, _, err = heedful_command("features", "train", "paper", "--texts", texts_file)
    assert code == 2
    assert "The model has no layers whose activations can be read" in err
    assert TrainFeaturesCommand.settings_help
