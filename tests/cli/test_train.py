"""`heedful train`: its help, and a run that is stopped and resumed."""

from dataclasses import fields

import pytest

import heedful
from heedful.cli.train import _KINDS, _parts_of, settings_help
from heedful.models import training
from heedful.models.classic.network import ClassicConfig
from heedful.models.classic.training import ClassicRecipe
from heedful.models.language.gpt2 import Gpt2Config
from heedful.models.language.training import Gpt2Recipe
from heedful.models.network import Config
from heedful.models.switched.config import TransformerConfig
from heedful.models.switched.training import TransformerRecipe
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
    for member in (
        Recipe,
        Config,
        TransformerRecipe,
        TransformerConfig,
        ClassicRecipe,
        ClassicConfig,
        Gpt2Recipe,
        Gpt2Config,
        *heedful.datasets().values(),
    ):
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


def test_a_transformer_is_trained_on_a_file_of_the_user_and_loads(heedful_command, tmp_path):
    rows = [
        f"a {word} film {number},{label}" for number in range(20) for word, label in (("good", "yes"), ("bad", "no"))
    ]
    (tmp_path / "mine.csv").write_text("\n".join(["comment,liked", *rows]), encoding="utf-8")
    sizes = ("--depth", 2, "--d-e", 4, "--d-att", 2, "--d-out", 2, "--n-heads", 1, "--T-max", 8, "--n-epochs", 1)
    columns = ("--text-column", "comment", "--label-column", "liked")
    run = ("train", tmp_path / "mine.csv", *columns, "--out", tmp_path / "run")
    code, out, err = heedful_command(*run, "--kind", "transformer", "--padding", "hidden", *sizes)
    assert (code, out) == (0, "")
    assert "test accuracy" in err
    model = heedful.load(str(tmp_path / "run"))
    assert model.classes == ("no", "yes")
    assert "transformer of 2 layers × 1 heads" in repr(model)
    (tmp_path / "lines.txt").write_text("\n".join(rows), encoding="utf-8")
    lines = ("train", tmp_path / "lines.txt", "--out", tmp_path / "other", "--T-max", 8, "--d-e", 4, "--n-epochs", 1)
    code, _, err = heedful_command(*lines, "--kind", "gpt2", "--n-tokens", 280, "--depth", 1, "--n-heads", 1)
    assert code == 0
    assert "test perplexity" in err
    for command, sentence in (
        ((*lines, "--kind", "transformer"), "lines.txt has labels of 0 classes"),
        (lines, "lines.txt has labels of 0 classes; n_classes is 2"),
        (("train", "imdb", "--text-column", "comment"), "There is no setting 'text_column'"),
        (("train", tmp_path / "none.csv"), "none.csv cannot be read"),
        ((*run[:2], "--label-column", "like"), "There is no column 'like'; did you mean 'liked'"),
        ((*run, "--kind", "transformer", "--depth", 0), "at least one layer"),
    ):
        code, _, err = heedful_command(*command)
        assert code == 2
        assert sentence in " ".join(err.split())


def test_no_setting_of_a_data_set_is_one_of_a_model_too():
    for kind in _KINDS:
        of_models = {field.name for member in _parts_of(kind)[:2] for field in fields(member)}
        for name, dataset in heedful.datasets().items():
            assert not of_models & {field.name for field in fields(dataset)}, (kind, name)


def test_settings_belong_to_the_kind_that_is_named(heedful_command):
    code, _, err = heedful_command("train", "imdb", "--kind", "gpt2", "--min-count", 2)
    assert code == 2
    assert (
        "--min-count is a setting of --kind single-layer, transformer and classic; this run is of --kind gpt2." in err
    )
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
