import numpy as np
import pytest
import torch

from heedful.experiments.paper.figure_3 import Figure3
from heedful.experiments.reviews import FIGURE_1
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Figure3().measure(Workspace(tmp_path_factory.mktemp("figure-3")))


@pytest.fixture(scope="module")
def matrices(paper):
    """Eq. (8) for every query, head by head, in plain loops over the weights."""
    net = paper.network
    e = paper.embed([paper.encode(FIGURE_1)])[0].to(net.W_q.dtype)
    rows = []
    with torch.no_grad():
        for W_q, W_k in zip(net.W_q, net.W_k, strict=True):
            score = (e @ W_q.T) @ (e @ W_k.T).T / 8
            rows.append((score.exp() / score.exp().sum(dim=1, keepdim=True)).numpy())
    return np.array(rows)[:, :8, :8]


def test_six_heads_are_drawn_as_the_weights_say(numbers, matrices):
    drawn = Figure3().draw(numbers)["heads"]
    maps = [axes for axes in drawn.axes if axes.images and axes.get_title().startswith("head")]
    assert len(maps) == 6
    for axes, matrix in zip(maps, matrices, strict=True):
        assert np.allclose(axes.images[0].get_array(), matrix, atol=1e-12)
    assert [label.get_text() for label in maps[0].get_yticklabels()] == ["[cls]", *FIGURE_1.split()]


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in Figure3().claims(numbers)] == ["agrees", "agrees"]
    bent = [{**row, "attention": 1.0 if row["key"] == 3 else 0.0} for row in numbers["cells"]]
    noisy = [{**row, "attention": row["attention"] + 1e-9 * row["query"]} for row in bent]
    assert [claim.verdict for claim in Figure3().claims({**numbers, "cells": noisy})] == ["differs", "differs"]


def test_a_model_of_one_head_keeps_the_claim_on_its_rows(numbers):
    one = [row for row in numbers["cells"] if row["head"] == 1]
    same, apart = Figure3().claims({**numbers, "cells": one})
    assert (same.what[:5], apart.verdict) == ("α-avg", "not measured")
