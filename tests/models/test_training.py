from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from heedful.datasets import Dataset, Example
from heedful.document import Pair
from heedful.errors import BadInput, CannotWrite
from heedful.models.load import load
from heedful.models.network import Config
from heedful.models.training import Epoch, Recipe, publish, train
from heedful.run_folder import RunFolder
from tests.test_run_folder import full_disk

CONFIG = Config(n_heads=2, T_max=8, d_e=8, d_att=4, d_out=4)
RECIPE = Recipe(learning_rate=1e-2, n_epochs=4, batch_size=8)


@dataclass(frozen=True)
class Toy(Dataset):
    """A text is positive if it says good and negative if it says bad."""

    name: ClassVar[str] = "toy"
    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")

    n: int = 80

    def examples(self, split):
        rng = np.random.default_rng(["train", "validation", "test"].index(split))
        fillers = ["film", "plot", "story", "the", "a"]
        rows = []
        for label in rng.integers(0, 2, size=self.n):
            words = [*rng.choice(fillers, size=4), ("bad", "good")[label]]
            rows.append(Example(" ".join(rng.permutation(words)), int(label)))
        return rows


@dataclass(frozen=True)
class Contrary(Dataset):
    """As Toy, but what it is validated on says the opposite."""

    name: ClassVar[str] = "contrary"
    classes: ClassVar[tuple[str, ...]] = Toy.classes

    def examples(self, split):
        rows = Toy().examples(split)
        return [Example(row.text, 1 - row.label) for row in rows] if split == "validation" else rows


def weights(model):
    return {name: tensor.numpy().tobytes() for name, tensor in model.network.state_dict().items()}


def test_it_learns(tmp_path):
    model, epochs = train(Toy(), CONFIG, RECIPE, tmp_path)
    assert epochs[-1].loss < epochs[0].loss
    card = publish(model, Toy(), epochs, "heedful train toy", tmp_path)
    assert card.test_accuracy > 0.95


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path):
    one, again, other = (
        train(Toy(), CONFIG, Recipe(n_epochs=2, seed=seed), tmp_path / name)[0]
        for seed, name in ((0, "one"), (0, "again"), (1, "other"))
    )
    assert weights(one) == weights(again)
    assert weights(one) != weights(other)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", [(0, 3), (1, 1), (2, 10), (3, 10)])
def test_a_killed_run_resumes_to_the_same_weights(tmp_path, moment):
    whole, epochs = train(Toy(), CONFIG, RECIPE, tmp_path / "whole")

    def kill(epoch, batch, n_batches):
        if (epoch, batch) == moment:
            raise Killed

    with pytest.raises(Killed):
        train(Toy(), CONFIG, RECIPE, tmp_path / "broken", kill)
    seen = []
    resumed, resumed_epochs = train(Toy(), CONFIG, RECIPE, tmp_path / "broken", lambda epoch, *_: seen.append(epoch))
    assert weights(resumed) == weights(whole)
    assert resumed_epochs == epochs
    assert min(seen) == moment[0]


def test_the_best_validation_epoch_is_kept(tmp_path):
    # The more it learns, the less it is right on texts that are labelled the other way round.
    model, epochs = train(Contrary(), CONFIG, RECIPE, tmp_path)
    best = max(epoch.validation_accuracy for epoch in epochs)
    validation = Contrary().examples("validation")
    predicted = model([example.text for example in validation]).argmax(axis=1)
    accuracy = np.mean([p == example.label for p, example in zip(predicted, validation, strict=True)])
    assert accuracy == pytest.approx(best)
    assert best > epochs[-1].validation_accuracy


def test_the_card_is_about_the_file_as_written(tmp_path):
    model, epochs = train(Toy(), CONFIG, RECIPE, tmp_path)
    card = publish(model, Toy(), epochs, "heedful train toy", tmp_path)
    shipped = load(str(tmp_path))
    test = Toy().examples("test")
    predicted = shipped([example.text for example in test]).argmax(axis=1)
    assert card.test_accuracy == np.mean([p == example.label for p, example in zip(predicted, test, strict=True)])
    seen = {e.text for split in ("train", "validation") for e in Toy().examples(split)}
    assert card.n_distinct_test == len({e.text for e in test} - seen)
    assert card.sha256 in (tmp_path / "card.md").read_text()


@dataclass(frozen=True)
class Leaky(Dataset):
    """As Toy, but every test text is also in train."""

    name: ClassVar[str] = "leaky"
    classes: ClassVar[tuple[str, ...]] = Toy.classes

    def examples(self, split):
        return Toy().examples("train" if split == "test" else split)


def test_a_test_split_without_a_new_text_has_a_card_that_says_so(tmp_path):
    model, epochs = train(Leaky(), CONFIG, RECIPE, tmp_path)
    card = publish(model, Leaky(), epochs, "heedful train leaky", tmp_path)
    assert card.n_distinct_test == 0
    assert "not measured on the 0 that are neither" in (tmp_path / "card.md").read_text(encoding="utf-8")


