"""The histogram task and its network against counting by hand and loops."""

from collections import Counter
from math import exp, log, sqrt

import pytest
import torch
from torch import nn

from heedful.errors import BadInput
from heedful.experiments.toy_tasks import histogram
from heedful.experiments.toy_tasks.histogram import Examples, Sizes
from heedful.experiments.toy_tasks.token_dependence import token_dependence

SMALL = Sizes(length=5, n_tokens=4, width=8, n_hidden=6)


def given(sizes, restriction, seed=0):
    return histogram.initial(sizes, seed) | {"sight": histogram.sight(sizes, restriction)}


def slowly(parameters, tokens):
    """The map and the logits of one sequence, one number at a time."""
    W_q = parameters["W_q"]
    W_k, W_v = parameters.get("W_k", W_q), parameters.get("W_v", torch.eye(len(W_q)))
    e = [torch.cat([parameters["W_e"][token], parameters["W_p"][place]]) for place, token in enumerate(tokens)]
    q, k = ([W @ (vector * parameters["sight"]) for vector in e] for W in (W_q, W_k))
    maps, logits = [], []
    for query in q:
        weights = [exp(float(query @ key) / sqrt(len(query))) for key in k]
        maps.append([weight / sum(weights) for weight in weights])
        pooled = sum(share * (W_v @ vector) for share, vector in zip(maps[-1], e, strict=True))
        norm = nn.LayerNorm(len(pooled))(pooled).detach()
        hidden = (parameters["W_1"] @ norm + parameters["b_1"]).clamp(min=0)
        logits.append(parameters["W_2"] @ hidden + parameters["b_2"])
    return torch.stack(logits), torch.tensor(maps)


def test_the_lecture_s_example_is_counted_as_the_lecture_does():
    tokens = histogram.from_letters("DATAIAIAIA")
    assert histogram.occurrences(tokens)[0].tolist() == [1, 5, 1, 5, 3, 5, 3, 5, 3, 5]
    assert histogram.in_letters(tokens[0].tolist()) == "DATAIAIAIA"


def test_sequences_are_uniform_without_duplicates_and_split_without_overlap():
    training, test = histogram.examples(Sizes(length=6, n_tokens=5), 3_000, seed=1)
    rows = [tuple(row) for part in (training, test) for row in part.tokens.tolist()]
    assert len(rows) == len(set(rows)) <= 3_000
    assert len(training) == len(rows) * 7 // 10
    # Were the rows left sorted, the test set would hold the last tokens first.
    assert abs(test.tokens[:, 0].double().mean() - 2) < 0.2
    for row, counts in zip(training.tokens[:50].tolist(), training.counts[:50].tolist(), strict=True):
        assert counts == [Counter(row)[token] for token in row]
    again, _ = histogram.examples(Sizes(length=6, n_tokens=5), 3_000, seed=1)
    assert torch.equal(again.tokens, training.tokens)


