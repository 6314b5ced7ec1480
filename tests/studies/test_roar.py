"""The study of ROAR on IMDB: packed reviews are those that the model reads, and the run has the options."""

import pytest

import heedful
from heedful.datasets.imdb import Imdb
from heedful.errors import BadInput
from studies.roar import SPLITS, main, unpack
from tests.planted import Planted


def test_packed_reviews_are_cut_where_the_model_stops_and_the_study_passes_on_its_options(
    tmp_path, monkeypatch, tiny, capsys
):
    monkeypatch.setattr(Imdb, "examples", lambda self, split: Planted(n=5).examples(split))
    monkeypatch.setattr(heedful, "load", lambda name: tiny)
    main(["--pack", str(tmp_path / "imdb.jsonl.xz")])
    data = unpack(tmp_path / "imdb.jsonl.xz")
    for split in SPLITS:
        assert data.examples(split) == Planted(n=5).examples(split)
    asked = []
    monkeypatch.setattr(heedful, "roar", lambda *args, **settings: asked.append((args, settings)))
    main(["--reviews", str(tmp_path / "imdb.jsonl.xz"), "--at-once", "92", "--seeds", "2", "--out", "runs/roar"])
    ((retrainer, again), settings) = asked[0]
    assert (retrainer.at_once, again, settings["seeds"], settings["mode"]) == (92, data, 2, "both")
    with pytest.raises(BadInput, match="no device"):
        main(["--device", "tpu"])
