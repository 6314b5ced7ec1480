import json

import pytest
import torch

from heedful.errors import BadInput
from heedful.run_folder import RunFolder, write_atomically


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_atomically(path, "old")

    def broken(temporary):
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, broken)
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["file.txt"]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_folder_of_another_run_is_refused_with_the_difference(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.claim({"seed": 0, "device": "cpu"})
    folder.claim({"seed": 0, "device": "cpu"})
    folder.claim({"seed": 0, "device": "cuda"}, ignored=["device"])
    with pytest.raises(BadInput, match="differs in device, seed"):
        folder.claim({"seed": 1, "device": "cuda"})
    (tmp_path / "run" / "settings.json").write_text("{")
    with pytest.raises(BadInput, match="damaged"):
        folder.claim({"seed": 0})


def test_a_step_is_done_once(tmp_path):
    calls = []

    def work():
        calls.append(1)
        return {"values": (1.5, 2.5)}

    for _ in range(2):
        assert RunFolder(tmp_path).step("first", work) == {"values": [1.5, 2.5]}
    assert calls == [1]
    tensors = RunFolder(tmp_path).tensors("weights", lambda: {"w": torch.arange(3.0)})
    assert torch.equal(tensors["w"], torch.arange(3.0))
    (tmp_path / "steps" / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="delete it to repeat the step"):
        RunFolder(tmp_path).tensors("weights", dict)


def test_a_row_that_a_kill_cut_short_is_cut_off(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append("rows.jsonl", {"a": 1})
    folder.append("rows.jsonl", {"a": 2})
    path = tmp_path / "rows.jsonl"
    path.write_bytes(path.read_bytes() + b'{"a": ')
    assert list(folder.rows("rows.jsonl")) == [{"a": 1}, {"a": 2}]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"a": 1}, {"a": 2}]
    path.write_text('{"a": 1}\nnonsense\n')
    with pytest.raises(BadInput, match="Line 2"):
        list(folder.rows("rows.jsonl"))
