import json

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.evaluation.several import SideBySide, folder_name
from tests.conftest import tiny_model

TEXT = "good film was dull"
METHODS = ["attention-mean", "leave-one-out"]


@pytest.fixture(scope="module")
def models():
    return {"old": tiny_model(0), "new/model": tiny_model(1)}


def test_each_model_is_compared_as_it_would_be_alone(models):
    both = heedful.compare(models, TEXT, METHODS)
    assert list(both.comparisons) == list(models)
    for name, model in models.items():
        alone = heedful.compare(model, TEXT, METHODS)
        for method in METHODS:
            assert np.array_equal(both.comparisons[name][method].scores, alone[method].scores)
        assert both.comparisons[name].explanations[0].target == alone.explanations[0].target
    assert json.loads(json.dumps(both.as_dict())).keys() == models.keys()
    assert len(repr(both)) <= 300
    assert list(heedful.compare(list(models.values()), TEXT, METHODS).comparisons) == ["model 1", "model 2"]


def test_each_report_is_that_of_its_model_with_a_folder_of_its_own(models, tmp_path):
    texts = [TEXT, "bad plot", "the film was good", "a dull story", "very good actor", "bad bad film"]
    both = heedful.trust(models, texts, METHODS, ["deletion", "insertion"], out=tmp_path)
    for name, model in models.items():
        alone = heedful.trust(model, texts, METHODS, ["deletion", "insertion"])
        assert np.array_equal(both.reports[name].values, alone.values)
        assert both.headlines[name] == {verdict.use: verdict.headline for verdict in alone.verdicts}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new-model", "old"]
    assert both.as_dict().keys() == models.keys()
    assert repr(both) == "<trust reports of old, new/model>"


def test_what_is_not_a_list_of_models_is_refused(models):
    with pytest.raises(BadInput, match="list of models is empty"):
        heedful.compare([], TEXT)
    with pytest.raises(BadInput, match=r"heedful\.load\('paper'\)"):
        heedful.compare([*models.values(), "paper"], TEXT)


def test_a_folder_has_the_name_of_its_model():
    assert [folder_name(name) for name in ("../shared/toxicity", "org/a b", "", "model 1")] == [
        "shared-toxicity",
        "org-a-b",
        "model",
        "model-1",
    ]
    assert SideBySide().as_dict() == {}
