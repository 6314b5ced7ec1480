from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.datasets import Example
from heedful.errors import BadInput
from heedful.experiments.classifiers import ClassifierRecipe, as_single_layer, correct_predictions, train_classifier
from heedful.experiments.training_texts import TrainingTexts
from heedful.experiments.workspace import Workspace
from heedful.models.training_loop import Schedule
from heedful.models.transformer import TransformerConfig

CONFIG = TransformerConfig(n_heads=2, T_max=12, d_e=8, d_att=4, d_out=4, d_hidden=8, positional="authors")
RECIPE = ClassifierRecipe(Schedule(n_epochs=6, batch_size=10, learning_rate=2e-2), min_count=1)


def made(n_train: int = 80, n_test: int = 60) -> TrainingTexts:
    """Texts whose label is the one telling word among words that tell nothing."""
    rng = np.random.default_rng(0)

    def example(number: int) -> Example:
        words = [*rng.choice(["the", "film", "was", "it"], 6).tolist(), ("bad", "good")[number % 2]]
        return Example(" ".join(rng.permutation(words).tolist()), number % 2)

    drawn = [example(number) for number in range(n_train + n_test)]
    return TrainingTexts("made", ("negative", "positive"), drawn[:n_train], drawn[n_train:])


def weights(model) -> dict[str, torch.Tensor]:
    return model.network.state_dict()


def same(one, other) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(one).values(), weights(other).values(), strict=True))


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        replace(CONFIG, depth=2, skip=True, norm=True, nonlinearity="relu"),
        replace(CONFIG, nonlinearity="gelu"),
    ],
)
def test_it_learns_classes_that_are_distinguishable(tmp_path, config):
    model = train_classifier(Workspace(tmp_path), "a", config, made(), RECIPE)
    assert np.mean(correct_predictions(Workspace(tmp_path), "a", model, made())) > 0.95


def test_it_is_right_where_its_logits_say_the_label(tmp_path):
    model = train_classifier(
        Workspace(tmp_path), "a", CONFIG, made(), ClassifierRecipe(Schedule(1, 10, 1e-3), min_count=1)
    )
    predicted = model([example.text for example in made().test]).argmax(axis=1)
    expected = [int(a) == example.label for a, example in zip(predicted, made().test, strict=True)]
    assert 0 < sum(expected) < len(expected)
    assert correct_predictions(Workspace(tmp_path), "a", model, made()) == expected


def test_the_same_seed_gives_the_same_weights_and_another_others(tmp_path):
    models = [
        train_classifier(Workspace(tmp_path / name, seed=seed), "a", CONFIG, made(), RECIPE)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    assert same(models[0], models[1])
    assert not same(models[0], models[2])


def test_a_killed_run_ends_like_an_uninterrupted_one(tmp_path):
    whole = train_classifier(Workspace(tmp_path / "whole"), "a", CONFIG, made(), RECIPE)
    # The 20th of 48 steps: two epochs are whole, the third is under way.
    steps = iter(range(20))

    def dies(network):
        if next(steps, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_classifier(Workspace(tmp_path / "broken"), "a", CONFIG, made(), RECIPE, dies)
    left = sorted(path.name for path in (tmp_path / "broken" / "steps").glob("a*"))
    assert left == ["a-state.safetensors"]
    resumed = train_classifier(Workspace(tmp_path / "broken"), "a", CONFIG, made(), RECIPE)
    assert same(resumed, whole)
    assert not list((tmp_path / "broken" / "steps").glob("a-state*"))


def test_a_finished_model_is_not_trained_again(tmp_path):
    model = train_classifier(Workspace(tmp_path), "a", CONFIG, made(), RECIPE)

    def never(network):
        raise AssertionError

    assert same(train_classifier(Workspace(tmp_path), "a", CONFIG, made(), RECIPE, never), model)


def test_weights_are_what_half_precision_holds(tmp_path):
    resumed = weights(train_classifier(Workspace(tmp_path), "a", CONFIG, made(), RECIPE))
    assert all(torch.equal(tensor, tensor.half().float()) for tensor in resumed.values())


def test_what_is_held_is_not_learnt(tmp_path):
    def hold(network):
        network.W_e[:, 0] = 0.25

    resumed = weights(train_classifier(Workspace(tmp_path), "a", CONFIG, made(), RECIPE, hold))
    assert (resumed["W_e"][:, 0] == 0.25).all()
    assert (resumed["W_e"][:, 1] != 0.25).all()


def test_a_loss_that_is_no_number_is_refused(tmp_path):
    def spoil(network):
        network.W_e.fill_(float("nan"))

    with pytest.raises(BadInput, match="not a finite number in epoch 1"):
        train_classifier(Workspace(tmp_path), "a", CONFIG, made(), RECIPE, spoil)


def test_a_plain_layer_is_the_paper_s_model(tmp_path):
    model = train_classifier(Workspace(tmp_path), "a", CONFIG, made(), RECIPE)
    single = as_single_layer(model)
    texts = [example.text for example in made().test[:5]]
    assert single(texts) == pytest.approx(model(texts), abs=1e-6)
    documents = [model.encode(text) for text in texts]
    assert single.attention(documents) == pytest.approx(model.attention(documents), abs=1e-6)


def test_no_other_is(tmp_path):
    deep = train_classifier(
        Workspace(tmp_path),
        "a",
        replace(CONFIG, norm=True),
        made(),
        ClassifierRecipe(Schedule(1, 10, 2e-2), min_count=1),
    )
    with pytest.raises(BadInput, match="every switch off"):
        as_single_layer(deep)
