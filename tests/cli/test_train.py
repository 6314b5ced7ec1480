"""`heedful train`: its help, and a run that is stopped and resumed."""

from dataclasses import fields

import pytest

import heedful
from heedful.cli.train import settings_help
from heedful.models import training
from heedful.models.classic.network import ClassicConfig
from heedful.models.classic.training import ClassicRecipe
from heedful.models.language.gpt2 import Gpt2Config
from heedful.models.language.training import Gpt2Recipe
from heedful.models.network import Config
from heedful.models.training import Recipe

SIZES = ("--n-epochs", 2, "--d-e", 4, "--d-att", 2, "--d-out", 2, "--n-heads", 1, "--T-max", 8, "--n-validation", 2)


@pytest.fixture
def reviews(tmp_path, monkeypatch):
    """A folder with a tiny IMDB."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "imdb").mkdir()
    for half in ("train", "test"):
        texts = [f"{half} {word} film {number}" for number in range(4) for word in ("good", "bad")]
        parquet.write_table(pa.table({"text": texts, "label": [1, 0] * 4}), tmp_path / "imdb" / f"{half}.parquet")
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))


def test_the_help_lists_every_setting_with_its_default(heedful_command):
    _, out, _ = heedful_command("train", "--help")
    printed = " ".join(out.split())
    for member in (Recipe, Config, ClassicRecipe, ClassicConfig, Gpt2Recipe, Gpt2Config, *heedful.datasets().values()):
        for field in fields(member):
            option = f"--{field.name.replace('_', '-')} {field.default}"
            assert option in settings_help()
            assert option in printed


@pytest.mark.slow
def test_a_run_writes_the_model_and_its_card(heedful_command, reviews, tmp_path):
    code, out, err = heedful_command("train", "imdb", "--out", tmp_path / "run", *SIZES)
    assert (code, out) == (0, "")
    assert "epoch 2: loss" in err
    assert "test accuracy" in err
    model = heedful.load(str(tmp_path / "run"))
    assert model.encode("good film").words.max() == 1
    assert "heedful train imdb" in (tmp_path / "run" / "card.md").read_text(encoding="utf-8")


def test_a_stopped_run_is_resumed_and_a_finished_one_left_alone(heedful_command, reviews, tmp_path, monkeypatch):
    run = ("train", "--out", tmp_path / "run", *SIZES)
    real = training.train

    def stopped(data, config, recipe, folder, watch):
        def watch_and_stop(epoch, batch, n_batches):
            watch(epoch, batch, n_batches)
            if epoch == 1:
                raise KeyboardInterrupt

        return real(data, config, recipe, folder, watch_and_stop)

    with monkeypatch.context() as patched:
        patched.setattr(training, "train", stopped)
        code, _, err = heedful_command(*run)
    assert code == 130
    assert "Stopped. The same command resumes" in err
    assert "Resumed after epoch 1." in heedful_command(*run)[2]
    assert "there is nothing to train" in heedful_command(*run)[2]


def test_a_language_model_is_trained_and_loads_with_its_card(heedful_command, reviews, tmp_path):
    sizes = ("--n-tokens", 280, "--T-max", 8, "--d-e", 4, "--depth", 1, "--n-heads", 1, "--n-epochs", 2)
    run = ("train", "imdb", "--kind", "gpt2", "--out", tmp_path / "run", "--n-validation", 2, *sizes)
    code, out, err = heedful_command(*run)
    assert (code, out) == (0, "")
    assert "epoch 2: loss" in err
    assert "test perplexity" in err
    assert heedful.load(str(tmp_path / "run")).outputs == "next tokens"
    assert "heedful train imdb --kind gpt2" in (tmp_path / "run" / "card.md").read_text(encoding="utf-8")
    assert "there is nothing to train" in heedful_command(*run)[2]
    code, _, err = heedful_command("train", "imdb", "--out", tmp_path / "run", "--n-validation", 2)
    assert code == 2
    assert "contains another run" in err


def test_a_classic_model_is_trained_and_loads_with_its_card(heedful_command, reviews, tmp_path):
    sizes = ("--encoder", "average", "--attention", "dot", "--d-e", 4, "--d-hidden", 4, "--n-epochs", 2)
    run = ("train", "imdb", "--kind", "classic", "--out", tmp_path / "run", "--n-validation", 2, *sizes)
    code, out, err = heedful_command(*run, "--entropy", 0.1)
    assert (code, out) == (0, "")
    assert "epoch 2: loss" in err
    assert "test accuracy" in err
    assert "average with dot attention" in repr(heedful.load(str(tmp_path / "run")))
    assert "--kind classic" in (tmp_path / "run" / "card.md").read_text(encoding="utf-8")
    assert "there is nothing to train" in heedful_command(*run, "--entropy", 0.1)[2]
    code, _, err = heedful_command(*run)
    assert code == 2
    assert "recipe (entropy)" in err
    code, _, err = heedful_command(*run[:-1], 3, "--rationale", 1, "--out", tmp_path / "other")
    assert code == 2
    assert "eraser-movies or sst" in err


def test_settings_belong_to_the_kind_that_is_named(heedful_command):
    code, _, err = heedful_command("train", "imdb", "--kind", "gpt2", "--min-count", 2)
    assert code == 2
    assert "--min-count is a setting of --kind single-layer and classic; this run is of --kind gpt2." in err
    for option in ("--diversity", "--leak"):
        code, _, err = heedful_command("train", "imdb", option, 0.1)
        assert code == 2
        assert f"{option} is a setting of --kind classic; this run is of --kind single-layer." in err
    code, _, err = heedful_command("train", "imdb", "--entropi", 0.1)
    assert code == 2
    assert "There is no setting 'entropi'; did you mean 'entropy'?" in err
    code, _, err = heedful_command("train", "eraser-movies", "--duplicates", "drop")
    assert code == 2
    assert "There is no setting 'duplicates'" in err


def test_settings_belong_to_the_data_set_that_is_named(heedful_command):
    code, _, err = heedful_command("train", "sst2", "--duplicates", "drop")
    assert code == 2
    assert "There is no setting 'duplicates'" in err
