"""Remove and retrain: what is replaced, trained, kept and gone on from."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from heedful.errors import BadInput
from heedful.models.network import Network
from heedful.models.training import initial_weights, train
from heedful.models.vocabulary import UNK
from studies.roar.ledger import NOTHING, Ledger, RoarRun
from studies.roar.plan import RoarPlan, carry_out
from studies.roar.rankings import NOWHERE
from studies.roar.report import Estimate, curves, estimate
from studies.roar.retraining import (
    GONE,
    Accuracies,
    Reviews,
    TrainingCase,
    _logits,
    replaced,
    retrain,
    word_frequencies,
)
from studies.roar.study import SPLITS
from tests.studies.planted import (
    CONFIG,
    EXAMPLES,
    LABELS,
    PLAN,
    RANKS,
    RECIPE,
    REVIEWS,
    SETUP,
    VOCABULARY,
    Killed,
    Planted,
)


def ledger_in(folder, settings="as always", report=pytest.fail):
    return Ledger(folder / "results.jsonl", lambda method: settings, report)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, carry_out(PLAN, SETUP, RANKS, ledger_in(folder))


@pytest.mark.slow
def test_without_the_deciding_words_nothing_is_learnt_and_with_nothing_else_everything(whole):
    accuracy = {run[:3]: accuracies.test_accuracy for run, accuracies in whole[1].items()}
    assert accuracy[NOTHING, NOTHING, 0] > 0.97
    # Two of ten words decide: the oracle removes them first, chance both of them in one text of 45.
    assert accuracy["oracle", "remove", 20] < 0.6
    assert accuracy["random", "remove", 20] > 0.9
    # Chance keeps one of them at least in 17 texts of 45, and guesses the rest.
    assert accuracy["oracle", "keep", 80] > 0.97
    assert accuracy["random", "keep", 80] < 0.8


def test_the_curves_give_the_difference_to_random(whole):
    curve_of = {(curve.mode, curve.method): curve for curve in curves(PLAN, whole[1])}
    removed, random = curve_of["remove", "oracle"], curve_of["remove", "random"]
    assert removed.percents == (0, 20, 80)
    assert removed.accuracy[0] == random.accuracy[0]
    by_hand = np.mean([a.mean - b.mean for a, b in zip(removed.accuracy[1:], random.accuracy[1:], strict=True)])
    assert removed.from_random == Estimate(pytest.approx(by_hand), None)
    assert removed.from_random.mean < -0.1
    assert curve_of["keep", "oracle"].from_random.mean > 0.05
    assert random.from_random is None


@pytest.mark.parametrize("mode", ["remove", "keep"])
@pytest.mark.parametrize("percent", [0, 10, 33, 50, 90, 100])
def test_as_many_words_as_the_share_says_are_removed(mode, percent):
    rng = np.random.default_rng(percent)
    n_words = np.array([1, 2, 5, 10])
    ids = np.full((4, 11), UNK, dtype=np.int32)
    ids[:, 0], ranks = 0, np.full((4, 10), NOWHERE, dtype=np.uint16)
    for row, n in enumerate(n_words):
        ids[row, 1 : n + 1] = np.arange(100, 100 + n)
        ranks[row, :n] = rng.permutation(n)
    changed = replaced(Reviews(ids, n_words, np.zeros(4, dtype=int)), ranks, mode, percent)
    for row, n in enumerate(n_words):
        by_strength = sorted(range(n), key=lambda word, row=row: ranks[row, word], reverse=mode == "keep")
        gone = by_strength[: int(np.floor(percent * n / 100 + 0.5))]
        wanted = [GONE if word in gone else 100 + word for word in range(n)]
        assert changed[row].tolist() == [0, *wanted, *[UNK] * (10 - n)]


def test_a_ranking_of_other_texts_is_refused():
    with pytest.raises(BadInput, match="another number of words"):
        replaced(REVIEWS["test"], np.full((300, 10), NOWHERE, dtype=np.uint16), "remove", 10)


# The second learning rate destroys what was learnt, so that the best epoch is not the last.
@pytest.mark.parametrize(("learning_rate", "n_epochs", "is_last"), [(2e-2, 3, True), (1.0, 6, False)])
def test_it_trains_and_chooses_as_heedful_train_does(tmp_path, learning_rate, n_epochs, is_last):
    recipe = replace(RECIPE, learning_rate=learning_rate, n_epochs=n_epochs)
    model, epochs = train(Planted(), CONFIG, replace(recipe, seed=3), tmp_path)
    assert model.vocabulary == VOCABULARY
    ids = {split: part.ids for split, part in REVIEWS.items()}
    (trained,) = retrain(CONFIG, len(VOCABULARY), recipe, LABELS, [TrainingCase(ids, 3)])
    best = max(epochs, key=lambda epoch: epoch.validation_accuracy)
    assert (best.number + 1 == n_epochs) == is_last
    predicted = model([example.text for example in EXAMPLES["test"]]).argmax(axis=1)
    test_accuracy = float((predicted == LABELS["test"]).mean())
    # A review whose two logits are nearly equal may fall to the other side by rounding.
    assert trained == Accuracies(best.number + 1, *(pytest.approx(x, abs=0.004) for x in (best[3], test_accuracy)))


def test_the_shares_are_the_lecture_s_and_words_are_imputed_by_the_mean():
    """Chapter 10.2: for each τ in {0, 10, …, 100}; mean imputation is proposed."""
    assert RoarPlan().percents == (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    assert RoarPlan().imputation == "mean"


def test_a_removed_word_has_the_mean_vector_of_the_words_of_the_training_texts():
    """By hand: the vectors of all words of all training texts, averaged; texts with that vector in the word's place."""
    torch.manual_seed(0)
    n_words, some = len(VOCABULARY), REVIEWS["test"].ids[:3]
    start = initial_weights(CONFIG, n_words, 0)
    network = Network(CONFIG, start)
    weights = {name: weight.detach()[None] for name, weight in network.named_parameters() if weight.requires_grad}
    W_e = weights["W_e"][0]
    words = [word for row, n in zip(*REVIEWS["train"][:2], strict=True) for word in row[1 : n + 1] if word != UNK]
    mean = W_e[torch.tensor(words)].double().mean(dim=0)
    ids = some.copy()
    ids[:, 2] = GONE
    e = torch.stack([W_e[torch.tensor(row)] for row in np.where(ids == GONE, UNK, ids).tolist()])
    by_unknown = network(e + network.W_p)
    e[:, 2] = mean.float()
    by_mean = network(e + network.W_p)
    asked = torch.from_numpy(ids)[None]
    frequencies = torch.from_numpy(word_frequencies(REVIEWS["train"], n_words))
    assert torch.allclose(_logits(network, weights, frequencies, asked)[0], by_mean, atol=1e-5)
    assert torch.allclose(_logits(network, weights, None, asked)[0], by_unknown, atol=1e-5)
    assert not torch.allclose(by_mean, by_unknown, atol=1e-3)


