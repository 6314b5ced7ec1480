import json

import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.experiments import workspace as workspaces
from heedful.experiments.workspace import Workspace
from heedful.models.transformer_file import save_transformer
from tests.families import build, network_of


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


def test_the_model_is_the_bundled_one_or_any_with_attention_and_gradients(tmp_path, tiny, paper):
    assert Workspace(tmp_path).model.fingerprint == paper.fingerprint
    tiny.save(tmp_path / "model.safetensors", {})
    own = Workspace(tmp_path, model_name=str(tmp_path))
    assert own.single_layer.vocabulary == tiny.vocabulary
    assert (own.is_single_layer, own.target) == (True, "positive")
    deep = Workspace(tmp_path, model_name=saved("transformer", tmp_path / "deep"))
    assert (deep.is_single_layer, deep.target, len(deep.model.classes)) == (False, None, 3)
    with pytest.raises(Unsupported, match="about the paper's single layer"):
        deep.single_layer  # noqa: B018


def test_a_model_of_images_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(workspaces, "load", lambda *_: build("vit"))
    with pytest.raises(BadInput, match="explain texts, which 'eyes' does not read"):
        heedful.reproduce(["figure-3"], tmp_path / "run", quick=True, model="eyes")
    assert not (tmp_path / "run").exists()


def saved(family, folder):
    """The name of a folder with the family's tiny model."""
    folder.mkdir()
    if family == "transformer":
        save_transformer(build(family), folder / "model.safetensors")
    else:
        network, tokenizer = network_of(family)
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


OF_ANY_MODEL = ["figure-2", "figure-3", "figure-5", "attention-maps", "attention-and-gradient"]


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("transformer", [*OF_ANY_MODEL, "figure-1", "figure-4", "appendix-e", "lime-step-by-step"]),
        ("bert", OF_ANY_MODEL),
        ("gpt2", OF_ANY_MODEL),
    ],
)
def test_every_figure_can_be_made_of_a_model_of_another_kind(family, names, tmp_path):
    """Measured and drawn, not written: rendering takes most of the time."""
    workspace = Workspace(
        tmp_path, text="the film was good , not bad", model_name=saved(family, tmp_path / "model"), seed=1
    )
    for name in names:
        experiment = heedful.experiments()[name]()
        assert experiment.takes_model
        numbers = experiment.measure(workspace)
        assert experiment.draw(numbers)
        claims = experiment.claims(numbers)
        assert all(claim.why for claim in claims if claim.verdict == "not measured")
        # What holds of every model holds of this one.
        assert not [claim for claim in claims if claim.verdict == "differs" and claim.general]


def test_what_needs_the_single_layer_says_so_in_one_sentence(tmp_path):
    names = ["lime-and-theorem", "lemma-d2", "embeddings"]
    outcomes = heedful.reproduce(names, tmp_path / "run", quick=True, model=saved("transformer", tmp_path / "model"))
    assert ["single layer" in outcome.failed for outcome in outcomes] == [True] * 3
    assert not any(outcome.applies for outcome in outcomes)


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
