import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.generation.dependence import dependence, null_contexts, output_p_values, token_p_values
from heedful.generation.prompt import read_prompt
from heedful.generation.written import with_output
from tests.families import build

CONTEXT, PROMPT, OUTPUT = "an actor was good . the plot was dull .", "the film was", [40, 12, 7]


def logits_before(model, context, place):
    """The oracle reads what was written before each token, alone."""
    document = model.continued(read_prompt(model, PROMPT, context, False), OUTPUT[:place])
    row = model.logits([document])[0]
    return row - np.logaddexp.reduce(row)


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_changes_are_those_of_logits_read_token_by_token(family):
    model = build(family)
    nulls = ["very bright story", "not a bad actor . the film"]
    texts = [with_output(model, read_prompt(model, PROMPT, text, False), OUTPUT) for text in (CONTEXT, *nulls)]
    bare = with_output(model, read_prompt(model, PROMPT, None, False), OUTPUT)
    measured = dependence(model, texts, bare, lambda *_: None)
    for place, number in enumerate(OUTPUT):
        without = logits_before(model, None, place)
        assert measured.instead[place] == next(other for other in np.argsort(-without) if other != number)
        assert measured.log_p_without[place] == pytest.approx(without[number], abs=1e-8)
        for row, context in enumerate((CONTEXT, *nulls)):
            given = logits_before(model, context, place)
            own = max((number, given.argmax() if row else number), key=lambda token: given[token] - without[token])
            assert measured.gains[row, place] == pytest.approx(given[number] - without[number], abs=1e-6)
            assert measured.own_gains[row, place] == pytest.approx(given[own] - without[own], abs=1e-6)
            if not row:
                kl = (np.exp(given) * (given - without)).sum()
                assert measured.kl[place] == pytest.approx(kl, abs=1e-8)
                assert measured.log_p[place] == pytest.approx(given[number], abs=1e-8)


def test_exchangeable_contexts_keep_both_error_rates():
    """Heavy tails, and tokens that depend on each other."""
    rng = np.random.default_rng(0)
    any_token, each = [], []
    for _ in range(2_000):
        common = rng.standard_t(2, size=(20, 1))
        statistic = rng.standard_t(2, size=(20, 8)) * np.geomspace(0.1, 10, 8) + common
        any_token.append(output_p_values(statistic).min() <= 0.05 + 1e-12)
        each.append((token_p_values(statistic) <= 0.05 + 1e-12).mean())
    assert np.mean(any_token) == pytest.approx(0.05, abs=0.015)
    assert np.mean(each) == pytest.approx(0.05, abs=0.015)


def test_p_values_count_contexts():
    statistic = np.array([[3.0, 0.0], [1.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    assert token_p_values(statistic).tolist() == [0.5, 1.0]
    statistic = np.array([[5.0, 0.0], [0.0, 1.0], [0.1, -1.0], [-0.1, 0.0]])
    assert output_p_values(statistic)[0] == 0.25


def test_a_change_far_below_the_least_deviation_does_not_hide_a_large_one():
    rng = np.random.default_rng(1)
    statistic = rng.normal(size=(40, 2)) * [1e-4, 0.2]
    statistic[0, 1] = 6.0
    statistic[0, 0] = 5e-4
    p = output_p_values(statistic)
    assert p[1] == 1 / 40
    assert p[0] > 0.05


def test_null_contexts_have_the_shape_of_the_context():
    passages = ["one two three four five six seven eight nine ten eleven twelve", "a b"]
    shuffled = null_contexts(passages, "shuffled", None, 5, np.random.default_rng(0))
    for drawn in shuffled:
        assert [len(text.split()) for text in drawn] == [12, 2]
        assert sorted(" ".join(drawn).split()) == sorted(" ".join(passages).split())
    foreign = null_contexts(passages, "foreign", None, 50, np.random.default_rng(0))
    assert all(len(drawn) == 2 and len(drawn[1].split()) == 2 for drawn in foreign)
    assert np.mean([len(drawn[0].split()) for drawn in foreign]) == pytest.approx(12, abs=2)
    own = null_contexts(passages, "foreign", ["The cat sat. The dog ran."], 3, np.random.default_rng(0))
    assert {word for drawn in own for text in drawn for word in text.split()} <= {"The", "cat", "sat.", "dog", "ran."}


def test_a_null_that_does_not_exist_and_texts_without_a_sentence_are_refused():
    with pytest.raises(BadInput, match="null"):
        null_contexts(["a b"], "other", None, 3, np.random.default_rng(0))
    with pytest.raises(BadInput, match="no sentence"):
        null_contexts(["a b"], "foreign", ["  "], 3, np.random.default_rng(0))


def test_probabilities_that_are_not_numbers_are_refused():
    from copy import deepcopy

    model = deepcopy(build("gpt2"))
    texts = [with_output(model, read_prompt(model, PROMPT, text, False), OUTPUT) for text in (CONTEXT, "a film")]
    bare = with_output(model, read_prompt(model, PROMPT, None, False), OUTPUT)
    with torch.no_grad():
        next(iter(model.network.parameters())).fill_(float("nan"))
    with pytest.raises(BadInput, match="not finite"):
        dependence(model, texts, bare, lambda *_: None)
