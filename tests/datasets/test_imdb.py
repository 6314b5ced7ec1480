import pyarrow as pa
import pytest
from pyarrow import parquet

from heedful.datasets.imdb import Imdb
from heedful.errors import BadInput, Offline


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Ten training and six test reviews, with repeats inside and across the halves."""
    (tmp_path / "imdb").mkdir()
    train = [f"review {n}" for n in range(8)] + ["twice", "twice"]
    test = ["fresh", "review 3", "again", "again", "last", "final"]
    for half, texts in (("train", train), ("test", test)):
        table = pa.table({"text": texts, "label": [len(text) % 2 for text in texts], "rating": [5] * len(texts)})
        parquet.write_table(table, tmp_path / "imdb" / f"{half}.parquet")
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    return tmp_path


def test_the_training_half_is_split_by_its_seed(small):
    data = Imdb(n_validation=3)
    train, validation = data.examples("train"), data.examples("validation")
    assert (len(train), len(validation)) == (7, 3)
    assert sorted(e.text for e in (*train, *validation)) == sorted(
        [*(f"review {n}" for n in range(8)), "twice", "twice"]
    )
    assert train == Imdb(n_validation=3).examples("train")
    assert train != Imdb(n_validation=3, split_seed=1).examples("train")


def test_duplicates_are_kept_or_dropped(small):
    kept, dropped = Imdb(), Imdb(duplicates="drop", n_validation=1)
    assert len(kept.examples("test")) == 6
    assert [e.text for e in dropped.examples("test")] == ["fresh", "again", "last", "final"]
    assert len(dropped.examples("train")) == 8


def test_a_folder_without_the_files_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    with pytest.raises(BadInput, match="HEEDFUL_DATA names a folder without imdb/train.parquet"):
        Imdb().examples("train")


def test_a_file_that_is_no_parquet_is_one_sentence(small):
    (small / "imdb" / "test.parquet").write_bytes(b"not parquet")
    with pytest.raises(BadInput, match="test.parquet cannot be read as parquet"):
        Imdb().examples("test")


def test_without_a_folder_and_without_the_hub_it_says_so(monkeypatch, tmp_path):
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def unreachable(*arguments, **settings):
        assert arguments[0] == "stanfordnlp/imdb"
        raise LocalEntryNotFoundError("offline")

    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", unreachable)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url: unreachable("stanfordnlp/imdb"))
    with pytest.raises(Offline, match="the hub cannot be reached"):
        Imdb().examples("test")


def test_the_real_reviews_have_the_published_sizes_and_repeats(data_folder):
    data = Imdb()
    train, validation, test = (data.examples(split) for split in ("train", "validation", "test"))
    assert (len(train), len(validation), len(test)) == (20_000, 5_000, 25_000)
    assert sum(e.label for e in test) == 12_500
    seen = {e.text for e in (*train, *validation)}
    assert 25_000 - len(seen) == 96
    assert 25_000 - len({e.text for e in test}) == 199
    assert len({e.text for e in test} & seen) == 123