@pytest.mark.parametrize("weights", ["tied", "untied"])
@pytest.mark.parametrize("restriction", ["semantic", "positional", "none"])
def test_the_network_is_the_formula(weights, restriction):
    sizes = Sizes(5, 4, 8, 6, weights)
    parameters = given(sizes, restriction)
    assert ("W_v" in parameters) == ("W_k" in parameters) == (weights == "untied")
    tokens = torch.tensor([[0, 1, 1, 3, 2], [3, 3, 3, 0, 0]])
    logits, maps = histogram.predict_counts(parameters, tokens)
    for number, row in enumerate(tokens.tolist()):
        expected, alpha = slowly(parameters, row)
        torch.testing.assert_close(maps[number], alpha, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(logits[number], expected, atol=1e-4, rtol=1e-4)


def test_positional_maps_are_blind_to_tokens_and_semantic_ones_to_places():
    tokens = torch.tensor([[0, 1, 1, 3, 2], [3, 2, 3, 0, 1]])
    maps = histogram.predict_counts(given(SMALL, "positional"), tokens)[1]
    assert torch.equal(maps[0], maps[1])
    order = [4, 2, 0, 1, 3]
    there, moved = (histogram.predict_counts(given(SMALL, "semantic"), rows)[1] for rows in (tokens, tokens[:, order]))
    torch.testing.assert_close(moved, there[:, order][:, :, order])
    assert not torch.allclose(there[0], there[1])


def test_crossed_maps_have_queries_of_one_sequence_and_keys_of_another():
    tokens = torch.tensor([[0, 1, 1, 3, 2], [3, 2, 3, 0, 1], [2, 2, 0, 0, 1]])
    parameters = given(Sizes(5, 4, 8, 6, "untied"), "none")
    crossed = histogram.crossed(parameters, tokens)
    e = torch.cat([parameters["W_e"][tokens], parameters["W_p"].expand(3, 5, 4)], dim=-1)
    for number, other in enumerate((2, 0, 1)):
        scores = (e[number] @ parameters["W_q"].T) @ (e[other] @ parameters["W_k"].T).T / sqrt(8)
        torch.testing.assert_close(crossed[number], scores.softmax(dim=-1))
    same = histogram.crossed(parameters, tokens[:1].expand(3, 5))
    torch.testing.assert_close(same, histogram.predict_counts(parameters, tokens[:1].expand(3, 5))[1])


@pytest.mark.parametrize("weights", ["tied", "untied"])
@pytest.mark.parametrize("restriction", ["semantic", "positional"])
def test_lifting_a_restriction_keeps_the_function_up_to_the_noise(weights, restriction):
    sizes = Sizes(5, 4, 8, 6, weights)
    trained, tokens = histogram.initial(sizes, 0), torch.tensor([[0, 1, 1, 3, 2]])
    before, _ = histogram.predict_counts(given(sizes, restriction), tokens)
    free = {"sight": histogram.sight(sizes, "none")}
    still, _ = histogram.predict_counts(histogram.lifted(sizes, trained, restriction, 0.0, 1) | free, tokens)
    torch.testing.assert_close(still, before)
    noisy = histogram.lifted(sizes, trained, restriction, 1e-3, 1)
    unseen = histogram.sight(sizes, restriction) == 0
    assert 0.5e-3 < float(noisy["W_q"][:, unseen].std()) < 2e-3
    assert 0.5e-3 < float((noisy["W_1"] - trained["W_1"]).std()) < 2e-3


def test_the_loss_is_the_cross_entropy():
    parameters, tokens = given(SMALL, "none"), torch.tensor([[0, 1, 1, 3, 2], [3, 3, 3, 0, 0]])
    counts = histogram.occurrences(tokens)
    expected = nn.functional.cross_entropy(
        histogram.predict_counts(parameters, tokens)[0].flatten(0, 1), counts.flatten()
    )
    torch.testing.assert_close(histogram.loss(parameters, (tokens, counts)), expected)
    untrained = {name: torch.zeros_like(tensor) for name, tensor in parameters.items()}
    assert float(histogram.loss(untrained, (tokens, counts))) == pytest.approx(log(6))


def test_a_run_is_evaluated_by_its_predictions():
    _, test = histogram.examples(SMALL, 300, seed=2)
    parameters = given(SMALL, "none")
    logits, maps = histogram.predict_counts(parameters, test.tokens)
    right = [
        int(row[place].argmax()) == Counter(tokens)[token]
        for row, tokens in zip(logits, test.tokens.tolist(), strict=True)
        for place, token in enumerate(tokens)
    ]
    result = histogram.evaluate_network(parameters, test)
    assert result["test_accuracy"] == pytest.approx(sum(right) / len(right))
    assert result["of_whole_maps"] == token_dependence(maps.detach())
    assert result["token_dependence"] == token_dependence(histogram.crossed(parameters, test.tokens).detach())
    rows = histogram.by_count(parameters, test)
    assert sum(row["n"] * row["accuracy"] for row in rows) == pytest.approx(sum(right))
    assert sum(row["n"] for row in rows) == len(right)


def test_examples_move_as_one():
    moved = Examples(torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.long)).to("cpu")
    assert len(moved) == 2
    assert int(moved.counts.sum()) == 6
    assert len(moved.first(1)) == 1


@pytest.mark.parametrize(("width", "n_tokens"), [(7, 4), (8, 1), (8, 27)])
def test_sizes_that_cannot_be_are_refused(width, n_tokens):
    with pytest.raises(BadInput, match="width must be even"):
        Sizes(width=width, n_tokens=n_tokens)