@pytest.mark.parametrize("imputation", ["mean", "unknown"])
def test_without_any_word_only_the_length_is_left_to_learn_from(tmp_path, imputation):
    """τ = 100 %: the planted texts have one length, so a model without their words guesses."""
    plan = replace(PLAN, methods=("random",), modes=("remove",), percents=(100,), imputation=imputation)
    setup = SETUP._replace(recipe=replace(RECIPE, n_epochs=2))
    found = carry_out(plan, setup, RANKS, ledger_in(tmp_path))
    assert found[RoarRun("random", "remove", 100, 0)].test_accuracy < 0.6


def test_models_trained_side_by_side_do_not_touch_each_other():
    ids = {split: part.ids for split, part in REVIEWS.items()}
    without = {split: replaced(REVIEWS[split], RANKS["oracle", split], "remove", 20) for split in SPLITS}
    cases = [TrainingCase(ids, 0), TrainingCase(without, 0), TrainingCase(ids, 1)]
    recipe = replace(RECIPE, n_epochs=2)
    together = retrain(CONFIG, len(VOCABULARY), recipe, LABELS, cases)
    for case, result in zip(cases, together, strict=True):
        (alone,) = retrain(CONFIG, len(VOCABULARY), recipe, LABELS, [case])
        assert result == Accuracies(alone.epoch, *(pytest.approx(accuracy, abs=0.004) for accuracy in alone[1:]))


