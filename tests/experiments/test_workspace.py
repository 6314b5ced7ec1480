import json

import pytest
import torch

import heedful
from heedful.errors import BadInput
from heedful.experiments.workspace import Workspace
from heedful.models.transformer_file import save_transformer
from tests.families import build


def test_a_step_is_done_once(tmp_path):
    done = []

    def work():
        done.append(1)
        return {"value": 0.1, "rows": [1, 2]}

    first = Workspace(tmp_path).step("a", work)
    assert Workspace(tmp_path).step("a", work) == first == {"value": 0.1, "rows": [1, 2]}
    assert done == [1]


def test_a_step_gives_what_its_file_will_give(tmp_path):
    assert Workspace(tmp_path).step("a", lambda: (1, 2)) == [1, 2]


def test_a_step_that_fails_leaves_nothing(tmp_path):
    def work():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Workspace(tmp_path).step("a", work)
    assert Workspace(tmp_path).step("a", lambda: 3) == 3


def test_tensors_are_kept(tmp_path):
    kept = {"w": torch.randn(3, 2, generator=torch.Generator().manual_seed(0)), "n": torch.tensor([1, 2])}
    assert torch.equal(Workspace(tmp_path).tensors("a", lambda: kept)["w"], kept["w"])

    def never():
        raise AssertionError

    again = Workspace(tmp_path).tensors("a", never)
    assert torch.equal(again["w"], kept["w"])
    assert again["n"].tolist() == [1, 2]


@pytest.mark.parametrize(("name", "method"), [("a.json", "step"), ("a.safetensors", "tensors")])
def test_a_damaged_step_is_one_sentence(tmp_path, name, method):
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / name).write_bytes(b'{"va')
    with pytest.raises(BadInput, match="damaged; delete it"):
        getattr(Workspace(tmp_path), method)("a", dict)


def test_the_model_is_the_bundled_one_or_any_single_layer(tmp_path, tiny, paper):
    assert Workspace(tmp_path).model.fingerprint == paper.fingerprint
    tiny.save(tmp_path / "model.safetensors", {})
    assert Workspace(tmp_path, model_name=str(tmp_path)).model.vocabulary == tiny.vocabulary
    save_transformer(build("transformer"), tmp_path / "deep.safetensors")
    with pytest.raises(BadInput, match="explain single-layer models; .*deep.safetensors' is not one"):
        Workspace(tmp_path, model_name=str(tmp_path / "deep.safetensors")).model  # noqa: B018


def test_figures_can_be_made_of_another_model(tmp_path, tiny):
    """Before, reproduce explained the bundled model whatever was asked."""
    tiny.save(tmp_path / "model.safetensors", {})
    asked = {"quick": True, "text": "good film , not bad", "model": str(tmp_path / "model.safetensors")}
    (outcome,) = heedful.reproduce(["figure-3"], tmp_path / "run", **asked)
    assert outcome.failed is None
    assert outcome.command.endswith(f"--model {asked['model']}")
    settings = json.loads((tmp_path / "run" / "figure-3" / "settings.json").read_text())
    assert asked["model"] in str(settings)
    with pytest.raises(BadInput):
        heedful.reproduce(["figure-3"], tmp_path / "run", quick=True, text=asked["text"])
