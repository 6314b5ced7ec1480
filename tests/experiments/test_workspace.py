import pytest
import torch

from heedful.errors import BadInput
from heedful.experiments.workspace import Desk, write_whole


def test_a_step_is_done_once(tmp_path):
    done = []

    def work():
        done.append(1)
        return {"value": 0.1, "rows": [1, 2]}

    first = Desk(tmp_path).once("a", work)
    assert Desk(tmp_path).once("a", work) == first == {"value": 0.1, "rows": [1, 2]}
    assert done == [1]


def test_a_step_gives_what_its_file_will_give(tmp_path):
    assert Desk(tmp_path).once("a", lambda: (1, 2)) == [1, 2]


def test_a_step_that_fails_leaves_nothing(tmp_path):
    def work():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Desk(tmp_path).once("a", work)
    assert Desk(tmp_path).once("a", lambda: 3) == 3


def test_tensors_are_kept(tmp_path):
    kept = {"w": torch.randn(3, 2, generator=torch.Generator().manual_seed(0)), "n": torch.tensor([1, 2])}
    assert torch.equal(Desk(tmp_path).tensors("a", lambda: kept)["w"], kept["w"])

    def never():
        raise AssertionError

    again = Desk(tmp_path).tensors("a", never)
    assert torch.equal(again["w"], kept["w"])
    assert again["n"].tolist() == [1, 2]


@pytest.mark.parametrize(("name", "ask"), [("a.json", "once"), ("a.safetensors", "tensors")])
def test_a_damaged_step_is_one_sentence(tmp_path, name, ask):
    write_whole(tmp_path / "steps" / name, b'{"va')
    with pytest.raises(BadInput, match="damaged; delete it"):
        getattr(Desk(tmp_path), ask)("a", dict)


def test_what_is_written_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file.json"
    write_whole(path, "old")
    monkeypatch.setattr(type(path), "replace", lambda self, target: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
