"""`heedful features cache` as a user types it."""

import heedful
from heedful.features.cached import CachedSource


def test_the_activations_are_those_that_the_training_reads(heedful_command, texts_file, tmp_path):
    rows, held_out = tmp_path / "rows", ("--n-held-out", 1)
    words = ("reviews", "--texts", texts_file, "--layer", 2, *held_out)
    code, out, err = heedful_command("features", "cache", *words, "--dtype", "bfloat16", "--out", rows)
    assert (code, out) == (0, "")
    assert "layer 2, 18 rows of 256 dimensions, 0.0 MB. Left out: special tokens (4)." in err
    assert CachedSource(rows).n_rows == 18
    before = (rows / "shards" / "00000.safetensors").stat().st_mtime_ns
    tiny = ("--width", 8, "--k", 2, "--n-rows", 200, "--batch-size", 50, *held_out)
    code, _, err = heedful_command("features", "train", *words, *tiny, "--activations", rows, "--out", tmp_path / "run")
    assert code == 0, err
    assert (rows / "shards" / "00000.safetensors").stat().st_mtime_ns == before
    assert heedful.features.load(tmp_path / "run").width == 8
    code, _, err = heedful_command("features", "train", "writer", *words[1:], *tiny, "--activations", rows)
    assert code == 2
    assert "contains another run, which differs in data, model (" in err


def test_an_unknown_option_is_a_sentence(heedful_command, texts_file, tmp_path):
    words = ("reviews", "--texts", texts_file, "--out", tmp_path / "rows", "--layr", 2)
    code, _, err = heedful_command("features", "cache", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert "No such option: --layr" in err
    assert not (tmp_path / "rows").exists()
