from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import heedful
from heedful.datasets import Dataset, Example
from heedful.document import Pair
from heedful.errors import BadInput
from heedful.models.classic.network import ClassicConfig
from heedful.models.classic.training import ClassicRecipe, publish_classic, train_classic
from tests.models.classic.models import KINDS
from tests.models.test_training import Contrary, Killed, Toy, weights

SIZES = {"d_e": 8, "d_hidden": 8, "T_max": 8}
RECIPE = ClassicRecipe(learning_rate=1e-2, n_epochs=6, batch_size=8)


@dataclass(frozen=True)
class Same(Dataset):
    """Does the second text name the first text's film? A pair of random names."""

    name: ClassVar[str] = "same"
    classes: ClassVar[tuple[str, ...]] = ("other", "same", "never")

    def examples(self, split):
        rng = np.random.default_rng(["train", "validation", "test"].index(split))
        rows = []
        for label in rng.integers(0, 2, size=60):
            first = rng.integers(0, 2)
            second = first if label else 1 - first
            rows.append(Example(Pair(f"we saw {'ab'[first]}", f"it was {'ab'[second]}"), int(label)))
        return rows


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_every_kind_learns_and_its_file_loads_with_its_card(encoder, attention, tmp_path):
    model, epochs = train_classic(Toy(), ClassicConfig(encoder, attention, **SIZES), RECIPE, tmp_path)
    assert epochs[-1].loss < epochs[0].loss
    card = publish_classic(model, Toy(), epochs, "heedful train toy --kind classic", tmp_path)
    assert card.test_accuracy > 0.9
    again = heedful.load(str(tmp_path))
    assert again.fingerprint == card.fingerprint
    page = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert f"classic model, {encoder} with {attention} attention" in page
    assert "heedful train toy --kind classic" in page


def test_classes_and_pairs_are_those_of_the_data(tmp_path):
    config = ClassicConfig("average", "dot", **SIZES)
    model, _ = train_classic(Same(), config, ClassicRecipe(learning_rate=1e-2, n_epochs=2), tmp_path)
    assert model.network.config.pairs
    assert model.classes == Same.classes
    assert model([Pair("we saw a", "it was a")]).shape == (1, 3)
    assert {"we", "it"} <= set(model.vocabulary.words)


def test_the_best_validation_epoch_stays(tmp_path):
    model, epochs = train_classic(Contrary(), ClassicConfig("average", **SIZES), RECIPE, tmp_path)
    best = max(epochs, key=lambda epoch: epoch.validation_accuracy)
    assert best.number < len(epochs) - 1
    rows = Contrary().examples("validation")
    right = model([row.text for row in rows]).argmax(axis=1) == [row.label for row in rows]
    assert right.mean() == pytest.approx(best.validation_accuracy)


@pytest.mark.parametrize("moment", [(0, 3), (3, 10)])
def test_a_killed_run_resumes_to_the_same_weights(tmp_path, moment):
    config, recipe = ClassicConfig(**SIZES), ClassicRecipe(n_epochs=4, batch_size=8, entropy=0.1, leak=0.1)
    whole, epochs = train_classic(Toy(), config, recipe, tmp_path / "whole")

    def kill(epoch, batch, n_batches):
        if (epoch, batch) == moment:
            raise Killed

    with pytest.raises(Killed):
        train_classic(Toy(), config, recipe, tmp_path / "killed", kill)
    resumed, again = train_classic(Toy(), config, recipe, tmp_path / "killed")
    assert weights(resumed) == weights(whole)
    assert again == epochs


def test_a_folder_of_other_settings_and_recipes_that_cannot_train_are_refused(tmp_path):
    config = ClassicConfig("average", **SIZES)
    train_classic(Toy(), config, ClassicRecipe(n_epochs=1), tmp_path)
    with pytest.raises(BadInput, match=r"recipe \(entropy\)"):
        train_classic(Toy(), config, ClassicRecipe(n_epochs=1, entropy=0.5), tmp_path)
    with pytest.raises(BadInput, match="no rationales"):
        train_classic(Toy(), config, ClassicRecipe(rationale=0.5), tmp_path / "other")
    with pytest.raises(BadInput, match="reads every word alone, so nothing can leak"):
        train_classic(Toy(), config, ClassicRecipe(leak=0.5), tmp_path / "other")
    for settings in ({"min_count": 0}, {"leak": -1.0}, {"n_epochs": 0}, {"weight_decay": -1.0}, {"device": "tpu"}):
        with pytest.raises(BadInput, match=next(iter(settings))):
            ClassicRecipe(**settings)