def test_a_full_disk_ends_training_in_a_sentence_and_keeps_the_last_model(tmp_path):
    model, epochs = train(Toy(), CONFIG, RECIPE, tmp_path)
    publish(model, Toy(), epochs, "heedful train toy", tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    with full_disk(1000), pytest.raises(CannotWrite, match="model.safetensors cannot be written"):
        publish(model, Toy(), epochs, "heedful train toy", tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    with full_disk(1000), pytest.raises(CannotWrite, match="state.safetensors cannot be written"):
        train(Toy(), CONFIG, RECIPE, tmp_path / "other")


def test_two_runs_in_one_folder_at_once_are_refused(tmp_path):
    with RunFolder(tmp_path).alone(), pytest.raises(BadInput, match="Another run works in"):
        train(Toy(), CONFIG, RECIPE, tmp_path)


def test_another_run_in_the_same_folder_is_refused(tmp_path):
    train(Toy(), CONFIG, Recipe(n_epochs=1), tmp_path)
    for data, recipe in ((Toy(), Recipe(n_epochs=1, seed=5)), (Toy(n=40), Recipe(n_epochs=1))):
        with pytest.raises(BadInput, match="contains another run, which differs in"):
            train(data, CONFIG, recipe, tmp_path)
    (tmp_path / "state.safetensors").write_bytes(b"cut")
    with pytest.raises(BadInput, match="state.safetensors is damaged"):
        train(Toy(), CONFIG, Recipe(n_epochs=1), tmp_path)


def test_a_finished_run_is_not_trained_again(tmp_path):
    short, _ = train(Toy(), CONFIG, RECIPE, tmp_path)
    same, epochs = train(Toy(), CONFIG, RECIPE, tmp_path, lambda *_: pytest.fail("a finished run trains no more"))
    assert weights(short) == weights(same)
    assert len(epochs) == RECIPE.n_epochs


def test_training_does_not_change_the_global_random_state(tmp_path):
    before = torch.get_rng_state()
    train(Toy(), CONFIG, Recipe(n_epochs=1), tmp_path)
    assert torch.equal(before, torch.get_rng_state())


@dataclass(frozen=True)
class Pairs(Dataset):
    """Pairs of texts, which the paper's model does not read."""

    name: ClassVar[str] = "pairs"
    classes: ClassVar[tuple[str, ...]] = ("no", "yes")

    def examples(self, split):
        return [Example(Pair("good film", "bad film"), 0)]


@dataclass(frozen=True)
class Unlabelled(Dataset):
    """A data set whose test split has no labels."""

    name: ClassVar[str] = "unlabelled"
    classes: ClassVar[tuple[str, ...]] = ("no", "yes")

    def examples(self, split):
        if split == "test":
            raise BadInput("The test split has no labels.")
        return Toy().examples(split)


def test_pairs_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(BadInput, match="This model reads one text; a pair was given"):
        train(Pairs(), CONFIG, RECIPE, tmp_path)


def test_a_missing_test_split_is_reported_before_the_first_epoch(tmp_path):
    with pytest.raises(BadInput, match="The test split has no labels"):
        train(Unlabelled(), CONFIG, RECIPE, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_people_marked_changes_no_weight(tmp_path):
    class Marked(Dataset):
        name, classes = "toy", ("negative", "positive")

        def examples(self, split):
            return [Example(example.text, example.label, ((0, 1),)) for example in Toy().examples(split)]

    plain, marked = (
        train(data, CONFIG, Recipe(n_epochs=1), tmp_path / name)[0]
        for data, name in ((Toy(), "plain"), (Marked(), "marked"))
    )
    assert weights(plain) == weights(marked)


@dataclass(frozen=True)
class Marked(Dataset):
    """As Toy, and people marked the word that says it."""

    name: ClassVar[str] = "marked"
    classes: ClassVar[tuple[str, ...]] = Toy.classes

    def examples(self, split):
        def marked(text, word):
            return ((text.index(word), text.index(word) + len(word)),)

        rows = Toy().examples(split)
        return [Example(row.text, row.label, marked(row.text, ("bad", "good")[row.label])) for row in rows]


def attention_on_marked(model):
    documents = [model.encode(row.text) for row in Marked().examples("test")]
    rows = model.attention(documents).mean(axis=(1, 2))
    inside = [np.isin(document.pieces, ["good", "bad"]) for document in documents]
    return np.mean([row[: len(own)][own].sum() for row, own in zip(rows, inside, strict=True)])


def test_losses_for_better_attention_change_what_is_attended_to(tmp_path):
    recipes = {"plain": Recipe(learning_rate=1e-2, n_epochs=6, batch_size=8)}
    recipes |= {
        name: Recipe(learning_rate=1e-2, n_epochs=6, batch_size=8, **{name: 1.0}) for name in ("rationale", "entropy")
    }
    models = {name: train(Marked(), CONFIG, recipe, tmp_path / name)[0] for name, recipe in recipes.items()}
    assert attention_on_marked(models["rationale"]) > attention_on_marked(models["plain"]) + 0.1
    documents = [models["plain"].encode(row.text) for row in Marked().examples("test")]
    rows = {name: model.attention(documents) for name, model in models.items()}
    assert rows["entropy"].max(axis=-1).mean() > rows["plain"].max(axis=-1).mean() + 0.1
    card = publish(models["rationale"], Marked(), [Epoch(0, 0.0, 1.0, 1.0)], "heedful train", tmp_path / "rationale")
    assert card.test_accuracy > 0.9


def test_a_loss_that_is_off_is_no_setting_so_that_older_runs_resume(tmp_path):
    train(Toy(), CONFIG, Recipe(n_epochs=1), tmp_path / "off")
    assert {"entropy", "rationale"}.isdisjoint(RunFolder(tmp_path / "off").settings()["recipe"])
    train(Toy(), CONFIG, Recipe(n_epochs=1, entropy=0.5), tmp_path / "on")
    assert RunFolder(tmp_path / "on").settings()["recipe"]["entropy"] == 0.5
    with pytest.raises(BadInput, match="no rationales"):
        train(Toy(), CONFIG, Recipe(rationale=0.5), tmp_path / "refused")
    with pytest.raises(BadInput, match="entropy must be"):
        Recipe(entropy=-1.0)
