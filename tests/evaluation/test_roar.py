"""Remove and retrain on texts where two words decide the label."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.evaluation.retrainers import SingleLayerRetrainer
from heedful.models.network import Network
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from tests.planted import CONFIG, RECIPE, VOCABULARY, Killed, Planted, WordCounts, train_counts

SHARES = (0, 0.2, 0.8)
DATA = Planted(n=150)
PLAN = {"methods": "leave-one-out", "mode": "both", "shares": SHARES, "seeds": 2, "progress": None}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, heedful.roar(train_counts, DATA, out=folder, **PLAN)


def test_without_the_deciding_words_nothing_is_learnt_and_with_nothing_else_everything(whole):
    result = whole[1]
    accuracy = {
        (mode, name, share): quantity.value
        for mode in result.modes
        for name in result.methods
        for share, quantity in zip(result.shares, result.curve(name, mode), strict=True)
    }
    assert accuracy["remove", "random", 0] > 0.97
    # Two of ten words decide: the method removes them first, chance both of them in one text of 45.
    assert accuracy["remove", "leave-one-out", 0.2] < 0.65
    assert accuracy["remove", "random", 0.2] > 0.9
    # Chance keeps one of them at least in 17 texts of 45, and guesses the rest.
    assert accuracy["keep", "leave-one-out", 0.8] > 0.97
    assert accuracy["keep", "random", 0.8] < 0.8
    assert result.from_random("leave-one-out", "remove").high < -0.1
    assert result.from_random("leave-one-out", "keep").low > 0.05


def test_it_equals_a_loop_written_by_hand(whole):
    """Rank by |score difference when a word becomes [UNK]|, replace, train, count."""
    texts = {split: [e.text.split() for e in DATA.examples(split)] for split in ("train", "test")}
    labels = {split: [e.label for e in DATA.examples(split)] for split in ("train", "test")}
    explained = WordCounts([" ".join(words) for words in texts["train"]], labels["train"], 0)
    strength = {
        word: abs(explained.weights.get(word, 0.0) - explained.weights.get("[UNK]", 0.0)) for word in VOCABULARY.words
    }

    def remove(words, share):
        n_gone = int(Fraction(str(share)) * len(words) + Fraction(1, 2))
        order = sorted(range(len(words)), key=lambda place: -strength[words[place]])
        return " ".join("[UNK]" if place in order[:n_gone] else word for place, word in enumerate(words))

    for number, share in enumerate(SHARES):
        for seed in range(2):
            model = WordCounts([remove(words, share) for words in texts["train"]], labels["train"], seed)
            scores = np.array(model([remove(words, share) for words in texts["test"]]))
            by_hand = (scores.argmax(axis=1) == labels["test"]).mean()
            ours = whole[1].accuracies[0, whole[1].methods.index("leave-one-out"), number, seed]
            # Texts with a word twice have ties, which are decided by lot.
            assert ours == pytest.approx(by_hand, abs=0.02)


@pytest.mark.parametrize("moment", [0.1, 0.6])
def test_a_run_killed_at_any_moment_resumes_to_the_same_result(tmp_path, whole, moment):
    def kill(done, total):
        if done / total >= moment:
            raise Killed

    with pytest.raises(Killed):
        heedful.roar(train_counts, DATA, out=tmp_path, **PLAN | {"progress": kill})
    begun = []
    heedful.roar(train_counts, DATA, out=tmp_path, **PLAN | {"progress": lambda done, total: begun.append(total)})
    assert begun[-1] < 19 * 1000 or moment == 0.1
    assert (tmp_path / "results.json").read_bytes() == (whole[0] / "results.json").read_bytes()


def test_a_finished_run_trains_nothing_and_more_seeds_train_only_their_own_models(whole):
    def never(texts, labels, seed):
        pytest.fail("a finished model is not trained again")

    before = (whole[0] / "settings.json").read_text()
    calls = []
    again = heedful.roar(train_counts, DATA, out=whole[0], **PLAN | {"progress": lambda *step: calls.append(step)})
    assert calls == []
    assert again.as_dict() == whole[1].as_dict()
    more = PLAN | {"seeds": 3, "shares": (0, 0.2), "mode": "keep", "progress": lambda *step: calls.append(step)}
    assert heedful.roar(train_counts, DATA, out=whole[0], **more).accuracies.shape == (1, 2, 2, 3)
    # Nothing replaced, and each of two methods; no ranking.
    assert calls[-1] == (5000, 5000) or calls[-1][1] == 3000 + 4000
    with pytest.raises(BadInput, match="contains another run, which differs in the training;"):
        heedful.roar(never, DATA, out=whole[0], **PLAN)
    with pytest.raises(BadInput, match="contains another run, which differs in data"):
        heedful.roar(train_counts, Planted(n=149), out=whole[0], **PLAN)
    assert (whole[0] / "settings.json").read_text() == before


def test_a_training_that_ignores_its_seed_is_noted_and_one_that_is_random_refused(tmp_path):
    few = {"shares": (0, 0.5), "seeds": 2, "progress": None, "n": 60, "methods": "leave-one-out"}
    same = heedful.roar(lambda texts, labels, seed: WordCounts(texts, labels, 0), Planted(), **few)
    assert same.notes == (
        "All seeds gave the same accuracies, so there is no interval; does the training use its seed?",
    )
    rng = np.random.default_rng(0)

    def random(texts, labels, seed):
        return WordCounts(texts, labels, int(rng.integers(1000)))

    def kill(done, total):
        if done:
            raise Killed

    with pytest.raises(Killed):
        heedful.roar(random, Planted(), out=tmp_path, **few | {"progress": kill})
    with pytest.raises(BadInput, match="gave another model with the same seed; seed it, or give `model`"):
        heedful.roar(random, Planted(), out=tmp_path, **few)


def test_the_paper_s_model_is_trained_again_by_its_own_recipe():
    model = SingleLayer(Network(CONFIG, initial_weights(CONFIG, len(VOCABULARY), 5)), VOCABULARY, Planted.classes)
    retrainer = SingleLayerRetrainer(model, replace(RECIPE, batch_size=20), at_once=4)
    result = heedful.roar(retrainer, Planted(n=120), "attention-mean", shares=(0, 0.8, 1), seeds=1, progress=None)
    assert (result.imputation, result.explained) == ("mean", model.description)
    with pytest.raises(BadInput, match="explained itself; leave `model` out"):
        heedful.roar(retrainer, DATA, model=model)
    by_share = [point.value for point in result.curve("random")]
    assert by_share[0] > 0.9 > by_share[1]
    # Without any word only the length is left, and all texts have the same.
    assert by_share[2] < 0.6


def test_the_shares_are_those_of_the_lecture():
    """Chapter 10.2: for each τ in {0, 10, …, 100}."""
    from heedful.evaluation.roar import SHARES as OURS

    assert [round(100 * share) for share in OURS] == list(range(0, 101, 10))


def test_a_given_model_is_the_one_that_is_explained():
    model = SingleLayer(Network(CONFIG, initial_weights(CONFIG, len(VOCABULARY), 5)), VOCABULARY, Planted.classes)
    few = {"shares": (0.2,), "seeds": 1, "progress": None, "n": 60}
    result = heedful.roar(train_counts, Planted(), "attention-mean", model=model, **few)
    assert result.explained == model.description
