"""The topic task: a small run of it, and what its claims say of planted numbers."""

import numpy as np
import pytest

from heedful.datasets import topics as topics_data
from heedful.experiments.toy_tasks.uniform_on_topics import UniformOnTopics, _Task
from heedful.experiments.workspace import Workspace

KINDS = ("learned", "uniform", "random, frozen")
BEST = {"accuracy": 0.66, "loss": 0.9, "blind": 2.3}


def row(attention, seed, excess, accuracy=0.65, same=0.2, other=0.0):
    shift = 0.001 * seed
    return {
        "attention": attention,
        "seed": seed,
        "accuracy": accuracy + shift,
        "excess": excess + shift,
        "from uniform": 0.1 + shift,
        "same topic": same + shift,
        "other topics": other - shift,
    }


def verdicts(**changes):
    excess = {"learned": 0.1, "uniform": 0.1, "random, frozen": 0.12, **changes}
    models = [row(kind, seed, excess[kind]) for kind in KINDS for seed in range(3)]
    return [claim.verdict for claim in UniformOnTopics().claims({"models": models, "best": [BEST]})]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The quick form with a tenth of the texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topics_data, "_SIZES", {"train": 300, "validation": 10, "test": 100})
        workspace = Workspace(tmp_path_factory.mktemp("topics"))
        numbers = UniformOnTopics().measure(workspace)
        assert UniformOnTopics().measure(workspace) == numbers, "every model is a step that is kept"
    return numbers


def test_every_kind_of_attention_is_trained_with_every_seed(run):
    assert [(model["attention"], model["seed"]) for model in run["models"]] == [(k, s) for s in range(3) for k in KINDS]
    assert all(model["from uniform"] == 0 for model in run["models"] if model["attention"] == "uniform")
    assert all(model["from uniform"] > 0 for model in run["models"] if model["attention"] != "uniform")
    assert all(0 < model["excess"] < 2.3 for model in run["models"]), "above the best, and better than nothing"


def test_the_best_possible_loss_is_the_mean_entropy_of_the_best_probabilities(run):
    data = topics_data.Topics()
    texts = [example.text for example in data.examples("test")]
    entropies = [-(p * np.log(p)).sum() for p in data.best(texts)[:100]]
    task = _Task(data, [], data.examples("test")[:100], 1)
    assert task.optimum()["loss"] == pytest.approx(np.mean(entropies))
    assert task.optimum()["blind"] == pytest.approx(np.log(10))
    assert 0.5 < run["best"][0]["loss"] < 1.3


def test_uniform_attention_agrees_with_the_source_only_near_the_optimum_and_near_learned_attention():
    assert verdicts() == ["agrees", "agrees", "new", "agrees"]
    assert verdicts(uniform=0.4) == ["differs", "differs", "new", "agrees"]
    assert verdicts(uniform=0.4, learned=0.4) == ["differs", "agrees", "new", "agrees"]


def test_word_vectors_without_topics_differ_from_the_source():
    models = [row(kind, seed, 0.1, same=0.0, other=0.1) for kind in KINDS for seed in range(3)]
    assert UniformOnTopics().claims({"models": models, "best": [BEST]})[3].verdict == "differs"


def test_the_figure_shows_every_model_and_the_best_possible(run):
    right, excess = UniformOnTopics().draw(run)["topics"].axes
    shown = sorted(float(x) for line in right.lines if line.get_marker() == "o" for x in line.get_xdata())
    assert shown == pytest.approx(sorted(100 * model["accuracy"] for model in run["models"]))
    assert any(line.get_linestyle() == "--" and line.get_xdata()[0] == 0 for line in excess.lines)