@pytest.mark.parametrize(("moment", "at_once"), [((0, 1), 1), ((3, 7), 1), ((4, 12), 1), ((2, 8), 2)])
def test_a_killed_run_resumes_to_the_same_lines(tmp_path, moment, at_once):
    plan, setup = replace(PLAN, modes=("keep",)), SETUP._replace(recipe=replace(RECIPE, n_epochs=2))
    carry_out(plan, setup, RANKS, ledger_in(tmp_path / "unbroken"), at_once)

    def kill(n_done, n_models, step, n_steps):
        if (n_done, step) >= moment:
            raise Killed

    with pytest.raises(Killed):
        carry_out(plan, setup, RANKS, ledger_in(tmp_path), at_once, kill)
    begun = []
    carry_out(plan, setup, RANKS, ledger_in(tmp_path), at_once, lambda n_done, *_: begun.append(n_done))
    assert min(begun) == moment[0]
    assert (tmp_path / "results.jsonl").read_bytes() == (tmp_path / "unbroken" / "results.jsonl").read_bytes()


def test_finished_models_are_not_trained_again_when_seeds_are_added(tmp_path, whole):
    (tmp_path / "results.jsonl").write_bytes((whole[0] / "results.jsonl").read_bytes())
    never = lambda *_: pytest.fail("a finished model is not trained again")  # noqa: E731
    assert carry_out(PLAN, SETUP, RANKS, ledger_in(tmp_path), 1, never) == whole[1]
    begun = []
    more = replace(PLAN, modes=("keep",), percents=(20,), n_seeds=2)
    results = carry_out(more, SETUP, RANKS, ledger_in(tmp_path), 1, lambda n_done, *_: begun.append(n_done))
    assert set(begun) == {3, 4, 5}
    assert results[RoarRun("oracle", "keep", 20, 0)] == whole[1][RoarRun("oracle", "keep", 20, 0)]


def test_results_of_other_settings_are_refused(whole):
    before = (whole[0] / "results.jsonl").read_bytes()
    with pytest.raises(BadInput, match="holds results of other settings or data; name another folder or delete it"):
        ledger_in(whole[0], "otherwise")
    assert (whole[0] / "results.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [*lines[:-1], lines[-1][:-20]],
        lambda lines: [*lines[:2], b"\xff\x00 not a line\n", *lines[3:]],
        lambda lines: [lines[0].replace(b'"percent"', b'"present"'), *lines[1:]],
        lambda lines: [lines[0].replace(b'"test_accuracy": ', b'"test_accuracy": 7'), *lines[1:]],
    ],
    ids=["cut", "garbled", "incomplete", "impossible"],
)
def test_a_line_that_cannot_be_read_is_reported_and_its_model_trained_again(tmp_path, whole, damage):
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"".join(damage((whole[0] / "results.jsonl").read_bytes().splitlines(keepends=True))))
    messages, begun = [], []
    ledger = ledger_in(tmp_path, report=messages.append)
    assert len(messages) == 1
    assert "cannot be read; its model is trained again" in messages[0]
    assert carry_out(PLAN, SETUP, RANKS, ledger, 1, lambda n, *_: begun.append(n)) == whole[1]
    assert set(begun) == {len(PLAN.runs()) - 1}
    assert sorted(path.read_bytes().splitlines()) == sorted((whole[0] / "results.jsonl").read_bytes().splitlines())


@pytest.mark.parametrize("change", [{"percents": (10, 101)}, {"percents": (-10,)}, {"n_seeds": 0}])
def test_a_plan_that_cannot_be_carried_out_is_refused(change):
    with pytest.raises(BadInput, match="shares from 0 to 100 % and at least 1 seed"):
        RoarPlan(**change)


def test_the_random_control_is_always_there():
    assert RoarPlan(("lime-exact",)).methods == ("random", "lime-exact")
    assert len(RoarPlan().runs()) == 5 * 2 * 10 + 1


@pytest.mark.parametrize("n", [2, 3, 4])
def test_intervals_of_few_seeds_are_student_s_and_stay_shares(n):
    draws = np.random.default_rng(n).normal(0.5, 1e-3, size=n)
    low, high = stats.t.interval(0.95, n - 1, draws.mean(), stats.sem(draws))
    assert estimate(draws) == Estimate(pytest.approx(draws.mean()), pytest.approx((high - low) / 2, rel=1e-9))
    near_all = estimate(np.array([0.999, *[0.9] * (n - 1)]))
    assert near_all.mean - near_all.error > 0
    assert estimate(np.full(n, 0.25)) == Estimate(0.25, None)
