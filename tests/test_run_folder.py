import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import save_file

from heedful.errors import BadInput, CannotWrite
from heedful.run_folder import (
    RunFolder,
    path_of,
    read_tensors,
    sealed,
    unsealed,
    write_atomically,
    write_file,
    write_tensors,
)


@contextmanager
def full_disk(n_bytes):
    """Inside this context no file can be made longer: the error is the system's own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("given", [None, 5, "a" * 5000])
def test_what_is_no_path_is_refused(given):
    with pytest.raises(BadInput, match="A path is text or a Path|cannot be a path: File name too long"):
        path_of(given)


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
    write_atomically(folder.path / "steps" / "one.json", "{}")
    folder.claim({"seed": 0, "device": "cuda"}, ignored=["device"])
    with pytest.raises(
        BadInput, match=r"differs in device \('cpu' there, 'cuda' here\), seed \(0 there, 1 here\); choose"
    ):
        folder.claim({"seed": 1, "device": "cuda"})
    (tmp_path / "run" / "settings.json").write_text("{")
    with pytest.raises(BadInput, match="damaged"):
        folder.claim({"seed": 0})


def test_a_difference_within_a_setting_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    folder.claim({"plan": {"n": 1, "rate": 2}, "data": "a" * 50})
    write_atomically(folder.path / "state", "")
    with pytest.raises(BadInput, match=r"differs in data, plan \(n\); choose"):
        folder.claim({"plan": {"n": 2, "rate": 2}, "data": "b" * 50})


def test_a_folder_without_results_takes_other_settings(tmp_path):
    folder = RunFolder(tmp_path)
    folder.claim({"seed": 0})
    folder.claim({"seed": 1})
    assert folder.settings() == {"seed": 1}


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
    assert [unsealed(line) for line in path.read_text().splitlines()] == [{"a": 1}, {"a": 2}]
    path.write_text(path.read_text().replace('"a": 2', '"a": 3'))
    with pytest.raises(BadInput, match="Line 2"):
        list(folder.rows("rows.jsonl"))
    path.write_text('{"a": 1}\nnonsense\n')
    with pytest.raises(BadInput, match="Line 2"):
        list(folder.rows("rows.jsonl"))


@pytest.mark.parametrize(
    "content",
    ["x" * 5000, b"x" * 5000, lambda file: save_file({"w": torch.zeros(5000)}, file)],
    ids=["text", "bytes", "tensors"],
)
@pytest.mark.parametrize("write", [write_atomically, write_file])
def test_a_full_disk_leaves_the_old_file_and_ends_in_a_sentence(tmp_path, write, content):
    path = tmp_path / "file"
    path.write_text("old")
    with full_disk(1000), pytest.raises(CannotWrite, match="file cannot be written: .*too large"):
        write(path, content)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_row_that_does_not_fit_is_a_sentence_and_the_rows_before_it_stay(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append("rows.jsonl", {"a": 1})
    with full_disk(1000), pytest.raises(CannotWrite, match="rows.jsonl cannot be written"):
        folder.append("rows.jsonl", {"a": "x" * 5000})
    assert list(folder.rows("rows.jsonl")) == [{"a": 1}]


def test_a_named_file_keeps_its_permissions_its_link_and_its_folder(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_file(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CannotWrite, match="No such file or directory"):
        write_file(tmp_path / "none" / "file", "new")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "content")
    assert os.read(reader, 100) == b"content"
    assert pipe.is_fifo()
    os.close(reader)


_HOLD = """
import sys, time
from pathlib import Path
from heedful.run_folder import RunFolder
with RunFolder(Path(sys.argv[1])).alone():
    print("in", flush=True)
    time.sleep(60)
"""


def test_a_second_run_in_a_folder_is_refused_and_a_killed_one_does_not_block(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "in\n"
    with pytest.raises(BadInput, match="Another run works in"), RunFolder(tmp_path).alone():
        pass
    (tmp_path / "left.1-2.new").write_text("half")
    other.send_signal(signal.SIGKILL)
    other.wait()
    other.stdout.close()
    with RunFolder(tmp_path).alone():
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(BadInput, match="Another run works in"), RunFolder(tmp_path).alone():
            pass
    with RunFolder(tmp_path).alone():
        pass


def test_what_was_changed_is_refused_and_what_was_written_before_is_read(tmp_path):
    text = sealed({"b": [1.5, None], 3: "ü\ud800"})
    assert unsealed(text) == {"b": [1.5, None], "3": "ü\ud800"}
    with pytest.raises(ValueError, match="checksum"):
        unsealed(text.replace("1.5", "1.25"))
    assert unsealed('{"a": 1}') == {"a": 1}
    folder = RunFolder(tmp_path)
    (tmp_path / "steps").mkdir()
    for name, old in (("list", "[1, 2]"), ("dictionary", '{"result": 3}')):
        (tmp_path / "steps" / f"{name}.json").write_text(old)
        assert folder.step(name, dict) == json.loads(old)
    folder.step("new", lambda: [1, 2])
    path = tmp_path / "steps" / "new.json"
    path.write_text(path.read_text().replace("1, 2", "1, 3"))
    with pytest.raises(BadInput, match="new.json is damaged; delete it"):
        folder.step("new", list)


def test_tensors_have_a_checksum_of_every_bit_and_of_the_metadata(tmp_path):
    path = tmp_path / "a.safetensors"
    tensors = {"w": torch.arange(6.0).view(2, 3).bfloat16(), "n": torch.tensor(3), "none": torch.zeros(0, 2)}
    write_tensors(path, tensors, {"about": "them"})
    again, metadata = read_tensors(path)
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())
    assert metadata["about"] == "them"
    for changed, about in (({**tensors, "n": torch.tensor(4)}, metadata), (tensors, {**metadata, "about": "it"})):
        save_file(changed, path, about)
        with pytest.raises(ValueError, match="checksum"):
            read_tensors(path)
    save_file(tensors, path, {"about": "them"})
    assert read_tensors(path)[1] == {"about": "them"}


def test_the_same_tensors_and_metadata_are_the_same_bytes(tmp_path):
    metadata = {"words": 'é\u2028\x7f\x01\n"\\/😀', **{name: name for name in "abcdefgh"}}
    for number in range(8):
        write_tensors(tmp_path / str(number), {"w": torch.arange(3.0), "v": torch.zeros(2, 2)}, metadata)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    tensors, about = read_tensors(tmp_path / "0")
    assert tensors["w"].tolist() == [0.0, 1.0, 2.0]
    assert {name: about[name] for name in metadata} == metadata
