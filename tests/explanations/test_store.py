import random

import pandas
import pytest

import heedful
from heedful.errors import BadInput
from heedful.explanations import Explanations
from heedful.explanations.refusal import Refusal
from heedful.explanations.store import read_shard, save_folder, table_rows, write_shard
from tests.explanations.many import TEXTS, explained


def same(first, second):
    assert [getattr(item, "as_dict", lambda item=item: vars(item))() for item in first] == [
        getattr(item, "as_dict", lambda item=item: vars(item))() for item in second
    ]
    for name in ("ids", "classes", "labels", "predicted", "n_texts"):
        assert getattr(first, name) == getattr(second, name)


def test_what_is_saved_is_what_is_opened(tmp_path):
    explanations = explained()
    explanations.save(tmp_path / "a")
    same(heedful.open(tmp_path / "a"), explanations)
    explanations.save(str(tmp_path / "b"))
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_saving_again_changes_nothing_and_saving_others_is_refused(tmp_path):
    explanations = explained()
    explanations.save(tmp_path)
    explanations.save(tmp_path)
    with pytest.raises(BadInput, match="contains another run, which differs in"):
        explanations[:2].save(tmp_path)
    same(heedful.open(tmp_path), explanations)


def test_many_shards_are_joined_and_a_missing_one_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("heedful.explanations.store.TEXTS_PER_SHARD", 2)
    explanations = explained()
    save_folder(explanations, tmp_path)
    assert len([*tmp_path.glob("*.parquet")]) == (len(TEXTS) + 2) // 2
    same(heedful.open(tmp_path), explanations)
    (tmp_path / "explanations-00001.parquet").unlink()
    with pytest.raises(BadInput, match=r"explanations-00001.parquet is missing, damaged"):
        heedful.open(tmp_path)


def test_pandas_reads_a_shard(tmp_path):
    explanations = explained()
    write_shard(tmp_path / "a.parquet", table_rows(explanations), explanations.classes)
    frame = pandas.read_parquet(tmp_path / "a.parquet")
    assert frame["id"].tolist() == [*explanations.ids]
    assert frame["reason"].notna().tolist() == [item.refused for item in explanations]
    assert frame["output"].dropna().tolist() == [item.output for item in explanations if not item.refused]


def test_texts_that_utf_8_cannot_hold_come_back(tmp_path):
    refusal = Refusal("half \ud800", "a reason", "lime")
    one = Explanations((refusal,), ("0",), (), (None,), (None,), 1, (None,))
    write_shard(tmp_path / "a.parquet", table_rows(one), ())
    assert read_shard(tmp_path / "a.parquet")[0].text == "half \ud800"


def test_a_damaged_shard_is_refused_or_its_content_is_whole(tmp_path):
    explanations, path, rng = explained()[:3], tmp_path / "a.parquet", random.Random(0)
    write_shard(path, table_rows(explanations), explanations.classes)
    content, n_refused = path.read_bytes(), 0
    for case in range(200):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged if case % 4 else content[: rng.randrange(len(content))])
        try:
            same(read_shard(path), explanations)
        except BadInput:
            n_refused += 1
    assert n_refused >= 50


def test_other_parquet_files_and_folders_are_refused(tmp_path):
    pandas.DataFrame({"text": ["a"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="not written by heedful"):
        heedful.open(tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="contains no explanations"):
        heedful.open(tmp_path)
    with pytest.raises(BadInput, match="There is no file or folder"):
        heedful.open(tmp_path / "b")


def test_one_explanation_is_opened_from_its_file(tmp_path):
    explanation = explained()[0]
    explanation.save(tmp_path / "e.json")
    assert heedful.open(tmp_path / "e.json").as_dict() == explanation.as_dict()


def test_no_texts_are_saved_and_opened(tmp_path):
    none = explained()[:0]
    none.save(tmp_path)
    same(heedful.open(tmp_path), none)
