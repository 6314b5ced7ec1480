"""What all trainings of word models share; how they learn and resume is tested with each of them."""

import pytest

from heedful.errors import BadInput
from heedful.models.classic.training import ClassicRecipe
from heedful.models.fitting.word_models import train_word_model
from heedful.models.switched.training import TransformerRecipe
from tests.models.test_training import Toy


def test_the_weights_of_losses_are_those_that_a_recipe_has():
    assert TransformerRecipe(entropy=0.1).penalties == {"entropy": 0.1, "rationale": 0.0}
    assert ClassicRecipe(leak=0.1).penalties == {"entropy": 0.0, "rationale": 0.0, "diversity": 0.0, "leak": 0.1}


@pytest.mark.parametrize("name", ["min_count", "n_epochs", "batch_size", "learning_rate"])
def test_a_recipe_with_nothing_to_do_is_refused(name):
    with pytest.raises(BadInput, match=f"{name} must be above 0"):
        TransformerRecipe(**{name: type(getattr(TransformerRecipe(), name))(0)})


def test_data_without_labels_are_refused_before_the_folder_is_claimed(tmp_path, monkeypatch):
    monkeypatch.setattr(Toy, "classes", ())
    with pytest.raises(BadInput, match="toy has labels of 0 classes; a classifier needs 2 or more"):
        train_word_model(Toy(), lambda *_: None, TransformerRecipe(), tmp_path)
    assert not list(tmp_path.iterdir())
